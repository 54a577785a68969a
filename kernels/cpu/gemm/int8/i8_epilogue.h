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

enum { FINISH_STEP = 4 * LANES };

/* ft_dtype_size() as a compile-time constant. */
FT_INLINE size_t finish_size(ft_dtype dtype)
{
    return dtype == FT_I8 ? 1 : dtype == FT_F16 ? 2 : 4;
}

/* EPILOGUE_COLS columns of one row; residual may be NULL. */
FT_INLINE void finish_step(const int32_t *sums, vf x_scale, const float *w_scale, const float *bias,
                           ft_activation activation, const float *residual, vf inverse,
                           ft_dtype dtype, void *y)
{
    vf value[4];
    FT_UNROLL
    for (int i = 0; i < 4; i++) {
        vf scale = x_scale * vf_load(w_scale + i * LANES);
        vf real = vf_fma(vf_load_sums(sums + i * LANES), scale, vf_load(bias + i * LANES));
        value[i] = vf_activate(activation, real);
    }
    if (residual != NULL) {
        FT_UNROLL
        for (int i = 0; i < 4; i++)
            value[i] = value[i] + vf_load(residual + i * LANES);
    }
    FT_UNROLL
    for (int i = 0; i < 4; i++) {
        if (dtype == FT_I8)
            value[i] = vf_clamped_code(value[i], inverse);
        else if (dtype == FT_F16)
            vf_store_halves((uint16_t *) y + i * LANES, value[i]);
        else
            vf_store((float *) y + i * LANES, value[i]);
    }
    if (dtype == FT_I8)
        vf_store_codes(y, value);
}

/* The last columns of a row, fewer than EPILOGUE_COLS. */
FT_INLINE void finish_rest(const int32_t *sums, vf x_scale, const float *w_scale, const float *bias,
                           ft_activation activation, const float *residual, vf inverse,
                           ft_dtype dtype, void *y, size_t cols)
{
    float values[FINISH_STEP], added[FINISH_STEP] = { 0 };
    if (residual != NULL)
        memcpy(added, residual, cols * sizeof *added);
    finish_step(sums, x_scale, w_scale, bias, activation, residual != NULL ? added : NULL, inverse,
                dtype, values);
    memcpy(y, values, cols * finish_size(dtype));
}

FT_INLINE void finish_rows(const ft_i8_finish *f, const int32_t *sums, size_t stride,
                           size_t first_row, size_t rows, ft_activation activation, ft_dtype dtype)
{
    size_t size = finish_size(dtype);
    size_t whole = f->cols / FINISH_STEP * FINISH_STEP;
    vf inverse = vf_set(f->out_inverse);
    for (size_t row = 0; row < rows; row++, sums += stride) {
        char *y = (char *) f->y + (first_row + row) * f->y_stride * size;
        const float *residual =
            f->residual != NULL ? f->residual + (first_row + row) * f->residual_stride : NULL;
        vf x_scale = vf_set(f->x_scales != NULL ? f->x_scales[first_row + row] : f->x_scale);
        for (size_t col = 0; col < whole; col += FINISH_STEP)
            finish_step(sums + col, x_scale, f->w_scale + col, f->bias + col, activation,
                        residual != NULL ? residual + col : NULL, inverse, dtype, y + col * size);
        if (whole < f->cols)
            finish_rest(sums + whole, x_scale, f->w_scale + whole, f->bias + whole, activation,
                        residual != NULL ? residual + whole : NULL, inverse, dtype,
                        y + whole * size, f->cols - whole);
    }
}

/* One loop per activation and output dtype. */
static void finish(const ft_i8_finish *f, const int32_t *sums, size_t stride, size_t first_row,
                   size_t rows)
{
#define FINISH_AS(name)                                                                            \
    case name:                                                                                     \
        if (f->y_dtype == FT_I8)                                                                   \
            finish_rows(f, sums, stride, first_row, rows, name, FT_I8);                            \
        else if (f->y_dtype == FT_F16)                                                             \
            finish_rows(f, sums, stride, first_row, rows, name, FT_F16);                           \
        else                                                                                       \
            finish_rows(f, sums, stride, first_row, rows, name, FT_F32);                           \
        return
    switch (f->activation) {
        FINISH_AS(FT_ACT_NONE);
        FINISH_AS(FT_ACT_GELU);
        FINISH_AS(FT_ACT_GELU_CODES);
        FINISH_AS(FT_ACT_GELU_TANH);
        FINISH_AS(FT_ACT_RELU);
        FINISH_AS(FT_ACT_TANH);
        FINISH_AS(FT_ACT_SILU);
    }
#undef FINISH_AS
}

#endif
