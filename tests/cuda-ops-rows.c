/*
 * cuda-ops-rows.c - what decoders do with rows: rms norms and their sums.
 *
 * The CPU works on each row alone.  So equal bits, whether few rows are shared by clusters of
 * blocks or many take a block each, mean that no row depends on how many there are.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#ifdef HAVE_CUDA

#include "tests/cuda-ops.h"

#include "runtime/mem.h"
#include "runtime/tensor.h"
#include "tests/tap/tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const ft_dtype reals[] = { FT_F32, FT_F16, FT_BF16 };

/* What a result is: nothing, floats, codes of a given scale, codes of scales that rows make. */
typedef enum form { NOTHING, FLOATS, STATIC, DYNAMIC } form;

typedef struct result {
    form form;
    ft_dtype dtype;
} result;

static const result codes_of_all_sorts[] = { { NOTHING, FT_F32 }, { STATIC, FT_I8 },
                                             { STATIC, FT_F32 },  { DYNAMIC, FT_I8 },
                                             { DYNAMIC, FT_F32 }, { DYNAMIC, FT_I8 } };

static matrix room_for(result r, size_t rows, size_t cols)
{
    return r.form == NOTHING   ? (matrix){ 0 }
           : r.form == DYNAMIC ? dynamic_result(rows, cols, r.dtype)
                               : result_of(rows, cols, r.dtype, r.form == STATIC ? 0.03f : 0.0f);
}

static size_t draw(size_t below)
{
    return rng_below(&numbers, (uint32_t) below);
}

/*
 * Normal floats; of several rows the second is zeros, and the third has numbers of all sizes, NaN
 * and infinity among them.
 */
static matrix special_rows(size_t rows, size_t cols, ft_dtype dtype)
{
    static const float special[] = { -0.0f,  1e-42f, -1e-30f, 0.5f,    79.9f,    -80.1f, 88.4f,
                                     -90.0f, 3e4f,   -6e4f,   1.5e-8f, INFINITY, NAN };
    float *x = host_memory(rows * cols * sizeof *x);
    rng_floats(&numbers, x, rows * cols, 2.0);
    if (rows > 1)
        memset(x + cols, 0, cols * sizeof *x);
    size_t count = FT_COUNT(special) - draw(3); /* with NaN, without, without infinity */
    for (size_t i = 0; rows > 2 && i < count && 3 * i < cols; i++)
        x[2 * cols + 3 * i] = special[i];
    return matrix_of(x, rows, cols, dtype, 0.0f);
}

/* ---- Norm --------------------------------------------------------------------------------- */

/* Less than a vector, vectors and a rest, models' own; around what registers hold. */
static const size_t norm_widths[] = { 1,    3,    8,    64,   70,   255,  256,  260,   704,
                                      2048, 2052, 4096, 4099, 5120, 8192, 8196, 10251, 16640 };

typedef struct norm_form {
    ft_norm_kind kind;
    ft_dtype x;
    int residual; /* 0: none; to 3: reals; 4: codes */
    result second, out, codes;
} norm_form;

static size_t norm_case(const norm_form *f, size_t rows, size_t cols)
{
    both b;
    begin_case();
    begin(&b, FT_OP_NORM, ft_cpu_norm, ft_cuda_norm);
    b.op.attr.norm = f->kind;
    b.op.attr.eps = 1e-5f;
    b.in[0] = special_rows(rows, cols, f->x);
    if (f->residual > 0)
        b.in[1] = f->residual == 4 ? random_matrix(rows, cols, FT_I8, 0.031f)
                                   : random_matrix(rows, cols, reals[f->residual - 1], 0.0f);
    b.second = room_for(f->second, rows, cols);
    b.out = room_for(f->out, rows, cols);
    b.codes = room_for(f->codes, rows, cols);
    add_weight(&b, 0, 1, cols, FT_F32);
    if (f->kind == FT_NORM_LAYER)
        add_weight(&b, 1, 1, cols, FT_F32);
    size_t wrong = run_both(&b);
    if (wrong > 0)
        diag("%s norm, %zu x %zu, %s, residual %d, sum %d %s, out %d %s, codes %d %s: %zu wrong",
             f->kind == FT_NORM_RMS ? "rms" : "layer", rows, cols, ft_dtype_name(f->x), f->residual,
             f->second.form, ft_dtype_name(f->second.dtype), f->out.form,
             ft_dtype_name(f->out.dtype), f->codes.form, ft_dtype_name(f->codes.dtype), wrong);
    return wrong;
}

/* Something is written: floats, codes, or both; and the sum, perhaps. */
static norm_form draw_form(ft_dtype x, int residual)
{
    norm_form f = { .kind = draw(4) == 0 ? FT_NORM_LAYER : FT_NORM_RMS, .x = x };
    f.residual = residual;
    f.codes = codes_of_all_sorts[draw(FT_COUNT(codes_of_all_sorts))];
    f.out = (result){ f.codes.form == NOTHING || draw(2) == 0 ? FLOATS : NOTHING, reals[draw(3)] };
    f.second = (result){ residual > 0 && draw(3) > 0 ? FLOATS : NOTHING, reals[draw(3)] };
    return f;
}

static void test_norms(size_t step)
{
    for (size_t x = 0; x < FT_COUNT(reals); x++)
        for (int residual = 0; residual < 5; residual++) {
            size_t wrong = 0;
            for (size_t i = 0; i < FT_COUNT(norm_widths); i += step)
                for (int again = 0; again < 4; again++) {
                    norm_form f = draw_form(reals[x], residual);
                    wrong += norm_case(&f, 1 + draw(4), norm_widths[i]);
                }
            is_int((long long) wrong, 0, "norm: %s plus %s, to sums, floats and codes",
                   ft_dtype_name(reals[x]),
                   residual == 0   ? "nothing"
                   : residual == 4 ? "codes"
                                   : ft_dtype_name(reals[residual - 1]));
        }
}

/* More rows than a device has multiprocessors, several times. */
static void test_many_norms(size_t step)
{
    static const size_t widths[] = { 64, 704, 2052, 4096, 5120, 8192, 10252 };
    static const norm_form decoder = {
        FT_NORM_RMS, FT_F32, 1, { FLOATS, FT_F32 }, { NOTHING, FT_F32 }, { DYNAMIC, FT_I8 }
    };
    size_t wrong = norm_case(&decoder, 700, 4096);
    for (size_t i = 0; i < FT_COUNT(widths); i += step)
        for (int again = 0; again < 3; again++) {
            norm_form f = draw_form(reals[draw(3)], (int) draw(5));
            wrong += norm_case(&f, 1 + draw(700), widths[i]);
        }
    is_int((long long) wrong, 0, "norm: up to 700 rows");
}

void test_rows(size_t step)
{
    keep_halves(true);
    test_norms(step);
    test_many_norms(step);
    keep_halves(false);
}

#else

typedef int ft_nothing_without_cuda;

#endif
