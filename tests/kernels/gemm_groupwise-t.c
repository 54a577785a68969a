/*
 * gemm_groupwise-t.c - GEMM with group-wise quantized weights: every instruction set against the
 * order of sums that the headers specify.
 *
 * The reference multiplies one number after the other as the headers specify, and reads the
 * quantized weights one by one.  So a row has the same bits in any batch, with any number of
 * threads and any vector length: all of them are compared with it, byte for byte.  ops.t compares
 * the sums with the oracle.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cpu/gemm/groupwise/gemm_groupwise.h"
#include "kernels/half.h"
#include "runtime/mem.h"
#include "runtime/tensor.h"
#include "tests/lib/ops/groupwise.h"
#include "tests/lib/ops/chunks.h"
#include "tests/lib/ops/oneop.h"
#include "tests/lib/random.h"
#include "tests/tap/tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_THREADS = 4 };

/* ---- One GEMM, and its expected result ---------------------------------------------------- */

typedef struct problem {
    size_t m, n, k, x_stride, y_stride;
    ft_dtype x_dtype, y_dtype;
    blocked_how how;
    ft_activation activation;
    bool bias;
} problem;

typedef struct operands {
    ft_weight w;
    void *x, *y; /* y: expected, with a guard pattern between and after its rows */
    float *bias;
} operands;

typedef struct product {
    const problem *problem;
    const operands *operands;
} product;

static int32_t weight_at(const ft_weight *w, size_t row, size_t col)
{
    int bits = ft_groupwise_bits(w->dtype);
    size_t at = ft_groupwise_scale_index(&w->groupwise, row, col, w->rows);
    return (int32_t) ft_panel_value(w->data, row, col, w->cols, bits) -
           ft_groupwise_zero_point(&w->groupwise, at, bits);
}

static float x_at(const problem *p, const operands *o, size_t row, size_t i)
{
    return (float) number_of(o->x, p->x_dtype, row * p->x_stride + i);
}

/* x quantized to one byte, with a zero point. */
static float add_quantized(float y, float scale, const problem *p, const operands *o, size_t row,
                           size_t col, size_t first, size_t end)
{
    int32_t sum = 0, *q = must_have(end - first, sizeof *q);
    float *x = must_have(end - first, sizeof *x);
    for (size_t i = first; i < end; i++)
        x[i - first] = x_at(p, o, row, i);
    int8_group by = quantize_group(q, x, end - first);
    for (size_t i = first; i < end; i++)
        sum += weight_at(&o->w, col, i) * (q[i - first] - by.zero);
    free(q);
    free(x);
    return ft_groupwise_accumulate(y, (float) sum, scale, by.scale);
}

/* x quantized to 16 bits: the largest magnitude has 15 bits, or 14 if it would exceed 32639. */
static float add_reals(float y, float scale, const problem *p, const operands *o, size_t row,
                       size_t col, size_t first, size_t end)
{
    int exponent;
    int64_t sum = 0;
    float amax = 0.0f;
    for (size_t i = first; i < end; i++)
        amax = fmaxf(amax, fabsf(x_at(p, o, row, i)));
    frexpf(amax, &exponent);
    if (ldexpf(amax, 15 - exponent) > 32639.0f)
        exponent++;
    for (size_t i = first; i < end; i++)
        sum +=
            weight_at(&o->w, col, i) * (int64_t) rintf(ldexpf(x_at(p, o, row, i), 15 - exponent));
    return ft_groupwise_accumulate(y, (float) sum, scale, ldexpf(1.0f, exponent - 15));
}

/* Columns of x with one unit: a group or, with 16 bits, a divisor of it, up to 256. */
static size_t part_of(const problem *p)
{
    size_t group = p->how.group == 0 ? 1 << 20 : (size_t) p->how.group, part = group;
    while (!p->how.int8_activations && (part > 256 || group % part != 0))
        part -= 32;
    return part;
}

static float sum_of(const problem *p, const operands *o, size_t row, size_t col)
{
    size_t part = part_of(p);
    float y = 0.0f;
    for (size_t first = 0; first < p->k; first += part) {
        size_t end = ft_min_size(first + part, p->k);
        size_t at = ft_groupwise_scale_index(&o->w.groupwise, col, first, p->n);
        float scale = ft_float_from_f16(o->w.groupwise.scale[at]);
        y = (p->how.int8_activations ? add_quantized : add_reals)(y, scale, p, o, row, col, first,
                                                                  end);
    }
    return y;
}

static void expect_results(const problem *p, const operands *o)
{
    memset(o->y, CHUNKS_PATTERN, chunked_bytes(p->m, p->y_stride, p->y_dtype));
    for (size_t row = 0; row < p->m; row++)
        for (size_t col = 0; col < p->n; col++) {
            float v = sum_of(p, o, row, col);
            v = ft_activate(p->activation, p->bias ? v + o->bias[col] : v);
            set_number(o->y, p->y_dtype, row * p->y_stride + col, v);
        }
}

static operands make_operands(const problem *p)
{
    double *value;
    operands o = { .w = random_blocked(1, p->n, p->k, &p->how, &value),
                   .x = random_numbers(2, p->m * p->x_stride, p->x_dtype),
                   .bias = random_floats(3, p->n, 1.0) };
    free(value);
    o.y = must_have(chunked_bytes(p->m, p->y_stride, p->y_dtype), 1);
    expect_results(p, &o);
    return o;
}

static void free_operands(operands *o)
{
    free_blocked(&o->w);
    free(o->x);
    free(o->y);
    free(o->bias);
}

/* Rows first .. first + rows - 1 of the GEMM, into y. */
static void multiply(const void *of, ft_isa isa, int threads, size_t first, size_t rows, void *y)
{
    const problem *p = ((const product *) of)->problem;
    const operands *o = ((const product *) of)->operands;
    size_t bytes = ft_gemm_groupwise_scratch(&o->w.groupwise, rows, p->k, threads);
    void *scratch = must_have(bytes, 1);
    memset(scratch, 0xff, bytes); /* NaN */
    ft_gemm_groupwise_run(&(ft_gemm_groupwise){
        .isa = isa,
        .threads = threads,
        .m = rows,
        .n = p->n,
        .k = p->k,
        .x = (const char *) o->x + first * p->x_stride * ft_dtype_size(p->x_dtype),
        .x_dtype = p->x_dtype,
        .x_stride = p->x_stride,
        .w = o->w.data,
        .bits = ft_groupwise_bits(o->w.dtype),
        .groupwise = o->w.groupwise,
        .bias = p->bias ? o->bias : NULL,
        .activation = p->activation,
        .y = (char *) y + first * p->y_stride * ft_dtype_size(p->y_dtype),
        .y_dtype = p->y_dtype,
        .y_stride = p->y_stride,
        .scratch = scratch,
        .scratch_bytes = bytes,
    });
    free(scratch);
}

/* `chunk` rows at a time. */
static bool same_bytes(const problem *p, const operands *o, ft_isa isa, int threads, size_t chunk)
{
    const product both = { p, o };
    return chunked_same(&(chunked){ .product = &both,
                                    .multiply = multiply,
                                    .m = p->m,
                                    .n = p->n,
                                    .k = p->k,
                                    .y_stride = p->y_stride,
                                    .y_dtype = p->y_dtype,
                                    .expected = o->y },
                        isa, threads, chunk);
}

/* ------------------------------------------------------------------------------------------- */

/* Complete groups, a partial last group, groups longer than a row, and one group per row. */
static const struct {
    size_t m, n, k;
    int32_t group;
} shapes[] = {
    { 1, 1, 1, 32 },      { 1, 290, 64, 32 },    { 2, 33, 100, 64 },   { 3, 170, 512, 0 },
    { 4, 97, 513, 96 },   { 5, 40, 1040, 640 },  { 8, 130, 96, 32 },   { 12, 33, 1100, 0 },
    { 13, 70, 480, 128 }, { 25, 130, 37, 1024 }, { 100, 20, 130, 64 },
};

static const problem kinds[] = {
    { .how = { .dtype = FT_U4 }, .bias = true },
    { .how = { .dtype = FT_U8 }, .activation = FT_ACT_SILU },
    { .how = { .dtype = FT_U4, .asymmetric = true }, .x_dtype = FT_F16, .y_dtype = FT_F16 },
    { .how = { .dtype = FT_U8, .asymmetric = true }, .bias = true, .activation = FT_ACT_GELU },
    { .how = { .dtype = FT_U4 }, .x_dtype = FT_BF16, .y_dtype = FT_F32 },
    { .how = { .dtype = FT_U8, .int8_activations = true },
      .bias = true,
      .activation = FT_ACT_RELU },
    { .how = { .dtype = FT_U8, .asymmetric = true, .int8_activations = true }, .x_dtype = FT_F16 },
    { .how = { .dtype = FT_U4, .int8_activations = true }, .x_dtype = FT_BF16, .y_dtype = FT_BF16 },
    { .how = { .dtype = FT_U4, .asymmetric = true, .int8_activations = true }, .bias = true },
    { .how = { .dtype = FT_U8, .asymmetric = true, .int8_activations = true } },
};

static const char *name_of(const problem *p)
{
    static char name[64];
    snprintf(name, sizeof name, "%s . %s%s%s to %s", ft_dtype_name(p->x_dtype),
             ft_dtype_name(p->how.dtype), p->how.asymmetric ? " with zero points" : "",
             p->how.int8_activations ? " with int8 activations" : "", ft_dtype_name(p->y_dtype));
    return name;
}

static void test_kind(const problem *kind, const bool usable[FT_ISA_COUNT])
{
    bool whole[FT_ISA_COUNT], cut[FT_ISA_COUNT];
    memset(whole, 1, sizeof whole);
    memset(cut, 1, sizeof cut);
    for (size_t i = 0; i < FT_COUNT(shapes); i++) {
        problem p = *kind;
        p.m = shapes[i].m;
        p.n = shapes[i].n;
        p.k = shapes[i].k;
        p.how.group = shapes[i].group;
        p.x_stride = p.k + i % 3;
        p.y_stride = p.n + i % 4;
        operands o = make_operands(&p);
        for (int isa = 0; isa < FT_ISA_COUNT; isa++)
            for (int threads = 1; usable[isa] && threads <= MAX_THREADS; threads += 3) {
                whole[isa] &= same_bytes(&p, &o, (ft_isa) isa, threads, p.m);
                cut[isa] &= same_bytes(&p, &o, (ft_isa) isa, threads, 1) &&
                            same_bytes(&p, &o, (ft_isa) isa, threads, 3) &&
                            same_bytes(&p, &o, (ft_isa) isa, threads, 13);
            }
        free_operands(&o);
    }
    for (int isa = 0; isa < FT_ISA_COUNT; isa++) {
        const char *name = ft_isa_name((ft_isa) isa);
        if (!usable[isa]) {
            skip(2, "this machine or this build has no %s", name);
            continue;
        }
        ok(whole[isa], "%s, %s: %zu shapes have the bytes of the reference", name, name_of(kind),
           FT_COUNT(shapes));
        ok(cut[isa], "%s, %s: rows computed alone, 3 and 13 at a time have the same bytes", name,
           name_of(kind));
    }
}

/* The first 1 to 70 rows: each kind of tile, complete and partial. */
static void test_rows(const problem *kind, const bool usable[FT_ISA_COUNT])
{
    enum { MAX_SIZE = 70 };
    problem p = *kind;
    p.m = MAX_SIZE;
    p.n = p.y_stride = 35;
    p.k = p.x_stride = 150;
    p.how.group = 64;
    operands o = make_operands(&p);
    for (int isa = 0; isa < FT_ISA_COUNT; isa++) {
        const char *name = ft_isa_name((ft_isa) isa);
        bool same = true;
        if (!usable[isa]) {
            skip(1, "this machine or this build has no %s", name);
            continue;
        }
        float *found = must_have(chunked_bytes(p.m, p.y_stride, p.y_dtype), 1);
        for (size_t rows = 1; rows <= MAX_SIZE; rows++) {
            multiply(&(product){ &p, &o }, (ft_isa) isa, 2, 0, rows, found);
            same &= memcmp(found, o.y, rows * p.y_stride * ft_dtype_size(p.y_dtype)) == 0;
        }
        free(found);
        ok(same, "%s, %s: each row has the same bytes in batches of 1 to %d rows", name,
           name_of(kind), MAX_SIZE);
    }
    free_operands(&o);
}

/*
 * Int8 activations of every sign: groups without negative or without positive elements, whose zero
 * points are the ends of the range, constant groups and groups of zeros.
 */
static void test_signs(const problem *kind, int32_t group, const bool usable[FT_ISA_COUNT])
{
    enum { POSITIVE, NEGATIVE, CONSTANT, NEGATIVE_CONSTANT, ZEROS, SHIFTED, DENORMAL, MIXED, ROWS };
    problem p = *kind;
    p.m = ROWS;
    p.n = p.y_stride = 70;
    p.k = p.x_stride = 300;
    p.how.group = group;
    operands o = make_operands(&p);
    float *x = o.x;
    for (size_t i = 0; i < p.k; i++) {
        float *at = x + i;
        at[POSITIVE * p.k] = fabsf(at[POSITIVE * p.k]);
        at[NEGATIVE * p.k] = -fabsf(at[NEGATIVE * p.k]);
        at[CONSTANT * p.k] = 0.7f;
        at[NEGATIVE_CONSTANT * p.k] = -3.1f;
        at[ZEROS * p.k] = i % 2 == 0 ? 0.0f : -0.0f;
        at[SHIFTED * p.k] += 0.9f;
        at[DENORMAL * p.k] *= 0x1p-127f;
        at[MIXED * p.k] *= i / 32 % 3 == 0 ? 0.0f : i / 32 % 3 == 1 ? 1.0f : at[MIXED * p.k];
    }
    expect_results(&p, &o);
    for (int isa = 0; isa < FT_ISA_COUNT; isa++) {
        const char *name = ft_isa_name((ft_isa) isa);
        if (usable[isa])
            ok(same_bytes(&p, &o, (ft_isa) isa, 1, ROWS) && same_bytes(&p, &o, (ft_isa) isa, 2, 1),
               "%s, %s, group size %d: positive, negative, constant, zero and denormal activations "
               "have the bytes of the reference",
               name, name_of(&p), group);
        else
            skip(1, "this machine or this build has no %s", name);
    }
    free_operands(&o);
}

/*
 * The largest sums: all quantized values at one end and zero points at the other, and x whose
 * digits are as far from 0 as possible.  In a row of 16 bits the unit of x is 1.
 */
static void test_largest(const problem *kind, int32_t group, const bool usable[FT_ISA_COUNT])
{
    static const float whole[] = {
        32639.0f,  /* the maximum: high 127, low 127 */
        -32639.0f, /* high -127, low -127 */
        32384.0f,  /* high 127, low -128 */
        -32640.0f, /* above the maximum: a unit of 2 */
        32767.0f,  /* likewise, and rounded to even */
        16385.0f,  /* the least with a unit of 1, but for 16384 */
    };
    enum { ROWS = FT_COUNT(whole) };
    problem p = *kind;
    p.m = ROWS;
    p.n = p.y_stride = 33;
    p.k = p.x_stride = 1024;
    p.how.group = group;
    operands o = make_operands(&p);
    float *x = o.x;
    uint8_t *zero = (uint8_t *) (uintptr_t) o.w.groupwise.zero;
    bool same[FT_ISA_COUNT];
    memset(same, 1, sizeof same);
    for (size_t i = 0; i < ROWS * p.k; i++)
        x[i] = whole[i / p.k];
    for (int end = 0; end < 2; end++) {
        memset((void *) (uintptr_t) o.w.data, end == 0 ? 255 : 0,
               ft_panel_bytes(p.n, p.k, ft_groupwise_bits(o.w.dtype)));
        if (zero != NULL)
            memset(zero, end == 0 ? 0 : (1 << ft_groupwise_bits(o.w.dtype)) - 1,
                   ft_groupwise_scale_count(&o.w.groupwise, p.n, p.k));
        expect_results(&p, &o);
        for (int isa = 0; isa < FT_ISA_COUNT; isa++)
            same[isa] &= !usable[isa] || (same_bytes(&p, &o, (ft_isa) isa, 1, ROWS) &&
                                          same_bytes(&p, &o, (ft_isa) isa, 2, 1));
    }
    for (int isa = 0; isa < FT_ISA_COUNT; isa++) {
        const char *name = ft_isa_name((ft_isa) isa);
        if (usable[isa])
            ok(same[isa], "%s, %s, group size %d: the largest possible sums equal the reference's",
               name, name_of(&p), group);
        else
            skip(1, "this machine or this build has no %s", name);
    }
    free_operands(&o);
}

/* Rows of x that are hard to scale: zero, tiny, huge, not finite in one group. */
static void test_extremes(const problem *kind, const bool usable[FT_ISA_COUNT])
{
    enum { TINY, LARGE, ZEROS, INFINITE, NONE, ROWS };
    problem p = *kind;
    p.m = ROWS;
    p.n = p.y_stride = 40;
    p.k = p.x_stride = 100;
    p.how.group = 32;
    operands o = make_operands(&p);
    float *x = o.x, y[ROWS * 40];
    for (size_t i = 0; i < p.k; i++) {
        x[TINY * p.k + i] *= 0x1p-120f;
        x[LARGE * p.k + i] *= 0x1p90f;
        x[ZEROS * p.k + i] = 0.0f;
    }
    x[INFINITE * p.k + 50] = -INFINITY;
    x[NONE * p.k + 99] = NAN;
    for (int isa = 0; isa < FT_ISA_COUNT; isa++) {
        const char *name = ft_isa_name((ft_isa) isa);
        bool fine = true, whole = true;
        if (!usable[isa]) {
            skip(2, "this machine or this build has no %s", name);
            continue;
        }
        memset(y, 0x5a, sizeof y);
        multiply(&(product){ &p, &o }, (ft_isa) isa, 1, 0, ROWS, y);
        for (size_t col = 0; col < p.n; col++) {
            fine &= isnan(y[INFINITE * p.n + col]) && isnan(y[NONE * p.n + col]);
            fine &= memcmp(&y[ZEROS * p.n + col], &(float){ 0.0f }, sizeof *y) == 0;
            whole &= memcmp(&y[LARGE * p.n + col], &(float){ sum_of(&p, &o, LARGE, col) },
                            sizeof *y) == 0;
            whole &= fabsf(y[TINY * p.n + col]) < 0x1p-100f;
        }
        ok(fine, "%s, %s: zeros give 0, and non-finite activations give NaN", name, name_of(kind));
        ok(whole, "%s, %s: large activations keep their bits, and tiny ones stay tiny", name,
           name_of(kind));
    }
    free_operands(&o);
}

int main(void)
{
    bool usable[FT_ISA_COUNT];
    for (int isa = 0; isa < FT_ISA_COUNT; isa++)
        usable[isa] = ft_isa_supported((ft_isa) isa);
    for (size_t i = 0; i < FT_COUNT(kinds); i++) {
        test_kind(&kinds[i], usable);
        test_rows(&kinds[i], usable);
    }
    test_extremes(&(problem){ .how = { .dtype = FT_U4, .asymmetric = true } }, usable);
    test_extremes(&(problem){ .how = { .dtype = FT_U8, .int8_activations = true } }, usable);
    for (size_t i = 0; i < FT_COUNT(kinds); i++)
        if (kinds[i].x_dtype == FT_F32) {
            test_largest(&kinds[i], 0, usable);
            test_largest(&kinds[i], 32, usable);
            test_largest(&kinds[i], 256, usable);
        }
    for (size_t i = 0; i < FT_COUNT(kinds); i++)
        if (kinds[i].x_dtype == FT_F32 && kinds[i].how.int8_activations) {
            test_signs(&kinds[i], 0, usable);
            test_signs(&kinds[i], 32, usable);
            test_signs(&kinds[i], 64, usable);
            test_signs(&kinds[i], 128, usable);
        }
    ok(ft_gemm_groupwise_scratch(&(ft_groupwise){ .int8_activations = true }, SIZE_MAX / 2, 4, 1) ==
           SIZE_MAX,
       "a scratch size that overflows is an error");
    return done_testing();
}
