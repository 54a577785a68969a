/*
 * i8_softmax.h - quantized softmax of rows of int32 scores: kernels/softmax.h.
 *
 * Included once by the file of each instruction set.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CPU_GEMM_INT8_I8_SOFTMAX_H
#define FT_KERNELS_CPU_GEMM_INT8_I8_SOFTMAX_H

#include "kernels/cpu/gemm/int8/i8.h"
#include "kernels/cpu/base/simd_math.h"

enum { SOFTMAX_VECTORS = VF_REDUCE_WIDTH / LANES, SOFTMAX_COLS = 4 * LANES };

/* `count` is a multiple of VF_REDUCE_WIDTH. */
FT_INLINE float row_max(const int32_t *scores, size_t count)
{
    vf max_v[SOFTMAX_VECTORS];
    FT_UNROLL
    for (int v = 0; v < SOFTMAX_VECTORS; v++)
        max_v[v] = vf_load_i32(scores + v * LANES);
    for (size_t i = VF_REDUCE_WIDTH; i < count; i += VF_REDUCE_WIDTH) {
        FT_UNROLL
        for (int v = 0; v < SOFTMAX_VECTORS; v++)
            max_v[v] = vf_max(max_v[v], vf_load_i32(scores + i + (size_t) v * LANES));
    }
    return vf_reduce_max(max_v);
}

/*
 * Quantizes `count` scores, a multiple of SOFTMAX_COLS, and returns the sum of the results: exact
 * in any order.
 */
FT_INLINE float quantize_row(int8_t *probs, const int32_t *scores, size_t count, float max,
                             float step)
{
    vf sum[4];
    FT_UNROLL
    for (int v = 0; v < 4; v++)
        sum[v] = vf_set(0.0f);
    for (size_t i = 0; i < count; i += SOFTMAX_COLS) {
        vf q[4];
        FT_UNROLL
        for (int v = 0; v < 4; v++) {
            vf delta = vf_set(max) - vf_load_i32(scores + i + (size_t) v * LANES);
            q[v] = vf_softmax_code(delta, step);
            sum[v] = sum[v] + q[v];
        }
        vf_store_i8(probs + i, q);
    }
    float partial[LANES], prob_sum = 0.0f;
    vf_store(partial, (sum[0] + sum[1]) + (sum[2] + sum[3]));
    for (int i = 0; i < LANES; i++)
        prob_sum += partial[i];
    return prob_sum;
}

/*
 * Each phase runs for all rows before the next one starts: a short row alone is one dependency
 * chain.
 */
static void softmax(int8_t *probs, size_t probs_stride, float *prob_sums, int32_t *scores,
                    size_t scores_stride, size_t rows, size_t cols, float step)
{
    float max[FT_I8_TILE];
    size_t padded_cols = ft_round_up(cols, FT_I8_PANEL), n_padding = padded_cols - cols;
    for (size_t row = 0; row < rows; row++) {
        int32_t *row_data = scores + row * scores_stride;
        for (size_t i = cols; i < padded_cols; i++)
            row_data[i] = row_data[0]; /* does not change the maximum, and its output is known */
        max[row] = row_max(row_data, padded_cols);
    }
    for (size_t row = 0; row < rows; row++) {
        int8_t *row_data = probs + row * probs_stride;
        prob_sums[row] =
            quantize_row(row_data, scores + row * scores_stride, padded_cols, max[row], step) -
            (float) n_padding * (float) row_data[0];
        memset(row_data + cols, 0, n_padding);
    }
}

#endif
