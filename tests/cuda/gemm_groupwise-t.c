/*
 * gemm_groupwise-t.c - GEMMs with group-wise quantized weights: within the error bound of sums in
 * double, with the same bits from every kernel and tile and in a batch of any size; with int8
 * activations the bits of a scalar loop.
 *
 * Operands are random; guard bytes surround the results.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "tests/tap/tap.h"

#ifdef HAVE_CUDA

#include "kernels/cuda/gemm/groupwise/groupwise_variant.h"
#include "kernels/half.h"
#include "tests/lib/ops/groupwise.h"
#include "tests/lib/ops/device.h"
#include "tests/lib/ops/oneop.h"
#include "tests/lib/random.h"

#include <cuda_runtime_api.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 150, GUARD = 256, POISON = 0x5c, MAX_WIDE = 3 };

typedef struct form {
    blocked_how how;
    ft_dtype x, y;
    bool bias;
    ft_activation activation;
} form;

static const form forms[] = {
    { { FT_U4, 128, false, false }, FT_F16, FT_F16, false, FT_ACT_NONE },
    { { FT_U4, 128, true, false }, FT_F16, FT_F32, true, FT_ACT_SILU },
    { { FT_U4, 32, false, false }, FT_BF16, FT_BF16, true, FT_ACT_NONE },
    { { FT_U4, 256, false, false }, FT_BF16, FT_F32, true, FT_ACT_NONE },
    { { FT_U4, 0, false, false }, FT_F16, FT_BF16, true, FT_ACT_NONE },
    { { FT_U4, 64, true, false }, FT_F32, FT_F32, true, FT_ACT_RELU },
    { { FT_U4, 0, true, false }, FT_F32, FT_F32, false, FT_ACT_NONE },
    { { FT_U4, 96, true, false }, FT_F16, FT_F32, true, FT_ACT_NONE },
    { { FT_U8, 128, false, false }, FT_F16, FT_F16, true, FT_ACT_GELU },
    { { FT_U8, 32, true, false }, FT_F16, FT_F32, false, FT_ACT_NONE },
    { { FT_U4, 32, false, false }, FT_F16, FT_F16, false, FT_ACT_NONE },
    { { FT_U4, 64, true, false }, FT_F16, FT_F16, false, FT_ACT_NONE },
    { { FT_U4, 96, true, false }, FT_BF16, FT_BF16, true, FT_ACT_NONE },
    { { FT_U8, 64, true, false }, FT_BF16, FT_F32, true, FT_ACT_NONE },
    { { FT_U8, 160, false, false }, FT_F16, FT_F16, false, FT_ACT_NONE },
    { { FT_U8, 256, true, false }, FT_BF16, FT_F32, true, FT_ACT_NONE },
    { { FT_U8, 0, false, false }, FT_F32, FT_F32, true, FT_ACT_NONE },
    { { FT_U8, 64, false, true }, FT_F16, FT_F32, true, FT_ACT_SILU },
    { { FT_U8, 128, true, true }, FT_F32, FT_F32, false, FT_ACT_NONE },
    { { FT_U4, 32, true, true }, FT_BF16, FT_BF16, true, FT_ACT_NONE },
    { { FT_U8, 0, true, true }, FT_F16, FT_F16, false, FT_ACT_NONE },
    { { FT_U8, 96, true, true }, FT_F16, FT_F32, false, FT_ACT_NONE },
    { { FT_U4, 128, false, true }, FT_F16, FT_F16, true, FT_ACT_RELU },
};

/* The output features of each linear, 0 after the last one; and their input features. */
typedef struct extent {
    size_t rows[MAX_WIDE], k;
} extent;

/* ---- Operands ------------------------------------------------------------------------------- */

typedef struct problem {
    const form *form;
    const extent *extent;
    int n_linears;
    void *x; /* ROWS rows */
    ft_weight w[MAX_WIDE];
    double *value[MAX_WIDE];
    float *bias[MAX_WIDE];
    char *y[MAX_WIDE]; /* of all rows, by the kernel that supports any m */
    ft_cuda_groupwise_args product;
} problem;

static void *upload(const void *data, size_t bytes)
{
    void *memory;
    if (cudaMalloc(&memory, bytes) != cudaSuccess ||
        cudaMemcpy(memory, data, bytes, cudaMemcpyHostToDevice) != cudaSuccess)
        bail_out("cannot copy %zu bytes to the device", bytes);
    return memory;
}

static void *poisoned(size_t bytes)
{
    void *memory;
    if (cudaMalloc(&memory, bytes) != cudaSuccess ||
        cudaMemset(memory, POISON, bytes) != cudaSuccess)
        bail_out("no device memory for %zu bytes", bytes);
    return memory;
}

static void *inputs(uint64_t seed, ft_dtype dtype, size_t n)
{
    float *values = random_floats(seed, n, 1.0);
    if (dtype == FT_F32)
        return values;
    uint16_t *halves = must_have(n, sizeof *halves);
    for (size_t i = 0; i < n; i++)
        halves[i] = dtype == FT_F16 ? ft_f16_from_float(values[i]) : ft_bf16_from_float(values[i]);
    free(values);
    return halves;
}

static size_t y_bytes(const problem *q, int part, size_t rows)
{
    return rows * q->extent->rows[part] * ft_dtype_size(q->form->y);
}

static void open_part(problem *q, int part, uint64_t seed)
{
    size_t rows = q->extent->rows[part], k = q->extent->k;
    ft_weight *w = &q->w[part];
    *w = random_blocked(seed, rows, k, &q->form->how, &q->value[part]);
    round_weights_for_gpu(q->value[part], rows * k, &q->form->how, q->form->x);
    size_t scales = ft_groupwise_scale_count(&w->groupwise, rows, k);
    q->bias[part] = random_floats(seed + 1, rows, 1.0);
    q->y[part] = must_have(y_bytes(q, part, ROWS), 1);
    q->product.linear[part] = (ft_cuda_groupwise_linear){
        .rows = rows,
        .w = upload(w->data, ft_weight_bytes(w)),
        .scale = upload(w->groupwise.scale, scales * sizeof(uint16_t)),
        .zero = w->groupwise.zero != NULL ? upload(w->groupwise.zero, scales) : NULL,
        .bias = q->form->bias ? upload(q->bias[part], rows * sizeof(float)) : NULL,
    };
}

static void open_problem(problem *q, const ft_cuda_device_props *props, const form *f,
                         const extent *e, uint64_t seed)
{
    size_t wide = 0;
    *q = (problem){ .form = f, .extent = e };
    q->x = inputs(seed, f->x, ROWS * e->k);
    for (; q->n_linears < MAX_WIDE && e->rows[q->n_linears] > 0; q->n_linears++) {
        wide += e->rows[q->n_linears];
        open_part(q, q->n_linears, seed + 10 + 2 * (uint64_t) q->n_linears);
    }
    ft_cuda_groupwise_args *p = &q->product;
    p->k = e->k;
    p->x = upload(q->x, ROWS * e->k * ft_dtype_size(f->x));
    p->x_dtype = f->x;
    p->y_dtype = f->y;
    p->bits = ft_groupwise_bits(f->how.dtype);
    p->group = f->how.group;
    p->int8_activations = f->how.int8_activations;
    p->activation = f->activation;
    p->n_linears = q->n_linears;
    p->scratch_bytes =
        ft_cuda_groupwise_scratch(props, ROWS, wide, e->k, f->x, f->how.int8_activations);
    p->scratch = poisoned(p->scratch_bytes);
    p->counters = poisoned(FT_CUDA_GROUPWISE_COUNTERS * sizeof(uint32_t));
    cudaMemset(p->counters, 0, FT_CUDA_GROUPWISE_COUNTERS * sizeof(uint32_t));
}

static void close_problem(problem *q)
{
    ft_cuda_groupwise_args *p = &q->product;
    for (int i = 0; i < q->n_linears; i++) {
        free_blocked(&q->w[i]);
        free(q->value[i]);
        free(q->bias[i]);
        free(q->y[i]);
        cudaFree((void *) (uintptr_t) p->linear[i].w);
        cudaFree((void *) (uintptr_t) p->linear[i].scale);
        cudaFree((void *) (uintptr_t) p->linear[i].zero);
        cudaFree((void *) (uintptr_t) p->linear[i].bias);
    }
    free(q->x);
    cudaFree(p->x);
    cudaFree(p->scratch);
    cudaFree(p->counters);
}

/* ---- The GEMM ------------------------------------------------------------------------------- */

/* A kernel with one of its tiles. */
typedef struct kernel {
    ft_cuda_groupwise_variant variant;
    const char *name;
} kernel;

/* All variants, then the plain kernel; false: there is none any more. */
static bool kernel_at(kernel *out, int index)
{
    const ft_cuda_groupwise_variant *v = ft_cuda_groupwise_variant_at(index);
    if (v != NULL)
        *out = (kernel){ *v, ft_cuda_groupwise_variant_name(index) };
    else
        *out = (kernel){ { FT_CUDA_GROUPWISE_SIMT, 0 }, "simt" };
    return v != NULL || ft_cuda_groupwise_variant_at(index - 1) != NULL;
}

/* The first variant of a kernel that supports so many rows. */
static bool find_kernel(kernel *out, const problem *q, ft_cuda_groupwise_kernel which,
                        const ft_cuda_device_props *props, size_t m)
{
    ft_cuda_groupwise_args p = q->product;
    p.m = m;
    for (int i = 0; kernel_at(out, i); i++)
        if (out->variant.kernel == which &&
            ft_cuda_groupwise_variant_supports(&out->variant, props, &p))
            return true;
    return false;
}

/* Copies the result to *y; returns whether the guards around it are intact. */
static bool take_result(char *y, char *memory, size_t bytes)
{
    bool fine = true;
    char *all = must_have(bytes + 2 * GUARD, 1);
    cudaMemcpy(all, memory, bytes + 2 * GUARD, cudaMemcpyDeviceToHost);
    for (size_t i = 0; i < GUARD; i++)
        fine = fine && all[i] == POISON && all[GUARD + bytes + i] == POISON;
    memcpy(y, all + GUARD, bytes);
    free(all);
    cudaFree(memory);
    return fine;
}

/* Rows first .. first + m - 1 of all linears; false if the kernel failed or wrote out of bounds. */
static bool multiply(const problem *q, const kernel *way, const ft_cuda_device_props *props,
                     size_t first, size_t m, char *const *y)
{
    ft_cuda_groupwise_args p = q->product;
    char *memory[MAX_WIDE];
    p.m = m;
    p.x = (char *) p.x + first * p.k * ft_dtype_size(p.x_dtype);
    for (int i = 0; i < q->n_linears; i++) {
        memory[i] = poisoned(y_bytes(q, i, m) + 2 * GUARD);
        p.linear[i].y = memory[i] + GUARD;
    }
    int status = ft_cuda_groupwise_variant_launch(&way->variant, props, NULL, &p);
    if (status == 0)
        status = (int) cudaDeviceSynchronize();
    if (status != 0)
        diag("%zu rows with %s: %s", m, way->name, cudaGetErrorString((cudaError_t) status));
    bool fine = status == 0;
    for (int i = 0; i < q->n_linears; i++)
        fine = take_result(y[i], memory[i], y_bytes(q, i, m)) && fine;
    return fine;
}

/* ---- Expected results ----------------------------------------------------------------------- */

/*
 * The error bound of float sums against the sum in double.  Each of k products takes part in at
 * most k additions, which round (tensor cores truncate) at 2^-23 of a partial sum, which is at most
 * the sum of magnitudes; 8 more for scales, bias and activation, whose slope is below 1.1; and the
 * rounding of y.
 */
static double bound_of(const form *f, size_t k, double magnitude, double value)
{
    return 1.1 * ((double) k + 8) * 0x1p-23 * magnitude + rounding_in(f->y) * fabs(value) + 0x1p-24;
}

static bool is_near(const problem *q, int part, rng *r)
{
    const form *f = q->form;
    size_t k = q->extent->k, rows = q->extent->rows[part];
    for (size_t i = 0; i < ROWS * rows; i += 1 + rng_below(r, 61)) {
        size_t token = i / rows, row = i % rows;
        double sum = f->bias ? (double) q->bias[part][row] : 0.0, magnitude = fabs(sum);
        for (size_t j = 0; j < k; j++) {
            double term = number_of(q->x, f->x, token * k + j) * q->value[part][row * k + j];
            sum += term;
            magnitude += fabs(term);
        }
        double value = (double) ft_activate(f->activation, (float) sum);
        double found = number_of(q->y[part], f->y, i);
        if (is_far(found, value, bound_of(f, k, magnitude, value))) {
            diag("row %zu, column %zu: found %.9g, expected %.9g", token, row, found, value);
            return false;
        }
    }
    return true;
}

/* One output with int8 activations: exact integer sums, accumulated in float group by group. */
static float int8_activations(const problem *q, int part, size_t token, size_t row)
{
    const ft_weight *w = &q->w[part];
    size_t k = w->cols, group = w->groupwise.group == 0 ? k : (size_t) w->groupwise.group;
    int bits = ft_groupwise_bits(w->dtype);
    float *x = must_have(k, sizeof *x), total = 0.0f;
    int32_t *quantized = must_have(k, sizeof *quantized);
    for (size_t j = 0; j < k; j++)
        x[j] = (float) number_of(q->x, q->form->x, token * k + j);
    for (size_t from = 0; from < k; from += group) {
        size_t to = from + group < k ? from + group : k;
        size_t at = ft_groupwise_scale_index(&w->groupwise, row, from, w->rows);
        int8_group by = quantize_group(quantized, x + from, to - from);
        int32_t sum = 0, zero = ft_groupwise_zero_point(&w->groupwise, at, bits);
        for (size_t j = from; j < to; j++)
            sum += ((int32_t) ft_panel_value(w->data, row, j, k, bits) - zero) *
                   (quantized[j - from] - by.zero);
        total = fmaf((float) sum, ft_float_from_f16(w->groupwise.scale[at]) * by.scale, total);
    }
    free(x);
    free(quantized);
    if (q->form->bias)
        total += q->bias[part][row];
    return ft_activate(q->form->activation, total);
}

static bool is_equal(const problem *q, int part, rng *r)
{
    const form *f = q->form;
    size_t rows = q->extent->rows[part];
    for (size_t i = 0; i < ROWS * rows; i += 1 + rng_below(r, 61)) {
        float expected = int8_activations(q, part, i / rows, i % rows);
        if (f->y == FT_F16)
            expected = ft_float_from_f16(ft_f16_from_float(expected));
        if (f->y == FT_BF16)
            expected = ft_float_from_bf16(ft_bf16_from_float(expected));
        double found = number_of(q->y[part], f->y, i);
        if (found != (double) expected) {
            diag("row %zu, column %zu: found %.9g, expected %.9g", i / rows, i % rows, found,
                 (double) expected);
            return false;
        }
    }
    return true;
}

static bool is_right(const problem *q, rng *r)
{
    bool right = true;
    for (int i = 0; i < q->n_linears; i++)
        right = (q->form->how.int8_activations ? is_equal(q, i, r) : is_near(q, i, r)) && right;
    return right;
}

/* Whether a kernel supports so many rows. */
static bool takes(const problem *q, const kernel *way, const ft_cuda_device_props *props, size_t m)
{
    ft_cuda_groupwise_args p = q->product;
    p.m = m;
    return ft_cuda_groupwise_variant_supports(&way->variant, props, &p);
}

/* Whether subsets of the rows have the bits that they have in the whole batch. */
static bool is_batch_invariant(const problem *q, const kernel *way,
                               const ft_cuda_device_props *props, rng *r)
{
    static const size_t some[] = { 1, 2, 3, 5, 8, 9, 16, 17, 33, 64, 65, 129, ROWS };
    bool same = true;
    for (size_t i = 0; i < sizeof some / sizeof some[0] && same; i++) {
        char *y[MAX_WIDE] = { NULL };
        size_t m = some[i], first = rng_below(r, (uint32_t) (ROWS - m + 1));
        if (!takes(q, way, props, m))
            continue;
        for (int part = 0; part < q->n_linears; part++)
            y[part] = must_have(y_bytes(q, part, m), 1);
        same = multiply(q, way, props, first, m, y);
        for (int part = 0; part < q->n_linears; part++) {
            same = same &&
                   memcmp(y[part], q->y[part] + y_bytes(q, part, first), y_bytes(q, part, m)) == 0;
            free(y[part]);
        }
        if (!same)
            diag("%zu rows from row %zu on differ from the same rows in a batch of %d", m, first,
                 (int) ROWS);
    }
    return same;
}

/* Runs all rows with one kernel and compares them with the expected results. */
static bool test_values(problem *q, const kernel *way, const ft_cuda_device_props *props, rng *r)
{
    const form *f = q->form;
    const size_t *rows = q->extent->rows;
    bool right = multiply(q, way, props, 0, ROWS, q->y) && is_right(q, r);
    ok(right, "group-wise GEMM: %s in groups of %d%s, %s%s, %zu+%zu+%zu x %zu with %s %s",
       ft_dtype_name(f->how.dtype), (int) f->how.group,
       f->how.asymmetric ? " with zero points" : "", ft_dtype_name(f->x),
       f->how.int8_activations ? " quantized to int8" : "", rows[0], rows[1], rows[2], q->extent->k,
       way->name,
       f->how.int8_activations ? "has the bits of a scalar loop"
                               : "is within the error bound of float sums");
    return right;
}

/* The first kernel for all rows computes what the others are compared with. */
static bool test_first(problem *q, const ft_cuda_device_props *props, rng *r)
{
    kernel way;
    for (int i = 0; kernel_at(&way, i); i++)
        if (takes(q, &way, props, ROWS))
            return test_values(q, &way, props, r);
    return false;
}

/* The plain kernel sums in its own order; all other kernels share one. */
static void test_form(const ft_cuda_device_props *props, const form *f, const extent *e,
                      uint64_t seed)
{
    problem q;
    kernel way;
    rng r = { seed };
    open_problem(&q, props, f, e, seed);
    bool right = test_first(&q, props, &r);
    for (int i = 0; kernel_at(&way, i); i++) {
        if (!takes(&q, &way, props, 1))
            continue;
        if (way.variant.kernel == FT_CUDA_GROUPWISE_SIMT)
            right = test_values(&q, &way, props, &r);
        ok(right && is_batch_invariant(&q, &way, props, &r),
           "a row has the same bits in a batch of any size with %s", way.name);
    }
    close_problem(&q);
}

/*
 * More rows than the reference covers: each tile for many rows is compared with small batches by
 * the mma kernel, or the one for int8 activations.
 */
static void test_many(const ft_cuda_device_props *props, const form *f)
{
    enum { MANY = 1300, FEW = 100 };
    static const extent e = { { 300, 40 }, 256 };
    problem q;
    kernel few, many;
    char *whole[MAX_WIDE] = { NULL }, *some[MAX_WIDE] = { NULL };
    open_problem(&q, props, f, &e, 77);
    q.product.scratch_bytes =
        ft_cuda_groupwise_scratch(props, MANY, 340, e.k, f->x, f->how.int8_activations);
    cudaFree(q.product.scratch);
    q.product.scratch = poisoned(q.product.scratch_bytes);
    void *x = inputs(78, q.form->x, MANY * e.k);
    cudaFree(q.product.x);
    q.product.x = upload(x, MANY * e.k * ft_dtype_size(q.form->x));
    for (int i = 0; i < q.n_linears; i++) {
        whole[i] = must_have(y_bytes(&q, i, MANY), 1);
        some[i] = must_have(y_bytes(&q, i, FEW), 1);
    }
    ft_cuda_groupwise_kernel which =
        f->how.int8_activations ? FT_CUDA_GROUPWISE_INT8 : FT_CUDA_GROUPWISE_MMA;
    bool begun = find_kernel(&few, &q, which, props, FEW);
    for (int way = 0; begun && kernel_at(&many, way); way++) {
        if (many.variant.kernel == FT_CUDA_GROUPWISE_SIMT || !takes(&q, &many, props, MANY))
            continue;
        bool same = multiply(&q, &many, props, 0, MANY, whole);
        for (size_t first = 0; first < MANY && same; first += FEW) {
            same = multiply(&q, &few, props, first, FEW, some);
            for (int i = 0; i < q.n_linears; i++)
                same = same &&
                       memcmp(whole[i] + y_bytes(&q, i, first), some[i], y_bytes(&q, i, FEW)) == 0;
        }
        ok(same,
           "a batch of %d rows by %s has the bits of batches of %d rows by %s in groups of %d",
           (int) MANY, many.name, (int) FEW, few.name, (int) f->how.group);
    }
    for (int i = 0; i < q.n_linears; i++) {
        free(whole[i]);
        free(some[i]);
    }
    free(x);
    close_problem(&q);
}

/* A CUDA graph can replay the GEMM only if the kernel resets its counters. */
static void test_counters(const ft_cuda_device_props *props)
{
    static const extent e = { { 5000, 32, 700 }, 2080 };
    problem q;
    open_problem(&q, props, &forms[0], &e, 99);
    kernel gemv;
    bool ran = find_kernel(&gemv, &q, FT_CUDA_GROUPWISE_GEMV, props, 7) &&
               multiply(&q, &gemv, props, 0, 7, q.y);
    uint32_t counters[FT_CUDA_GROUPWISE_COUNTERS];
    cudaMemcpy(counters, q.product.counters, sizeof counters, cudaMemcpyDeviceToHost);
    for (int i = 0; i < FT_CUDA_GROUPWISE_COUNTERS; i++)
        ran = ran && counters[i] == 0;
    ok(ran, "the GEMV kernel resets its counters to zero");
    close_problem(&q);
}

int main(void)
{
    static const extent extents[] = {
        { { 1 }, 1 },       { { 32 }, 32 },     { { 33, 70 }, 100 },       { { 100, 5, 64 }, 1024 },
        { { 520 }, 1160 },  { { 5000 }, 2080 }, { { 300, 40, 96 }, 4096 }, { { 64 }, 11008 },
        { { 9000 }, 384 },  /* more tiles than multiprocessors */
        { { 6400 }, 2048 }, /* more panels */
    };
    ft_cuda_device_props props;
    char text[GPU_TEXT];
    if (!find_gpu(&props, text))
        skip_all("%s", text);
    for (size_t i = 0; i < sizeof extents / sizeof extents[0]; i++)
        for (size_t j = 0; j < sizeof forms / sizeof forms[0]; j++)
            test_form(&props, &forms[j], &extents[i], 1000 * i + 17 * j);
    for (size_t i = 0; i < FT_COUNT(forms); i++)
        test_many(&props, &forms[i]);
    test_counters(&props);
    return done_testing();
}

#else

int main(void)
{
    skip_all("this build has no CUDA backend");
}

#endif
