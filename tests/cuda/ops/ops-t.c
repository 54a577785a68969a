/*
 * ops-t.c - row operations on the device against the CPU, bit by bit: norm, embed, pool; and
 * sequences of dependent launches, each of which may begin before the previous one has ended.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "tests/tap/tap.h"

#ifdef HAVE_CUDA

#include "tests/cuda/ops/ops.h"

#include "runtime/mem.h"
#include "runtime/tensor.h"

#include <cuda_runtime_api.h>
#include <stdlib.h>
#include <string.h>

static const ft_dtype reals[] = { FT_F32, FT_F16, FT_BF16 };

/* Widths 1 to 70, then those of models, and around the capacity of a warp's registers. */
static const size_t more_widths[] = { 128, 132, 256,  312,  384,  500,  512,  520,  768,  770,
                                      776, 896, 1020, 1024, 1028, 2048, 2052, 4096, 5000, 10250 };
enum { SMALL_WIDTHS = 70, WIDTHS = SMALL_WIDTHS + FT_COUNT(more_widths) };

/* An argument: the stride through the widths, for tools that slow kernels down. */
static size_t step = 1;
static int tried;

static size_t width(size_t i)
{
    return i < SMALL_WIDTHS ? i + 1 : more_widths[i - SMALL_WIDTHS];
}

/* ---- Norm --------------------------------------------------------------------------------- */

/* An operand or result of a norm; the scale of quantized values, 0 for floats. */
typedef struct kind {
    bool there;
    ft_dtype dtype;
    float scale;
} kind;

static const kind nothing = { false, FT_F32, 0.0f };
static const kind residuals[] = {
    { false, FT_F32, 0.0f }, { true, FT_F32, 0.0f },  { true, FT_F16, 0.0f },
    { true, FT_BF16, 0.0f }, { true, FT_I8, 0.031f }, { true, FT_F32, 0.031f },
};
static const kind outs[] = {
    { false, FT_F32, 0.0f }, { true, FT_F32, 0.0f }, { true, FT_F16, 0.0f }, { true, FT_BF16, 0.0f }
};
static const kind quantized[] = { { false, FT_I8, 0.0f },
                                  { true, FT_I8, 0.02f },
                                  { true, FT_F32, 0.02f } };

static const char *name_of(kind k)
{
    return !k.there           ? "nothing"
           : k.scale == 0.0f  ? ft_dtype_name(k.dtype)
           : k.dtype == FT_I8 ? "int8"
                              : "fake-quantized";
}

static size_t norm_case(size_t rows, size_t cols, ft_dtype x, kind residual, kind out, kind code)
{
    both b;
    begin_case();
    begin(&b, FT_OP_NORM, ft_cpu_norm, ft_cuda_norm);
    b.op.attr.eps = 1e-5f;
    b.in[0] = random_matrix(rows, cols, x, 0.0f);
    if (residual.there)
        b.in[1] = random_matrix(rows, cols, residual.dtype, residual.scale);
    if (out.there)
        b.out = result_of(rows, cols, out.dtype, 0.0f);
    if (code.there)
        b.quantized = result_of(rows, cols, code.dtype, code.scale);
    add_weight(&b, 0, 1, cols, FT_F32);
    add_weight(&b, 1, 1, cols, FT_F32);
    size_t wrong = run_both(&b);
    if (wrong > 0)
        diag("%zu x %zu, to %s and %s: %zu elements are wrong", rows, cols, name_of(out),
             name_of(code), wrong);
    return wrong;
}

static void test_norm_of(ft_dtype x, kind residual)
{
    size_t wrong = 0;
    for (size_t i = 0; i < WIDTHS; i += step)
        for (size_t o = 0; o < FT_COUNT(outs); o++)
            for (size_t c = o == 0 ? 1 : 0; c < FT_COUNT(quantized); c++)
                wrong += norm_case(1 + (i + c) % 9, width(i), x, residual, outs[o], quantized[c]);
    is_int((long long) wrong, 0,
           "norm: %s plus %s in %d widths has the CPU's bits in all result dtypes",
           ft_dtype_name(x), name_of(residual), tried);
}

/* More rows than the device runs at once, so that each warp computes several. */
static void test_norm_rows(void)
{
    static const struct {
        ft_dtype x;
        int residual, out, code; /* in the tables above */
    } forms[] = { { FT_F16, 2, 2, 1 }, { FT_F16, 4, 0, 1 }, { FT_F16, 4, 2, 1 },
                  { FT_F16, 0, 2, 0 }, { FT_F16, 0, 0, 1 }, { FT_F32, 1, 1, 1 },
                  { FT_F32, 4, 1, 1 } };
    static const size_t cols[] = { 48, 384, 768, 1000, 1024, 2048 };
    for (size_t f = 0; f < FT_COUNT(forms); f++) {
        size_t wrong = 0;
        kind residual = residuals[forms[f].residual], out = outs[forms[f].out];
        kind code = quantized[forms[f].code];
        for (size_t c = 0; c < FT_COUNT(cols); c++)
            wrong += norm_case(4499, cols[c], forms[f].x, residual, out, code);
        is_int((long long) wrong, 0,
               "norm: 4499 rows of %s plus %s to %s and %s have the CPU's bits",
               ft_dtype_name(forms[f].x), name_of(residual), name_of(out), name_of(code));
    }
    is_int((long long) norm_case(0, 768, FT_F32, residuals[1], outs[1], nothing), 0,
           "norm: a batch without rows writes nothing");
}

static void test_norm(void)
{
    for (size_t x = 0; x < FT_COUNT(reals); x++)
        for (size_t r = 0; r < FT_COUNT(residuals); r++)
            test_norm_of(reals[x], residuals[r]);
    test_norm_rows();
}

/* ---- Embed -------------------------------------------------------------------------------- */

static matrix random_index(size_t rows, size_t below)
{
    int32_t *index = host_memory(rows * sizeof *index);
    for (size_t i = 0; i < rows; i++)
        index[i] = (int32_t) rng_below(&numbers, (uint32_t) below);
    return (matrix){ .host = { index, rows, 1, FT_I32, 0.0f },
                     .device = { to_device(index, rows * sizeof *index), rows, 1, FT_I32, 0.0f } };
}

static size_t embed_case(size_t rows, size_t cols, ft_dtype table, bool types, ft_dtype out)
{
    static const size_t sizes[] = { 97, 31, 2 };
    both b;
    begin_case();
    begin(&b, FT_OP_EMBED, ft_cpu_embed, ft_cuda_embed);
    b.op.attr.embed_scale = 1.0f;
    for (int i = 0; i < (types ? 3 : 2); i++) {
        add_weight(&b, i, sizes[i], cols, table);
        b.in[i] = random_index(rows, sizes[i]);
    }
    b.out = result_of(rows, cols, out, 0.0f);
    return run_both(&b);
}

static void test_embed(void)
{
    for (size_t t = 0; t < FT_COUNT(reals); t++)
        for (size_t o = 0; o < FT_COUNT(reals); o++) {
            size_t wrong = 0;
            for (size_t i = 0; i < WIDTHS; i += step)
                wrong += embed_case(1 + i % 7, width(i), reals[t], i % 3 != 0, reals[o]);
            wrong += embed_case(1111, 768, reals[t], true, reals[o]);
            is_int((long long) wrong, 0,
                   "embed: tables of %s to %s in %d widths have the CPU's bits",
                   ft_dtype_name(reals[t]), ft_dtype_name(reals[o]), tried);
        }
}

/* ---- Pool --------------------------------------------------------------------------------- */

/* Sequences of 1 to 130 rows, and two more past the batch: an empty one and an unlisted one. */
static size_t pool_case(ft_pooling pooling, size_t cols, ft_dtype x, ft_dtype out)
{
    static const int32_t start[] = { 0, 1, 17, 33, 163, 163 };
    enum { SEQUENCES = 4, LISTED = 5, ALL = 6, ROWS = 163 };
    both b;
    begin_case();
    begin(&b, FT_OP_POOL, ft_cpu_pool, ft_cuda_pool);
    b.op.attr.pooling = pooling;
    b.batch = (ft_batch){ .tokens = ROWS, .sequences = SEQUENCES, .longest = 130, .start = start };
    b.device_batch.start = to_device(start, sizeof start);
    b.device_batch.tokens = ROWS;
    b.device_batch.sequences = LISTED;
    b.in[0] = random_matrix(ROWS, cols, x, 0.0f);
    b.out = result_of(ALL, cols, out, 0.0f);
    memset((float *) b.out.host.data + SEQUENCES * cols, 0,
           (ALL - SEQUENCES) * cols * sizeof(float));
    return run_both(&b);
}

static void test_pool(void)
{
    for (ft_pooling pooling = FT_POOL_FIRST; pooling < FT_NUM_POOLINGS; pooling++)
        for (size_t x = 0; x < FT_COUNT(reals); x++)
            for (size_t o = 0; o < FT_COUNT(reals); o++) {
                size_t wrong = 0;
                for (size_t i = 0; i < WIDTHS; i += 3 * step)
                    wrong += pool_case(pooling, width(i), reals[x], reals[o]);
                is_int((long long) wrong, 0,
                       "pool: %s of %s to %s has the CPU's bits, and empty sequences get zeros",
                       ft_pooling_name(pooling), ft_dtype_name(reals[x]), ft_dtype_name(reals[o]));
            }
}

/* ---- Dependent launches --------------------------------------------------------------------- */

/* x = relu(y); then y and its int8 values = norm(x + r); then r = x + int8 values: each reads what
 * the previous one wrote, and writes what the previous one read. */
static void test_queue(size_t rows, size_t cols)
{
    enum { ROUNDS = 60 };
    both relu, norm, add, *const all[] = { &relu, &norm, &add };
    size_t wrong = 0;
    begin_case();
    begin(&relu, FT_OP_ACTIVATE, ft_cpu_activate, ft_cuda_activate);
    begin(&norm, FT_OP_NORM, ft_cpu_norm, ft_cuda_norm);
    begin(&add, FT_OP_ADD, ft_cpu_add, ft_cuda_add);
    matrix x = random_matrix(rows, cols, FT_F32, 0.0f), y = random_matrix(rows, cols, FT_F32, 0.0f);
    matrix r = random_matrix(rows, cols, FT_F32, 0.0f), c = random_matrix(rows, cols, FT_I8, 0.03f);
    relu.op.attr.activation = FT_ACT_RELU;
    relu.in[0] = y, relu.out = x;
    norm.op.attr.eps = 1e-5f;
    norm.in[0] = x, norm.in[1] = r, norm.out = y, norm.quantized = c;
    add_weight(&norm, 0, 1, cols, FT_F32);
    add_weight(&norm, 1, 1, cols, FT_F32);
    add.in[0] = x, add.in[1] = c, add.out = r;
    for (int i = 0; i < 3 * ROUNDS; i++)
        wrong += run_device(all[i % 3]) != 0;
    for (int i = 0; i < 3 * ROUNDS; i++)
        run_host(all[i % 3]);
    wrong += cudaDeviceSynchronize() != cudaSuccess;
    wrong += count_differences(&x) + count_differences(&y) + count_differences(&r) +
             count_differences(&c);
    is_int((long long) wrong, 0, "%d dependent launches of %zu x %zu have the CPU's bits",
           3 * ROUNDS, rows, cols);
}

/* ------------------------------------------------------------------------------------------- */

int main(int argc, char **argv)
{
    if (argc > 1 && atoi(argv[1]) > 0)
        step = strtoul(argv[1], NULL, 10);
    tried = (int) ((WIDTHS + step - 1) / step);
    open_device();
    test_norm();
    test_embed();
    test_pool();
    test_maps();
    test_rows(step);
    test_counts();
    test_linear();
    test_images();
    test_queue(700, 768);
    test_queue(3, 70);
    test_queue(1500, 312);
    return done_testing();
}

#else

int main(void)
{
    skip_all("this build has no CUDA backend");
}

#endif
