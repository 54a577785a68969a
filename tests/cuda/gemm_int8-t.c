/*
 * gemm_int8-t.c - every int8 GEMM kernel against a naive one on the host, byte for byte.
 *
 * Operands are random; outputs are poisoned and surrounded by guard bytes.  The reference uses
 * kernels/quant.h, kernels/activation.h and the layout formula, but no tiling.  GEMMs too large for
 * the host are compared with the plain kernel, which the smaller ones have verified.
 *
 * An argument is the largest m * n * k to try, for tools that slow kernels down:
 *     compute-sanitizer --tool racecheck tests/cuda/gemm_int8.t 8000000
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "tests/tap/tap.h"

#ifdef HAVE_CUDA

#include "kernels/cpu/gemm/int8/gemm_i8.h"
#include "kernels/cuda/cuda.h"
#include "kernels/half.h"
#include "kernels/quant.h"
#include "tests/cuda/gemm_int8.h"
#include "tests/lib/ops/gemm_parts.h"

#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <stdlib.h>
#include <string.h>

/* ---- Epilogues ------------------------------------------------------------------------------ */

/* One epilogue. */
typedef struct form {
    const char *name;
    ft_activation activation;
    ft_dtype dtype;
    bool bias, row_scales, residual;
    int n_outputs;
    bool uneven; /* the first output has half of all columns */
} form;

static const form forms[] = {
    { "int8", FT_ACT_NONE, FT_I8, true, false, false, 1, false },
    { "int8 after gelu", FT_ACT_GELU_APPROX, FT_I8, true, false, false, 1, false },
    { "int8 after relu, row scales", FT_ACT_RELU, FT_I8, false, true, false, 1, false },
    { "f32", FT_ACT_NONE, FT_F32, true, false, false, 1, false },
    { "f32 after tanh, no bias", FT_ACT_TANH, FT_F32, false, false, false, 1, false },
    { "f32 plus residual, row scales", FT_ACT_GELU, FT_F32, true, true, true, 1, false },
    { "f16", FT_ACT_GELU_APPROX, FT_F16, false, true, false, 1, false },
    { "f16 plus residual", FT_ACT_NONE, FT_F16, true, false, true, 1, false },
    { "int8, two outputs", FT_ACT_NONE, FT_I8, true, true, false, 2, false },
    { "int8, three outputs", FT_ACT_NONE, FT_I8, true, false, false, 3, false },
    { "f32, three outputs", FT_ACT_SILU, FT_F32, true, false, false, 3, false },
    { "f16, row scales", FT_ACT_NONE, FT_F16, false, true, false, 1, false },
    { "f16 plus residual, row scales", FT_ACT_NONE, FT_F16, true, true, true, 1, false },
    { "f32, row scales", FT_ACT_NONE, FT_F32, true, true, false, 1, false },
    { "f32 plus residual, row scales", FT_ACT_NONE, FT_F32, false, true, true, 1, false },
    { "f16, three uneven outputs", FT_ACT_NONE, FT_F16, true, true, false, 3, true },
    { "int8, three uneven outputs", FT_ACT_NONE, FT_I8, true, false, false, 3, true },
    { "f32, three uneven outputs", FT_ACT_TANH, FT_F32, false, true, true, 3, true },
};

enum { FORMS = sizeof forms / sizeof forms[0], GUARD = 256, POISON = 0x55 };

static bool form_fits(const form *f, const problem *q)
{
    return q->n % (f->uneven ? 4 : (size_t) f->n_outputs) == 0;
}

static ft_cuda_gemm_args gemm_of(const problem *q, const form *f)
{
    ft_cuda_gemm_args p = {
        .m = q->m,
        .n = q->n,
        .k = q->k,
        .x = q->dev_x,
        .w = q->dev_w,
        .prepacked = q->dev_tiles,
        .x_scale = q->x_scale,
        .x_scales = f->row_scales ? q->dev_x_scales : NULL,
        .w_scale = q->dev_w_scale,
        .bias = f->bias ? q->dev_bias : NULL,
        .activation = f->activation,
        .y_dtype = f->dtype,
        .n_outputs = f->n_outputs,
        .residual = !f->residual         ? NULL
                    : f->dtype == FT_F16 ? (const void *) q->dev_residual_half
                                         : (const void *) q->dev_residual,
        .blas = q->blas,
        .scratch = q->dev_scratch,
        .scratch_bytes = q->scratch_bytes,
    };
    for (int i = 0; i < f->n_outputs; i++) {
        p.width[i] = part_width(q->n, f->n_outputs, f->uneven, i);
        p.y_inv_scale[i] = f->dtype == FT_I8 ? inverse_of_part(i) : 0.0f;
    }
    return p;
}

/* ---- The reference -------------------------------------------------------------------------- */

static float value_at(const problem *q, const form *f, size_t row, size_t col)
{
    float scale = (f->row_scales ? q->x_scales[row] : q->x_scale) * q->w_scale[col];
    float value = ft_activate(f->activation, ft_dequantize(q->sums[row * q->n + col], scale,
                                                           f->bias ? q->bias[col] : 0.0f));
    size_t at = row * q->n + col;
    if (f->residual)
        value = value +
                (f->dtype == FT_F16 ? ft_float_from_f16(q->residual_half[at]) : q->residual[at]);
    return value;
}

/* The expected values of one output matrix. */
static void expect(const problem *q, const form *f, int part, void *y)
{
    size_t width = part_width(q->n, f->n_outputs, f->uneven, part),
           first = part_first(q->n, f->n_outputs, f->uneven, part);
    for (size_t i = 0; i < q->m * width; i++) {
        float value = value_at(q, f, i / width, first + i % width);
        if (f->dtype == FT_I8)
            ((int8_t *) y)[i] = ft_quantize(value, inverse_of_part(part));
        else if (f->dtype == FT_F16)
            ((uint16_t *) y)[i] = ft_f16_from_float(value);
        else
            ((float *) y)[i] = value;
    }
}

/* ---- Comparing ------------------------------------------------------------------------------ */

/* A kernel; `tile` of the mma kernel, or -1: the kernel's own choice. */
typedef struct way {
    ft_cuda_gemm_kernel how;
    int tile;
} way;

static const char *kernel_name(const way *w)
{
    static char name[64];
    if (w->tile < 0)
        return ft_cuda_gemm_name(w->how);
    snprintf(name, sizeof name, "%s, tile %d", ft_cuda_gemm_name(w->how), w->tile);
    return name;
}

static int launch(const way *w, const ft_cuda_device_props *props, const ft_cuda_gemm_args *p)
{
    if (w->tile >= 0)
        return ft_cuda_gemm_mma_launch_tile(w->tile, props, NULL, p);
    return ft_cuda_gemm_launch(w->how, props, NULL, p);
}

/* Poisoned memory between guards for each output matrix, and its bytes on the host. */
typedef struct outputs {
    size_t bytes[FT_CUDA_MAX_FUSED];
    char *device[FT_CUDA_MAX_FUSED], *host;
} outputs;

static outputs open_outputs(ft_cuda_gemm_args *p)
{
    outputs y = { { 0 }, { NULL }, NULL };
    size_t size = ft_dtype_size(p->y_dtype);
    for (int i = 0; i < p->n_outputs; i++) {
        y.bytes[i] = p->m * p->width[i] * size;
        if (cudaMalloc((void **) &y.device[i], y.bytes[i] + 2 * GUARD) != cudaSuccess ||
            cudaMemset(y.device[i], POISON, y.bytes[i] + 2 * GUARD) != cudaSuccess)
            bail_out("cannot allocate device memory for y");
        p->y[i] = y.device[i] + GUARD;
    }
    y.host = malloc(p->m * p->n * size + 2 * GUARD);
    return y;
}

static void close_outputs(outputs *y)
{
    for (int i = 0; i < FT_CUDA_MAX_FUSED; i++)
        cudaFree(y->device[i]);
    free(y->host);
}

/* The first byte of an output that differs, or SIZE_MAX; guards count. */
static size_t first_difference(outputs *y, int part, const char *expected)
{
    size_t bytes = y->bytes[part];
    download(y->host, y->device[part], bytes + 2 * GUARD);
    for (size_t i = 0; i < bytes + 2 * GUARD; i++) {
        bool inside = i >= GUARD && i < GUARD + bytes;
        if (y->host[i] != (inside ? expected[i - GUARD] : POISON))
            return i;
    }
    return SIZE_MAX;
}

/* Runs one kernel with one epilogue; a diagnostic names the first difference. */
static bool form_agrees(const way *w, const ft_cuda_device_props *props, const problem *q,
                        const form *f, const char *const expected[])
{
    ft_cuda_gemm_args p = gemm_of(q, f);
    outputs y = open_outputs(&p);
    int status = launch(w, props, &p);
    if (status == 0)
        status = (int) cudaDeviceSynchronize();
    bool same = status == 0;
    if (!same)
        diag("%s: %s", f->name, cudaGetErrorString((cudaError_t) status));
    for (int i = 0; i < f->n_outputs && same; i++) {
        size_t at = first_difference(&y, i, expected[i]);
        same = at == SIZE_MAX;
        if (!same)
            diag("%s: output %d differs first at byte %zu of %zu", f->name, i, at - GUARD,
                 y.bytes[i]);
    }
    close_outputs(&y);
    return same;
}

static bool kernel_supports(const way *w, const ft_cuda_device_props *props, const problem *q,
                            const form *f)
{
    ft_cuda_gemm_args p = gemm_of(q, f);
    switch (w->how) {
    case FT_CUDA_GEMM_SIMT:
        return ft_cuda_gemm_simt_supports(props, &p);
    case FT_CUDA_GEMM_MMA:
        return ft_cuda_gemm_mma_supports(props, &p);
    case FT_CUDA_GEMM_CUBLASLT:
        return ft_cuda_gemm_cublaslt_supports(props, &p);
    case FT_CUDA_GEMM_WGMMA:
        return ft_cuda_gemm_wgmma_supports(props, &p);
    case FT_CUDA_GEMM_GEMV:
        return ft_cuda_gemm_gemv_supports(props, &p);
    case FT_CUDA_GEMM_KERNELS:
        break;
    }
    return false;
}

static void test_kernel(const way *w, const ft_cuda_device_props *props, const problem *q,
                        char *expected[])
{
    bool all = true;
    int count = 0;
    for (int f = 0; f < FORMS; f++) {
        const char *const *n_outputs = (const char *const *) expected + f * FT_CUDA_MAX_FUSED;
        if (!form_fits(&forms[f], q) || !kernel_supports(w, props, q, &forms[f]))
            continue;
        count++;
        if (!form_agrees(w, props, q, &forms[f], n_outputs))
            all = false;
    }
    if (count > 0)
        ok(all, "int8 GEMM %zu x %zu x %zu by %s has the expected bytes with %d epilogues", q->m,
           q->n, q->k, kernel_name(w), count);
}

/* Every kernel, and every tile of the mma kernel. */
static void test_ways(const ft_cuda_device_props *props, const problem *q, char *expected[])
{
    for (int how = 0; how < FT_CUDA_GEMM_KERNELS; how++)
        test_kernel(&(way){ (ft_cuda_gemm_kernel) how, -1 }, props, q, expected);
    for (int tile = 0; tile < ft_cuda_gemm_mma_tile_count(); tile++)
        test_kernel(&(way){ FT_CUDA_GEMM_MMA, tile }, props, q, expected);
}

static size_t largest = SIZE_MAX; /* m * n * k */

static void test_shape(const ft_cuda_device_props *props, void *blas, size_t m, size_t n, size_t k,
                       problem_quantized quantized)
{
    if (m * n * k > largest)
        return;
    problem q = open_problem(props, blas, m, n, k, quantized);
    char *expected[FORMS * FT_CUDA_MAX_FUSED] = { NULL };
    problem_sum(&q);
    for (int f = 0; f < FORMS; f++) {
        for (int i = 0; i < forms[f].n_outputs && form_fits(&forms[f], &q); i++) {
            expected[f * FT_CUDA_MAX_FUSED + i] = malloc(m * n * sizeof(float));
            expect(&q, &forms[f], i, expected[f * FT_CUDA_MAX_FUSED + i]);
        }
    }
    test_ways(props, &q, expected);
    for (int i = 0; i < FORMS * FT_CUDA_MAX_FUSED; i++)
        free(expected[i]);
    close_problem(&q);
}

/* The plain kernel's results are the expected ones. */
static void test_big_shape(const ft_cuda_device_props *props, void *blas, size_t m, size_t n,
                           size_t k)
{
    if (m * n * k > largest)
        return;
    problem q = open_problem(props, blas, m, n, k, ANY_CODES);
    char *expected[FORMS * FT_CUDA_MAX_FUSED] = { NULL };
    for (int f = 0; f < FORMS; f++) {
        ft_cuda_gemm_args p = gemm_of(&q, &forms[f]);
        if (!form_fits(&forms[f], &q))
            continue;
        outputs y = open_outputs(&p);
        if (ft_cuda_gemm_simt(props, NULL, &p) != 0)
            bail_out("the plain kernel does not launch");
        for (int i = 0; i < forms[f].n_outputs; i++) {
            expected[f * FT_CUDA_MAX_FUSED + i] = malloc(y.bytes[i]);
            download(expected[f * FT_CUDA_MAX_FUSED + i], p.y[i], y.bytes[i]);
        }
        close_outputs(&y);
    }
    test_ways(props, &q, expected);
    for (int i = 0; i < FORMS * FT_CUDA_MAX_FUSED; i++)
        free(expected[i]);
    close_problem(&q);
}

/* ---- Other checks --------------------------------------------------------------------------- */

/* The CPU's kernel and the plain kernel, on the same operands. */
static void test_cpu_twin(const ft_cuda_device_props *props, void *blas, size_t m, size_t n,
                          size_t k)
{
    problem q = open_problem(props, blas, m, n, k, ANY_CODES);
    size_t scratch = ft_gemm_i8_scratch(m, n, k, 2);
    bool same = true;
    ft_isa isa;
    if (ft_cpu_isa(&isa, NULL) != FT_OK)
        bail_out("FT_CPU names no instruction set");
    for (int f = 0; f < FORMS; f++) {
        const form *asked = &forms[f];
        if (asked->row_scales || asked->dtype == FT_F16 || asked->n_outputs != 1)
            continue;
        char *y = malloc(m * n * sizeof(float));
        void *memory = aligned_alloc(64, (scratch + 63) / 64 * 64);
        ft_gemm_i8_run(&(ft_gemm_i8){
            .isa = isa,
            .threads = 2,
            .m = m,
            .n = n,
            .k = k,
            .x = q.x,
            .x_stride = k,
            .w = q.w,
            .x_scale = q.x_scale,
            .w_scale = q.w_scale,
            .bias = asked->bias ? q.bias : NULL,
            .activation = asked->activation,
            .residual = asked->residual ? q.residual : NULL,
            .residual_stride = n,
            .y_dtype = asked->dtype,
            .out_inverse = asked->dtype == FT_I8 ? inverse_of_part(0) : 0.0f,
            .y = y,
            .y_stride = n,
            .scratch = memory,
            .scratch_bytes = scratch,
        });
        const char *expected[FT_CUDA_MAX_FUSED] = { y };
        if (!form_agrees(&(way){ FT_CUDA_GEMM_SIMT, -1 }, props, &q, asked, expected))
            same = false;
        free(memory);
        free(y);
    }
    ok(same, "int8 GEMM %zu x %zu x %zu by the plain kernel has the bits of the CPU's kernel", m, n,
       k);
    close_problem(&q);
}

/* The GEMM of a fake-quantized plan: x, w and y hold quantized values in float. */
static void test_fake_quantized(const ft_cuda_device_props *props, void *blas, size_t m, size_t n,
                                size_t k)
{
    static const form real = { "", FT_ACT_GELU_APPROX, FT_F32, true, false, false, 1, false };
    problem q = open_problem(props, blas, m, n, k, ANY_CODES);
    float *x = problem_floats(q.x, m * k), *w = problem_floats(q.w_row, n * k);
    float *dev_x = upload(x, m * k * sizeof *x), *dev_w = upload(w, n * k * sizeof *w);
    float *y = malloc(m * n * sizeof *y), *found = malloc(m * n * sizeof *y);
    problem_sum(&q);
    for (int quantized = 0; quantized <= 1; quantized++) {
        ft_cuda_gemm_args p = gemm_of(&q, &real);
        outputs out = open_outputs(&p);
        expect(&q, &real, 0, y);
        p.y_inv_scale[0] = quantized ? inverse_of_part(0) : 0.0f;
        for (size_t i = 0; i < m * n && quantized; i++)
            y[i] = ft_quantize_to_float(y[i], inverse_of_part(0));
        int status = ft_cuda_gemm_fake_quantized(NULL, &p, dev_x, dev_w);
        ok(status == 0 && first_difference(&out, 0, (char *) y) == SIZE_MAX,
           "fake-quantized GEMM %zu x %zu x %zu gives the bits of the int8 reference as %s", m, n,
           k, quantized ? "quantized values" : "float values");
        close_outputs(&out);
    }
    cudaFree(dev_x);
    cudaFree(dev_w);
    free(x);
    free(w);
    free(y);
    free(found);
    close_problem(&q);
}

/*
 * Dependent GEMV launches: each reads what the previous one wrote, and prefetches its weights
 * before that one has ended.
 */
static void test_chain(const ft_cuda_device_props *props, void *blas, size_t m)
{
    enum { SIZE = 2048, LINKS = 40 };
    static const form quantized = { "", FT_ACT_NONE, FT_I8, true, true, false, 1, false };
    problem q = open_problem(props, blas, m, SIZE, SIZE, ANY_CODES);
    ft_cuda_device_props apart = *props;
    int8_t *y[2], *seen[2];
    bool runs = true;
    apart.has_pdl = false;
    for (int i = 0; i < 2; i++) {
        seen[i] = malloc(m * SIZE);
        y[i] = upload(q.x, m * SIZE);
    }
    for (int overlapping = 0; overlapping < 2; overlapping++) {
        ft_cuda_gemm_args p = gemm_of(&q, &quantized);
        for (int i = 0; i < LINKS; i++) {
            p.x = i == 0 ? q.dev_x : y[(i + 1) % 2];
            p.y[0] = y[i % 2];
            runs = runs && ft_cuda_gemm_gemv(overlapping ? props : &apart, NULL, &p) == 0 &&
                   (overlapping || cudaDeviceSynchronize() == cudaSuccess);
        }
        download(seen[overlapping], y[(LINKS - 1) % 2], m * SIZE);
    }
    ok(runs && memcmp(seen[0], seen[1], m * SIZE) == 0,
       "%d overlapping GEMV launches of %zu rows give the bits of serialized ones", LINKS, m);
    for (int i = 0; i < 2; i++) {
        cudaFree(y[i]);
        free(seen[i]);
    }
    close_problem(&q);
}

static void test_refusals(const ft_cuda_device_props *props, void *blas)
{
    static const form three = { "", FT_ACT_NONE, FT_F32, true, false, false, 3, false };
    problem q = open_problem(props, blas, 4, 96, 64, ANY_CODES);
    ft_cuda_gemm_args p = gemm_of(&q, &three);
    outputs y = open_outputs(&p);
    p.width[2] -= 1;
    ok(ft_cuda_gemm_launch(FT_CUDA_GEMM_SIMT, props, NULL, &p) == cudaErrorInvalidValue,
       "a GEMM refuses outputs whose widths do not add up to n");
    p.width[2] += 1;
    p.n_outputs = FT_CUDA_MAX_FUSED + 1;
    ok(ft_cuda_gemm_launch(FT_CUDA_GEMM_SIMT, props, NULL, &p) == cudaErrorInvalidValue,
       "a GEMM refuses more than FT_CUDA_MAX_FUSED outputs");
    p.n_outputs = 3;
    ok(ft_cuda_gemm_gemv_supports(props, &p) == props->has_wgmma,
       "the GEMV kernel supports 4 rows on devices with prepacked weights");
    p.m = 9;
    ok(!ft_cuda_gemm_gemv_supports(props, &p), "the GEMV kernel does not support 9 rows");
    close_outputs(&y);
    close_problem(&q);
}

static void test_shapes(const ft_cuda_device_props *props, void *blas)
{
    static const size_t shape[][3] = {
        { 1, 1, 1 },       { 3, 5, 7 },      { 2, 32, 16 },     { 7, 8, 48 },
        { 17, 96, 64 },    { 33, 40, 80 },   { 64, 100, 50 },   { 130, 200, 208 },
        { 65, 1000, 272 }, { 7, 192, 2048 }, { 200, 328, 256 }, { 16, 768, 768 },
        { 31, 64, 1024 },  { 8, 2304, 768 }, { 260, 136, 144 }, { 1, 3072, 768 },
        { 40, 768, 3072 }, { 1, 4096, 512 }, { 1, 200, 11008 }, { 3, 1000, 144 },
        { 5, 8192, 128 },  { 4, 36, 2064 },  { 2, 17000, 48 },
    };
    for (size_t i = 0; i < sizeof shape / sizeof shape[0]; i++)
        test_shape(props, blas, shape[i][0], shape[i][1], shape[i][2], ANY_CODES);
    test_shape(props, blas, 9, 24, 65536, EXTREME_CODES);
    test_shape(props, blas, 8, 72, 22016,
               ANY_CODES); /* x leaves the pipelines of gemv.cu two ... */
    test_shape(props, blas, 8, 40, 25600, ANY_CODES); /* ... or one of their four stages */
    test_big_shape(props, blas, 1111, 2304, 768);
    test_big_shape(props, blas, 4096, 768, 3072);
    test_big_shape(props, blas, 1, 12288, 4096);
    test_big_shape(props, blas, 8, 4096, 11008);
    test_big_shape(props, blas, 64, 6144, 4096);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        largest = strtoul(argv[1], NULL, 10);
    void *blas;
    ft_cuda_device_props props = open_gpu(&blas);
    diag("sm_%d, cuBLASLt %s COL32 x COL4_4R2_8C", props.capability,
         props.has_imma ? "multiplies" : "refuses");
    test_refusals(&props, blas);
    test_shapes(&props, blas);
    for (size_t m = 1; m <= 8 && props.has_wgmma; m += 7)
        test_chain(&props, blas, m);
    test_cpu_twin(&props, blas, 50, 100, 208);
    test_cpu_twin(&props, blas, 257, 768, 768);
    test_fake_quantized(&props, blas, 5, 9, 33);
    test_fake_quantized(&props, blas, 70, 130, 1536);
    cublasDestroy(blas);
    return done_testing();
}

#else

int main(void)
{
    skip_all("this build has no CUDA backend");
}

#endif
