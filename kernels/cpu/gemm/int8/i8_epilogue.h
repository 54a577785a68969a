/*
 * i8_epilogue.h - the epilogue of an int8 GEMM: accumulators to int8, float or F16.
 *
 * Included once by the file of each instruction set. Per element: ft_dequantize, the activation,
 * the residual, then ft_quantize or the rounding to F16.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CPU_GEMM_INT8_I8_EPILOGUE_H
#define FT_KERNELS_CPU_GEMM_INT8_I8_EPILOGUE_H

#include "kernels/cpu/gemm/int8/i8.h"
#include "kernels/cpu/base/simd_math.h"

enum { EPILOGUE_COLS = 4 * LANES };

/* ft_dtype_size() as a compile-time constant. */
FT_INLINE size_t output_size(ft_dtype dtype)
{
    return dtype == FT_I8 ? 1 : dtype == FT_F16 ? 2 : 4;
}

/* EPILOGUE_COLS columns of one row; residual may be NULL. */
FT_INLINE void epilogue_cols(const int32_t *acc, vf row_scale, const float *col_scale,
                             const float *bias, ft_activation activation, const float *residual,
                             vf inverse, ft_dtype dtype, void *y)
{
    vf value[4];
    FT_UNROLL
    for (int i = 0; i < 4; i++) {
        vf scale = row_scale * vf_load(col_scale + i * LANES);
        vf dequantized = vf_fma(vf_load_i32(acc + i * LANES), scale, vf_load(bias + i * LANES));
        value[i] = vf_activate(activation, dequantized);
    }
    if (residual != NULL) {
        FT_UNROLL
        for (int i = 0; i < 4; i++)
            value[i] = value[i] + vf_load(residual + i * LANES);
    }
    FT_UNROLL
    for (int i = 0; i < 4; i++) {
        if (dtype == FT_I8)
            value[i] = vf_scale_clamp(value[i], inverse);
        else if (dtype == FT_F16)
            vf_store_f16((uint16_t *) y + i * LANES, value[i]);
        else
            vf_store((float *) y + i * LANES, value[i]);
    }
    if (dtype == FT_I8)
        vf_store_i8(y, value);
}

/* The last columns of a row, fewer than EPILOGUE_COLS. */
FT_INLINE void epilogue_tail(const int32_t *acc, vf row_scale, const float *col_scale,
                             const float *bias, ft_activation activation, const float *residual,
                             vf inverse, ft_dtype dtype, void *y, size_t cols)
{
    float values[EPILOGUE_COLS], residual_tail[EPILOGUE_COLS] = { 0 };
    if (residual != NULL)
        memcpy(residual_tail, residual, cols * sizeof *residual_tail);
    epilogue_cols(acc, row_scale, col_scale, bias, activation,
                  residual != NULL ? residual_tail : NULL, inverse, dtype, values);
    memcpy(y, values, cols * output_size(dtype));
}

FT_INLINE void epilogue_rows(const ft_i8_epilogue *f, const int32_t *acc, size_t stride,
                             size_t first_row, size_t rows, ft_activation activation,
                             ft_dtype dtype)
{
    size_t size = output_size(dtype);
    size_t n_full = f->cols / EPILOGUE_COLS * EPILOGUE_COLS;
    vf inverse = vf_set(f->out_inverse);
    for (size_t row = 0; row < rows; row++, acc += stride) {
        char *y = (char *) f->y + (first_row + row) * f->y_stride * size;
        const float *residual =
            f->residual != NULL ? f->residual + (first_row + row) * f->residual_stride : NULL;
        vf row_scale = vf_set(f->x_scales != NULL ? f->x_scales[first_row + row] : 1.0f);
        for (size_t col = 0; col < n_full; col += EPILOGUE_COLS)
            epilogue_cols(acc + col, row_scale, f->scale + col, f->bias + col, activation,
                          residual != NULL ? residual + col : NULL, inverse, dtype, y + col * size);
        if (n_full < f->cols)
            epilogue_tail(acc + n_full, row_scale, f->scale + n_full, f->bias + n_full, activation,
                          residual != NULL ? residual + n_full : NULL, inverse, dtype,
                          y + n_full * size, f->cols - n_full);
    }
}

/* One loop per activation and output dtype. */
static void epilogue(const ft_i8_epilogue *f, const int32_t *acc, size_t stride, size_t first_row,
                     size_t rows)
{
#define EPILOGUE_CASE(name)                                                                        \
    case name:                                                                                     \
        if (f->y_dtype == FT_I8)                                                                   \
            epilogue_rows(f, acc, stride, first_row, rows, name, FT_I8);                           \
        else if (f->y_dtype == FT_F16)                                                             \
            epilogue_rows(f, acc, stride, first_row, rows, name, FT_F16);                          \
        else                                                                                       \
            epilogue_rows(f, acc, stride, first_row, rows, name, FT_F32);                          \
        return
    switch (f->activation) {
        EPILOGUE_CASE(FT_ACT_NONE);
        EPILOGUE_CASE(FT_ACT_GELU);
        EPILOGUE_CASE(FT_ACT_GELU_APPROX);
        EPILOGUE_CASE(FT_ACT_GELU_TANH);
        EPILOGUE_CASE(FT_ACT_RELU);
        EPILOGUE_CASE(FT_ACT_TANH);
        EPILOGUE_CASE(FT_ACT_SILU);
    }
#undef EPILOGUE_CASE
}

#endif
