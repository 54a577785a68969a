/*
 * softmax.cuh - online softmax on the accumulators of a wgmma.
 *
 * The weights of a row are 2^(score * scale - offset). The offset is a row maximum that lags behind
 * by up to LAG: as long as no score exceeds it by more, the accumulators need no rescaling, which
 * is rare then. Weights are at most 2^LAG, and the row's sum divides them at the end. Whether a row
 * is rescaled depends on the row alone.
 *
 * Tensor cores and arithmetic compete for the register file, so every instruction per score counts.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_ATTENTION_WGMMA_SOFTMAX_CUH
#define FT_KERNELS_CUDA_ATTENTION_WGMMA_SOFTMAX_CUH

#include "kernels/cuda/attention/f16_warp.cuh"
#include "kernels/cuda/attention/wgmma/tile.cuh"

#ifdef FT_HAS_WGMMA

static constexpr float LAG = 8.0f;

/* Factors for what rows g and g + 8 have accumulated so far. */
typedef struct row_rescale {
    float factor[2];
    bool needed; /* by any row of the warp */
} row_rescale;

/*
 * The largest of `start`, which is not negative, and a row's scores in this lane. Floats that are
 * not negative order like their bits, before which all negative ones come, and the hardware
 * compares three integers at once.
 */
static __device__ __forceinline__ float max_above_zero(const float (&s)[KEYS / 2], int row,
                                                       float start)
{
    int most[2] = { __float_as_int(start), __float_as_int(start) };
#pragma unroll
    for (int j = 0; j < KEYS / 8; j++)
        most[j % 2] = __vimax3_s32(most[j % 2], __float_as_int(s[4 * j + 2 * row]),
                                   __float_as_int(s[4 * j + 2 * row + 1]));
    return __int_as_float(max(most[0], most[1]));
}

static __device__ __forceinline__ float max_of_any(const float (&s)[KEYS / 2], int row, float start)
{
    float most[2] = { start, start };
#pragma unroll
    for (int j = 0; j < KEYS / 8; j++)
        most[j % 2] = fmaxf(most[j % 2], fmaxf(s[4 * j + 2 * row], s[4 * j + 2 * row + 1]));
    return fmaxf(most[0], most[1]);
}

/* The largest of the offsets and of the scores of rows g and g + 8. */
static __device__ __forceinline__ void row_max_of(float most[2], const float (&s)[KEYS / 2],
                                                  const float offset[2])
{
    if (__all_sync(~0u, offset[0] >= 0.0f && offset[1] >= 0.0f)) {
        most[0] = max_above_zero(s, 0, offset[0]);
        most[1] = max_above_zero(s, 1, offset[1]);
    } else {
        most[0] = max_of_any(s, 0, offset[0]);
        most[1] = max_of_any(s, 1, offset[1]);
    }
#pragma unroll
    for (int row = 0; row < 2; row++) {
        most[row] = fmaxf(most[row], __shfl_xor_sync(~0u, most[row], 1));
        most[row] = fmaxf(most[row], __shfl_xor_sync(~0u, most[row], 2));
    }
}

/*
 * Turns scores into weights and adds them to the sums. Rows may not have seen any key yet if
 * `may_be_empty`: their offset is -inf and their weights 0. `scale` is positive.
 */
template <bool may_be_empty>
static __device__ __forceinline__ row_rescale softmax_tile(float (&s)[KEYS / 2],
                                                           softmax_stats *rows, float scale)
{
    row_rescale rescale;
    float most[2];
    bool grows[2];
    row_max_of(most, s, rows->row_max);
#pragma unroll
    for (int row = 0; row < 2; row++) {
        float before = rows->row_max[row];
        grows[row] = (most[row] - before) * scale > LAG;
        float offset = grows[row] ? most[row] : before;
        rescale.factor[row] = grows[row] ? ft_exp2_approx((before - offset) * scale) : 1.0f;
        rows->row_max[row] = offset;
        float shift = may_be_empty && offset == -INFINITY ? 0.0f : -offset * scale;
        float sum[2] = {};
#pragma unroll
        for (int j = 0; j < KEYS / 8; j++)
#pragma unroll
            for (int i = 0; i < 2; i++) {
                float *at = &s[4 * j + 2 * row + i];
                *at = ft_exp2_approx(fmaf(*at, scale, shift));
                sum[i] += *at;
            }
        rows->sum[row] = fmaf(rows->sum[row], rescale.factor[row], sum[0] + sum[1]);
    }
    bool complete = fminf(rows->sum[0], rows->sum[1]) < 0.0f; /* never: see the consumer */
    rescale.needed = __any_sync(~0u, grows[0] || grows[1] || complete);
    return rescale;
}

template <int n>
static __device__ __forceinline__ void rescale_rows(float (&acc)[n], const row_rescale &rescale)
{
#pragma unroll
    for (int i = 0; i < n; i++)
        acc[i] *= rescale.factor[i / 2 % 2];
}

#endif
#endif
