/*
 * gemm_f16-t.c - f16 and bf16 GEMMs on sm_90a: all tile configurations give the same bits, and so
 * do fused and separate GEMMs.  batch_invariant-t.c checks these bits against sums in double.
 * Operands are random; guard bytes surround the results.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "tests/tap/tap.h"

#ifdef HAVE_CUDA

#include "kernels/cuda/gemm/f16/wgmma_f16_gemm.h"
#include "kernels/half.h"
#include "runtime/mem.h"
#include "tests/lib/ops/gpu.h"

#include <cuda_runtime_api.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_ROWS = 300, GUARD = 256, POISON = 0x5c };

/* Operands of GEMMs that share x; memory for all results, with guards around each. */
typedef struct problem {
    ft_cuda_float_gemm_args product[FT_CUDA_MAX_FUSED];
    size_t result; /* bytes */
    char *memory;
    size_t each; /* bytes from one result to the next */
} problem;

/* ---- Operands ------------------------------------------------------------------------------- */

static uint64_t state = 1442695040888963407u;

static float draw(void)
{
    state = 6364136223846793005u * state + 1u;
    return (float) (int32_t) (state >> 32) * 0x1p-31f;
}

static void *draw_f16(ft_dtype dtype, size_t n)
{
    uint16_t *data = must_have(n * sizeof *data);
    for (size_t i = 0; i < n; i++)
        data[i] = dtype == FT_F16 ? ft_f16_from_float(draw()) : ft_bf16_from_float(draw());
    void *memory = device_memory(n * sizeof *data);
    to_device(memory, data, n * sizeof *data);
    free(data);
    return memory;
}

static float *draw_bias(size_t n)
{
    float *data = must_have(n * sizeof *data), *memory = device_memory(n * sizeof *data);
    for (size_t i = 0; i < n; i++)
        data[i] = draw();
    to_device(memory, data, n * sizeof *data);
    free(data);
    return memory;
}

/* One of the GEMMs has no bias. */
static problem open_problem(ft_dtype dtype, ft_dtype to, ft_activation activation, size_t m,
                            size_t n, size_t k)
{
    problem q = { .result = m * n * ft_dtype_size(to) };
    void *x = draw_f16(dtype, m * k);
    q.each = ft_round_up(q.result, 16) + GUARD;
    q.memory = device_memory(FT_CUDA_MAX_FUSED * q.each + GUARD);
    for (size_t i = 0; i < FT_CUDA_MAX_FUSED; i++)
        q.product[i] = (ft_cuda_float_gemm_args){
            .m = m,
            .n = n,
            .k = k,
            .x = x,
            .w = draw_f16(dtype, n * k),
            .x_dtype = dtype,
            .w_dtype = dtype,
            .y_dtype = to,
            .bias = i == 1 ? NULL : draw_bias(n),
            .activation = activation,
            .y = q.memory + GUARD + i * q.each,
        };
    return q;
}

static void close_problem(problem *q)
{
    cudaFree((void *) (uintptr_t) q->product[0].x);
    cudaFree(q->memory);
    for (size_t i = 0; i < FT_CUDA_MAX_FUSED; i++) {
        cudaFree((void *) (uintptr_t) q->product[i].w);
        cudaFree((void *) (uintptr_t) q->product[i].bias);
    }
}

/* ---- Runs ----------------------------------------------------------------------------------- */

static void poison(const problem *q)
{
    must((int) cudaMemset(q->memory, POISON, FT_CUDA_MAX_FUSED * q->each + GUARD), "poison");
}

/* All results, and the bytes around them. */
static unsigned char *results_of(const problem *q)
{
    unsigned char *all = must_have(FT_CUDA_MAX_FUSED * q->each + GUARD);
    must((int) cudaDeviceSynchronize(), "GEMM");
    from_device(all, q->memory, FT_CUDA_MAX_FUSED * q->each + GUARD);
    return all;
}

static bool has_guards(const problem *q, const unsigned char *all)
{
    for (size_t i = 0; i < FT_CUDA_MAX_FUSED * q->each + GUARD; i++)
        if ((i < GUARD || (i - GUARD) % q->each >= q->result) && all[i] != POISON)
            return false;
    return true;
}

/* The result of each GEMM alone, with the simplest tile: one thread block for each. */
static unsigned char *expected_of(const ft_cuda_device_props *props, const problem *q, int ranges)
{
    const ft_cuda_f16_tile plain = { .warpgroups = 1, .rows = 64, .blocks_per_sm = 1 };
    poison(q);
    for (size_t i = 0; i < FT_CUDA_MAX_FUSED; i++)
        must(ft_cuda_f16_wgmma_launch_tile(&plain, ranges, props, NULL, &q->product[i], 1),
             "plain");
    return results_of(q);
}

/* A tile configuration, with all GEMMs fused: 1 right, 0 not supported, -1 wrong. */
static int try_form(const ft_cuda_device_props *props, const problem *q,
                    const ft_cuda_f16_tile *form, int ranges, const unsigned char *expected)
{
    poison(q);
    int status =
        ft_cuda_f16_wgmma_launch_tile(form, ranges, props, NULL, q->product, FT_CUDA_MAX_FUSED);
    if (status == (int) cudaErrorNotSupported)
        return 0;
    must(status, "tile configuration");
    unsigned char *found = results_of(q);
    bool same = memcmp(found, expected, FT_CUDA_MAX_FUSED * q->each + GUARD) == 0;
    if (!same)
        diag("%zu x %zu x %zu with %d splits of k: %d x 64 weights by %d rows, %s, %d CTAs per SM: "
             "bits differ",
             q->product[0].m, q->product[0].n, q->product[0].k, ranges, form->warpgroups,
             form->rows, form->cluster_split_k ? "split over a cluster" : "split within a CTA",
             form->blocks_per_sm);
    free(found);
    return same ? 1 : -1;
}

/* As try_form(): tile `tile` of wgmma_f16_large_m.cu, or with splits of wgmma_f16_split_k.cu. */
static int try_large(const ft_cuda_device_props *props, const problem *q, int tile, bool split,
                     const unsigned char *expected)
{
    poison(q);
    int status = (split ? ft_cuda_f16_split_k_launch_tile : ft_cuda_f16_large_m_launch_tile)(
        tile, props, NULL, q->product, FT_CUDA_MAX_FUSED);
    if (status == (int) cudaErrorNotSupported)
        return 0;
    must(status, "large tile");
    unsigned char *found = results_of(q);
    bool same = memcmp(found, expected, FT_CUDA_MAX_FUSED * q->each + GUARD) == 0;
    if (!same)
        diag("%zu x %zu x %zu: bits differ with tile %s", q->product[0].m, q->product[0].n,
             q->product[0].k,
             split ? ft_cuda_f16_split_k_name(tile) : ft_cuda_f16_large_m_name(tile));
    free(found);
    return same ? 1 : -1;
}

/* The tiles for many rows with this number of splits, counted as in try_forms(). */
static int try_large_tiles(const ft_cuda_device_props *props, const problem *q, int ranges,
                           const unsigned char *expected)
{
    int count = 0, tiles = ranges == 1 ? FT_CUDA_F16_LARGE_M_TILES : FT_CUDA_F16_SPLIT_K_TILES;
    for (int i = 0; i < tiles; i++) {
        bool split = ranges > 1, splits = ft_cuda_f16_split_k_splits(i) == ranges;
        int found = split && !splits ? 0 : try_large(props, q, i, split, expected);
        count += found < 0 ? -1000 : found;
    }
    return count;
}

/* The number of supported tile configurations, less a thousand for each that is wrong. */
static int try_forms(const ft_cuda_device_props *props, const problem *q, int ranges)
{
    unsigned char *expected = expected_of(props, q, ranges);
    int count = has_guards(q, expected) ? 0 : -1000;
    for (int rows = 8; rows <= 256; rows *= 2)
        for (int i = 0; i < 8; i++) {
            ft_cuda_f16_tile form = { 1 + i % 2, rows, i / 2 % 2 == 1, 1 + i / 4 };
            int found = try_form(props, q, &form, ranges, expected);
            count += found < 0 ? -1000 : found;
        }
    count += try_large_tiles(props, q, ranges, expected);
    free(expected);
    return count;
}

static void test_forms(const ft_cuda_device_props *props, ft_dtype dtype, ft_dtype to,
                       ft_activation activation, size_t n, size_t k)
{
    static const size_t rows[] = { 1, 7, 66, MAX_ROWS };
    int steps = (int) ((k + 63) / 64), least = 1000;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        problem q = open_problem(dtype, to, activation, rows[i], n, k);
        for (int ranges = 1; ranges <= 4 && ranges <= steps; ranges *= 2) {
            int count = try_forms(props, &q, ranges);
            least = count < least ? count : least;
        }
        close_problem(&q);
    }
    ok(least >= 16,
       "f16 GEMM %zu x %zu of %s to %s, %s, has the same bits with every tile, fused or alone", n,
       k, ft_dtype_name(dtype), ft_dtype_name(to), ft_activation_name(activation));
    diag("at least %d tile configurations", least);
}

/* ---- Supported arguments -------------------------------------------------------------------- */

static void test_refusals(const ft_cuda_device_props *props)
{
    problem q = open_problem(FT_F16, FT_F32, FT_ACT_NONE, 3, 16, 64);
    ft_cuda_float_gemm_args p = q.product[0], two[2] = { p, p };
    ft_cuda_device_props older = *props;
    older.has_wgmma = false;
    ok(ft_cuda_f16_wgmma_supports(props, &p) && !ft_cuda_f16_wgmma_supports(&older, &p),
       "the f16 wgmma kernel supports only devices with wgmma");
    p.k = 63;
    ok(!ft_cuda_f16_wgmma_supports(props, &p),
       "the f16 wgmma kernel does not support a k that is no multiple of 8");
    p = q.product[0];
    p.w_dtype = FT_BF16;
    ok(!ft_cuda_f16_wgmma_supports(props, &p),
       "the f16 wgmma kernel does not support operands of two dtypes");
    two[1].n = 8;
    is_int(ft_cuda_f16_wgmma(props, NULL, two, 2), cudaErrorNotSupported,
           "ft_cuda_f16_wgmma() does not fuse GEMMs of different shapes");
    two[1] = two[0];
    two[1].x = (const char *) two[0].x + 16;
    is_int(ft_cuda_f16_wgmma(props, NULL, two, 2), cudaErrorNotSupported,
           "ft_cuda_f16_wgmma() does not fuse GEMMs with different inputs");
    ft_cuda_f16_tile form = {
        .warpgroups = 1, .rows = 64, .cluster_split_k = true, .blocks_per_sm = 1
    };
    is_int(ft_cuda_f16_wgmma_launch_tile(&form, 2, props, NULL, two, 1), cudaErrorNotSupported,
           "ft_cuda_f16_wgmma_launch_tile() does not split a k of 64 in two");
    form.rows = 24;
    is_int(ft_cuda_f16_wgmma_launch_tile(&form, 1, props, NULL, two, 1), cudaErrorNotSupported,
           "ft_cuda_f16_wgmma_launch_tile() has no tile of 24 rows");
    close_problem(&q);
}

int main(void)
{
    ft_cuda_device_props props = need_gpu();
    if (!props.has_wgmma)
        skip_all("this device or this build has no wgmma");
    test_forms(&props, FT_F16, FT_F32, FT_ACT_NONE, 64, 64);
    test_forms(&props, FT_F16, FT_F16, FT_ACT_RELU, 200, 520);
    test_forms(&props, FT_BF16, FT_BF16, FT_ACT_NONE, 129, 1032);
    test_forms(&props, FT_BF16, FT_F32, FT_ACT_GELU, 1, 8);
    test_forms(&props, FT_F16, FT_F16, FT_ACT_NONE, 1030, 776);
    test_forms(&props, FT_F16, FT_F32, FT_ACT_NONE, 9000, 136);
    test_forms(&props, FT_F16, FT_F16, FT_ACT_NONE, 1032, 776);
    test_forms(&props, FT_BF16, FT_BF16, FT_ACT_GELU, 776, 1096);
    test_forms(&props, FT_F16, FT_F16, FT_ACT_GELU, 320, 200); /* a tile has columns of two GEMMs */
    test_refusals(&props);
    return done_testing();
}

#else

int main(void)
{
    skip_all("this build has no CUDA backend");
}

#endif
