/*
 * gemm_f32-t.c - float GEMM: every instruction set against the order of sums that f32.h specifies.
 *
 * The reference adds one number after the other as the header specifies, without tiles.  So a row
 * has the same bits in any batch, with any number of threads and any vector length: all of them are
 * compared with it, byte for byte.  ops.t compares the sums with the oracle.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/activation.h"
#include "kernels/cpu/gemm/f32/gemm_f32.h"
#include "kernels/half.h"
#include "runtime/mem.h"
#include "runtime/tensor.h"
#include "tests/lib/ops/chunks.h"
#include "tests/lib/ops/oneop.h"
#include "tests/lib/random.h"
#include "tests/tap/tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LANES = 16, PIECE = 4096, MAX_THREADS = 5 };

/* ---- One GEMM, and its expected result ---------------------------------------------------- */

typedef struct problem {
    size_t m, n, k, x_stride, y_stride;
    ft_dtype x_dtype, w_dtype, y_dtype;
    ft_activation activation;
    bool bias;
} problem;

typedef struct operands {
    void *x, *w, *y; /* y: expected, with a guard pattern between and after its rows */
    float *bias;
} operands;

typedef struct product {
    const problem *problem;
    const operands *operands;
} product;

static float sum_of(const problem *p, const operands *o, size_t row, size_t col)
{
    float sum = 0.0f;
    for (size_t piece = 0; piece < p->k; piece += PIECE) {
        float lane[LANES] = { 0 };
        for (size_t i = piece; i < p->k && i < piece + PIECE; i++)
            lane[i % LANES] =
                fmaf((float) number_of(o->x, p->x_dtype, row * p->x_stride + i),
                     (float) number_of(o->w, p->w_dtype, col * p->k + i), lane[i % LANES]);
        for (int apart = LANES / 2; apart > 0; apart /= 2)
            for (int i = 0; i < apart; i++)
                lane[i] += lane[i + apart];
        sum = piece == 0 ? lane[0] : sum + lane[0];
    }
    return sum;
}

static operands make_operands(const problem *p)
{
    operands o = { .x = random_numbers(1, p->m * p->x_stride, p->x_dtype),
                   .w = random_numbers(2, p->n * p->k, p->w_dtype),
                   .bias = random_floats(3, p->n, 1.0) };
    size_t bytes = chunked_bytes(p->m, p->y_stride, p->y_dtype);
    o.y = must_have(bytes, 1);
    memset(o.y, CHUNKS_PATTERN, bytes);
    for (size_t row = 0; row < p->m; row++)
        for (size_t col = 0; col < p->n; col++) {
            float v = sum_of(p, &o, row, col);
            v = ft_activate(p->activation, p->bias ? v + o.bias[col] : v);
            set_number(o.y, p->y_dtype, row * p->y_stride + col, v);
        }
    return o;
}

static void free_operands(operands *o)
{
    free(o->x);
    free(o->w);
    free(o->y);
    free(o->bias);
}

/* Rows first .. first + rows - 1 of the GEMM, into y. */
static void multiply(const void *of, ft_isa isa, int threads, size_t first, size_t rows, void *y)
{
    const problem *p = ((const product *) of)->problem;
    const operands *o = ((const product *) of)->operands;
    size_t bytes = ft_gemm_float_scratch(p->x_dtype, rows, p->k, threads);
    void *scratch = must_have(bytes, 1);
    memset(scratch, 0xff, bytes); /* NaN */
    ft_gemm_float_run(&(ft_gemm_float){
        .isa = isa,
        .threads = threads,
        .m = rows,
        .n = p->n,
        .k = p->k,
        .x = (const char *) o->x + first * p->x_stride * ft_dtype_size(p->x_dtype),
        .x_dtype = p->x_dtype,
        .x_stride = p->x_stride,
        .w = o->w,
        .w_dtype = p->w_dtype,
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

static const size_t shapes[][3] = {
    { 1, 1, 1 },     { 1, 9, 16 },     { 2, 100, 48 },   { 5, 3, 512 },
    { 6, 97, 513 },  { 7, 40, 1040 },  { 12, 33, 8224 }, { 13, 70, 80 },
    { 25, 130, 37 }, { 30, 70, 4100 }, { 500, 20, 31 },  { 1020, 34, 18 },
};

static const problem kinds[] = {
    { .bias = true },
    { .w_dtype = FT_F16, .activation = FT_ACT_SILU },
    { .w_dtype = FT_BF16, .bias = true, .activation = FT_ACT_GELU },
    { .x_dtype = FT_F16, .w_dtype = FT_F16, .y_dtype = FT_F32 },
    { .x_dtype = FT_BF16, .w_dtype = FT_BF16, .y_dtype = FT_BF16, .bias = true },
    { .w_dtype = FT_F32, .y_dtype = FT_F16 },
};

static const char *name_of(const problem *p)
{
    static char name[64];
    snprintf(name, sizeof name, "%s . %s to %s", ft_dtype_name(p->x_dtype),
             ft_dtype_name(p->w_dtype), ft_dtype_name(p->y_dtype));
    return name;
}

static void test_kind(const problem *kind, const bool usable[FT_ISA_COUNT])
{
    bool whole[FT_ISA_COUNT], cut[FT_ISA_COUNT];
    memset(whole, 1, sizeof whole);
    memset(cut, 1, sizeof cut);
    for (size_t i = 0; i < FT_COUNT(shapes); i++) {
        problem p = *kind;
        p.m = shapes[i][0];
        p.n = shapes[i][1];
        p.k = shapes[i][2];
        p.x_stride = p.k + i % 3;
        p.y_stride = p.n + i % 4;
        operands o = make_operands(&p);
        for (int isa = 0; isa < FT_ISA_COUNT; isa++)
            for (int threads = 1; usable[isa] && threads <= MAX_THREADS; threads += 2) {
                whole[isa] &= same_bytes(&p, &o, (ft_isa) isa, threads, p.m);
                cut[isa] &= same_bytes(&p, &o, (ft_isa) isa, threads, 1) &&
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
        ok(cut[isa], "%s, %s: rows computed alone and 13 at a time have the same bytes", name,
           name_of(kind));
    }
}

int main(void)
{
    bool usable[FT_ISA_COUNT];
    for (int isa = 0; isa < FT_ISA_COUNT; isa++)
        usable[isa] = ft_isa_supported((ft_isa) isa);
    for (size_t i = 0; i < FT_COUNT(kinds); i++)
        test_kind(&kinds[i], usable);
    ok(ft_gemm_float_scratch(FT_F16, 500, SIZE_MAX / 8, 1) == SIZE_MAX,
       "a scratch size that overflows is an error");
    return done_testing();
}
