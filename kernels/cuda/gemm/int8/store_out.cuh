/*
 * store_out.cuh - epilogue of the INT8 GEMM kernels: scale, bias, activation, residual, and stores
 * as int8 or float.
 *
 * A thread provides eight neighbouring columns of a row (x8). Whatever does not depend on the row
 * is computed once by ft_output_x8_init(): a division and two 64-bit multiplications cost more than
 * eight results.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_GEMM_INT8_STORE_OUT_CUH
#define FT_KERNELS_CUDA_GEMM_INT8_STORE_OUT_CUH

#include "kernels/cuda/cuda.h"
#include "kernels/cuda/epilogue.cuh"

#include <cuda_fp16.h>

/*
 * Per launch: where the outputs end, and whether eight columns are one aligned vector store (or
 * two).
 */
typedef struct ft_output_layout {
    uint32_t end[FT_CUDA_MAX_FUSED]; /* columns of this output and those before; n beyond the last
                                      * one */
    bool vectorized;
} ft_output_layout;

static inline ft_output_layout ft_output_layout_of(const ft_cuda_gemm_args *p)
{
    ft_output_layout shape = {};
    uintptr_t address = (uintptr_t) p->residual;
    uint32_t ends = 0;
    size_t end = 0;
    for (int i = 0; i < FT_CUDA_MAX_FUSED; i++) {
        end += i < p->n_outputs ? p->width[i] : 0;
        shape.end[i] = (uint32_t) end;
        ends |= shape.end[i];
        address |= i < p->n_outputs ? (uintptr_t) p->y[i] : 0;
    }
    shape.vectorized = ends % 8 == 0 && address % (p->y_dtype == FT_I8 ? 8 : 16) == 0;
    return shape;
}

/* ---- Scales ------------------------------------------------------------------------------- */

/* Scale of a column: the weight scale, times that of x unless x has a scale per row. */
__device__ __forceinline__ float ft_column_scale(const ft_cuda_gemm_args &p, uint32_t col)
{
    return p.x_scales != nullptr ? p.w_scale[col] : p.x_scale * p.w_scale[col];
}

__device__ __forceinline__ float ft_column_bias(const ft_cuda_gemm_args &p, uint32_t col)
{
    return p.bias != nullptr ? p.bias[col] : 0.0f;
}

/* 1 where x has one scale, so the same formula serves both cases: multiplying by 1 is exact. */
__device__ __forceinline__ float ft_row_scale(const ft_cuda_gemm_args &p, uint32_t row)
{
    return p.x_scales != nullptr ? p.x_scales[row] : 1.0f;
}

/* Not inlined: the switch over all activations, eight times or more, would be 10 KB of code. */
static __device__ __noinline__ float ft_activate_any(ft_activation activation, float value)
{
    return ft_activate(activation, value);
}

template <ft_epilogue epilogue>
__device__ __forceinline__ float ft_output_value(const ft_cuda_gemm_args &p, int32_t sum,
                                                 float scale, float bias)
{
    if (epilogue == FT_EPILOGUE_ANY)
        return ft_activate_any(p.activation, ft_dequantize(sum, scale, bias));
    return ft_apply_epilogue<epilogue>(sum, scale, bias, p.activation);
}

/* ---- One element -------------------------------------------------------------------------- */

/*
 * The output that a column belongs to and its first column; selected without indexing because
 * kernel parameters cannot be indexed dynamically.
 */
typedef struct ft_output_slice {
    uint32_t index, first, width;
} ft_output_slice;

__device__ __forceinline__ ft_output_slice ft_output_slice_of(ft_output_layout shape, uint32_t col)
{
    uint32_t index = (col >= shape.end[0]) + (col >= shape.end[1]);
    uint32_t first = index == 0 ? 0 : index == 1 ? shape.end[0] : shape.end[1];
    uint32_t end = index == 0 ? shape.end[0] : index == 1 ? shape.end[1] : shape.end[2];
    return ft_output_slice{ index, first, end - first };
}

/* Pointer and inverse scale of an output. */
__device__ __forceinline__ void *ft_output_ptr(const ft_cuda_gemm_args &p, uint32_t slice)
{
    return slice == 0 ? p.y[0] : slice == 1 ? p.y[1] : p.y[2];
}

__device__ __forceinline__ float ft_output_inv_scale(const ft_cuda_gemm_args &p, uint32_t slice)
{
    return slice == 0 ? p.y_inv_scale[0] : slice == 1 ? p.y_inv_scale[1] : p.y_inv_scale[2];
}

/* Residual of an element. */
__device__ __forceinline__ float ft_load_residual(const ft_cuda_gemm_args &p, uint32_t row,
                                                  uint32_t col)
{
    size_t source = (size_t) row * p.n + col;
    return p.y_dtype == FT_F32 ? ((const float *) p.residual)[source]
                               : __half2float(((const __half *) p.residual)[source]);
}

/* Store one element; FT_F32 with y_inverse > 0 holds quantized values (fake quantization). */
__device__ __forceinline__ void ft_store_output(const ft_cuda_gemm_args &p, ft_output_layout shape,
                                                uint32_t row, uint32_t col, float value)
{
    ft_output_slice slice = ft_output_slice_of(shape, col);
    size_t offset = (size_t) row * slice.width + (col - slice.first);
    void *y = ft_output_ptr(p, slice.index);
    float inv_scale = ft_output_inv_scale(p, slice.index);
    if (p.y_dtype == FT_I8)
        ((int8_t *) y)[offset] = (int8_t) ft_quantize_bits(value, inv_scale);
    else if (p.y_dtype == FT_F32)
        ((float *) y)[offset] = inv_scale > 0.0f ? ft_quantize_to_float(value, inv_scale) : value;
    else
        ((__half *) y)[offset] = __float2half_rn(value);
}

__device__ __forceinline__ void ft_store_output_residual(const ft_cuda_gemm_args &p,
                                                         ft_output_layout shape, uint32_t row,
                                                         uint32_t col, float value)
{
    if (p.residual != nullptr)
        value = value + ft_load_residual(p, row, col);
    ft_store_output(p, shape, row, col, value);
}

/* Store eight elements one by one, where rows are unaligned or end. Not inlined: rare and long. */
static __device__ __noinline__ void ft_store_x8_scalar(const ft_cuda_gemm_args &p,
                                                       ft_output_layout shape, uint32_t row,
                                                       uint32_t col, const float *value)
{
    for (uint32_t i = 0; i < 8 && col + i < p.n; i++)
        ft_store_output_residual(p, shape, row, col + i, value[i]);
}

/* ---- Eight elements (x8) ------------------------------------------------------------------ */

/* Eight columns of y from `col`, a multiple of 8. */
typedef struct ft_output_x8 {
    float scale[8], bias[8];            /* ft_column_scale(), ft_column_bias(): filled by the
                                         * caller */
    char *y;                            /* at row 0 */
    const char *residual;               /* at row 0, or NULL */
    uint32_t y_stride, residual_stride; /* bytes per row */
    float inv_scale;
    uint32_t col;
} ft_output_x8;

__device__ __forceinline__ void ft_output_x8_init(ft_output_x8 &out, const ft_cuda_gemm_args &p,
                                                  ft_output_layout shape, uint32_t col)
{
    uint32_t size = p.y_dtype == FT_I8 ? 1 : p.y_dtype == FT_F16 ? 2 : 4;
    ft_output_slice slice = ft_output_slice_of(shape, col);
    out.y = (char *) ft_output_ptr(p, slice.index) + (size_t) (col - slice.first) * size;
    out.residual =
        p.residual != nullptr ? (const char *) p.residual + (size_t) col * size : nullptr;
    out.y_stride = slice.width * size;
    out.residual_stride = (uint32_t) p.n * size;
    out.inv_scale = ft_output_inv_scale(p, slice.index);
    out.col = col;
    /* opaque to the compiler, which would otherwise recompute all of it for each row */
    asm("" : "+l"(out.y), "+l"(out.residual), "+r"(out.y_stride), "+r"(out.residual_stride));
}

__device__ __forceinline__ void ft_store_x8_i8(char *y, const float value[8], float inv_scale)
{
    uint32_t q[8];
#pragma unroll
    for (int i = 0; i < 8; i++)
        q[i] = ft_quantize_bits(value[i], inv_scale);
    *(uint2 *) y =
        make_uint2(ft_pack_i8x4(q[0], q[1], q[2], q[3]), ft_pack_i8x4(q[4], q[5], q[6], q[7]));
}

__device__ __forceinline__ void ft_store_x8_f32(char *y, const float value[8], const char *residual)
{
#pragma unroll
    for (int i = 0; i < 8; i += 4) {
        float4 four = make_float4(value[i], value[i + 1], value[i + 2], value[i + 3]);
        if (residual != nullptr) {
            float4 other = ((const float4 *) residual)[i / 4];
            four =
                make_float4(four.x + other.x, four.y + other.y, four.z + other.z, four.w + other.w);
        }
        ((float4 *) y)[i / 4] = four;
    }
}

__device__ __forceinline__ void ft_store_x8_f16(char *y, float value[8], const char *residual)
{
    union {
        uint4 words;
        __half2 pair[4];
    } out;
    if (residual != nullptr) {
        out.words = *(const uint4 *) residual;
#pragma unroll
        for (int i = 0; i < 4; i++) {
            value[2 * i] = value[2 * i] + __low2float(out.pair[i]);
            value[2 * i + 1] = value[2 * i + 1] + __high2float(out.pair[i]);
        }
    }
#pragma unroll
    for (int i = 0; i < 4; i++)
        out.pair[i] = __floats2half2_rn(value[2 * i], value[2 * i + 1]);
    *(uint4 *) y = out.words;
}

/* Store one row. */
template <ft_epilogue epilogue>
__device__ __forceinline__ void
ft_output_x8_store(const ft_output_x8 &out, const ft_cuda_gemm_args &p, ft_output_layout shape,
                   uint32_t row, const int32_t sum[8])
{
    float value[8], row_scale = ft_row_scale(p, row);
#pragma unroll
    for (int i = 0; i < 8; i++)
        value[i] = ft_output_value<epilogue>(p, sum[i], out.scale[i] * row_scale, out.bias[i]);
    if (!shape.vectorized) {
        float copy[8]; /* copy in local memory; `value` stays in registers */
#pragma unroll
        for (int i = 0; i < 8; i++)
            copy[i] = value[i];
        ft_store_x8_scalar(p, shape, row, out.col, copy);
        return;
    }
    char *y = out.y + (size_t) row * out.y_stride;
    const char *residual =
        out.residual != nullptr ? out.residual + (size_t) row * out.residual_stride : nullptr;
    if (out.col >= (uint32_t) p.n)
        return;
    if (p.y_dtype == FT_I8)
        ft_store_x8_i8(y, value, out.inv_scale);
    else if (p.y_dtype == FT_F32)
        ft_store_x8_f32(y, value, residual);
    else
        ft_store_x8_f16(y, value, residual);
}

#endif
