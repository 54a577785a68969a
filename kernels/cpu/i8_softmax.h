/*
 * i8_softmax.h - rows of integer scores become codes of their softmax.
 *
 * Included once by the file of each instruction set.  The order of the additions does not depend on
 * the width of its vectors: there are always 16 partial sums.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CPU_I8_SOFTMAX_H
#define FT_KERNELS_CPU_I8_SOFTMAX_H

#include "kernels/cpu/i8.h"
#include "kernels/cpu/simd_math.h"

enum { SOFTMAX_PARTS = 16, SOFTMAX_VECTORS = SOFTMAX_PARTS / LANES };

/* `count` is a multiple of SOFTMAX_PARTS. */
FT_INLINE float largest(const int32_t *scores, size_t count)
{
    vf best[SOFTMAX_VECTORS];
    FT_UNROLL
    for (int v = 0; v < SOFTMAX_VECTORS; v++)
        best[v] = vf_load_sums(scores + v * LANES);
    for (size_t i = SOFTMAX_PARTS; i < count; i += SOFTMAX_PARTS) {
        FT_UNROLL
        for (int v = 0; v < SOFTMAX_VECTORS; v++)
            best[v] = vf_max(best[v], vf_load_sums(scores + i + (size_t) v * LANES));
    }
    float parts[SOFTMAX_PARTS], most;
    for (int v = 0; v < SOFTMAX_VECTORS; v++)
        vf_store(parts + v * LANES, best[v]);
    most = parts[0];
    for (int i = 1; i < SOFTMAX_PARTS; i++)
        most = parts[i] > most ? parts[i] : most;
    return most;
}

FT_INLINE float total(const float *values, size_t count)
{
    vf sum[SOFTMAX_VECTORS];
    FT_UNROLL
    for (int v = 0; v < SOFTMAX_VECTORS; v++)
        sum[v] = vf_load(values + v * LANES);
    for (size_t i = SOFTMAX_PARTS; i < count; i += SOFTMAX_PARTS) {
        FT_UNROLL
        for (int v = 0; v < SOFTMAX_VECTORS; v++)
            sum[v] = sum[v] + vf_load(values + i + (size_t) v * LANES);
    }
    float parts[SOFTMAX_PARTS];
    for (int v = 0; v < SOFTMAX_VECTORS; v++)
        vf_store(parts + v * LANES, sum[v]);
    for (int distance = SOFTMAX_PARTS / 2; distance > 0; distance /= 2)
        for (int i = 0; i < distance; i++)
            parts[i] += parts[i + distance];
    return parts[0];
}

static void softmax_row(int8_t *codes, int32_t *scores, float *exps, size_t cols, float scale,
                        float inverse)
{
    size_t padded = ft_round_up(cols, SOFTMAX_PARTS), wide = ft_round_up(cols, FT_I8_PANEL);
    for (size_t i = cols; i < padded; i++)
        scores[i] = scores[0]; /* changes no maximum */
    float most = largest(scores, padded) * scale;
    for (size_t i = 0; i < padded; i += LANES)
        vf_store(exps + i, vf_exp(vf_load_sums(scores + i) * vf_set(scale) - vf_set(most)));
    memset(exps + cols, 0, (wide - cols) * sizeof *exps);
    vf share = vf_set(1.0f / total(exps, padded));
    for (size_t i = 0; i < wide; i += 4 * LANES) {
        vf code[4];
        FT_UNROLL
        for (size_t v = 0; v < 4; v++)
            code[v] = vf_clamped_code(vf_load(exps + i + v * LANES) * share, vf_set(inverse));
        vf_store_codes(codes + i, code);
    }
}

static void softmax(int8_t *codes, size_t codes_stride, int32_t *scores, size_t scores_stride,
                    float *exps, size_t rows, size_t cols, float scale, float inverse)
{
    for (size_t row = 0; row < rows; row++)
        softmax_row(codes + row * codes_stride, scores + row * scores_stride, exps, cols, scale,
                    inverse);
}

#endif
