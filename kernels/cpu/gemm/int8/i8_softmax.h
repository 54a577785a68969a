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

enum { SOFTMAX_VECTORS = VF_PARTS / LANES, SOFTMAX_STEP = 4 * LANES };

/* `count` is a multiple of VF_REDUCE_WIDTH. */
FT_INLINE float largest(const int32_t *scores, size_t count)
{
    vf best[SOFTMAX_VECTORS];
    FT_UNROLL
    for (int v = 0; v < SOFTMAX_VECTORS; v++)
        best[v] = vf_load_sums(scores + v * LANES);
    for (size_t i = VF_PARTS; i < count; i += VF_PARTS) {
        FT_UNROLL
        for (int v = 0; v < SOFTMAX_VECTORS; v++)
            best[v] = vf_max(best[v], vf_load_sums(scores + i + (size_t) v * LANES));
    }
    return vf_largest(best);
}

/*
 * Quantizes `count` scores, a multiple of SOFTMAX_COLS, and returns the sum of the results: exact
 * in any order.
 */
FT_INLINE float encode(int8_t *codes, const int32_t *scores, size_t count, float most, float step)
{
    vf sum[4];
    FT_UNROLL
    for (int v = 0; v < 4; v++)
        sum[v] = vf_set(0.0f);
    for (size_t i = 0; i < count; i += SOFTMAX_STEP) {
        vf code[4];
        FT_UNROLL
        for (int v = 0; v < 4; v++) {
            vf below = vf_set(most) - vf_load_sums(scores + i + (size_t) v * LANES);
            code[v] = vf_rint(vf_softmax_code(below, step));
            sum[v] = sum[v] + code[v];
        }
        vf_store_codes(codes + i, code);
    }
    float parts[LANES], total = 0.0f;
    vf_store(parts, (sum[0] + sum[1]) + (sum[2] + sum[3]));
    for (int i = 0; i < LANES; i++)
        total += parts[i];
    return total;
}

/*
 * Each phase runs for all rows before the next one starts: a short row alone is one dependency
 * chain.
 */
static void softmax(int8_t *codes, size_t codes_stride, float *totals, int32_t *scores,
                    size_t scores_stride, size_t rows, size_t cols, float step)
{
    float most[FT_I8_TILE];
    size_t wide = ft_round_up(cols, FT_I8_PANEL), pads = wide - cols;
    for (size_t row = 0; row < rows; row++) {
        int32_t *of_row = scores + row * scores_stride;
        for (size_t i = cols; i < wide; i++)
            of_row[i] = of_row[0]; /* does not change the maximum, and its output is known */
        most[row] = largest(of_row, wide);
    }
    for (size_t row = 0; row < rows; row++) {
        int8_t *of_row = codes + row * codes_stride;
        totals[row] = encode(of_row, scores + row * scores_stride, wide, most[row], step) -
                      (float) pads * (float) of_row[0];
        memset(of_row + cols, 0, pads);
    }
}

#endif
