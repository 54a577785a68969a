/*
 * groupwise_simt.cu - GEMM with group-wise quantized weights for any device and shape. Used before
 * sm_80, where tensor cores lack bf16.
 *
 * A lane computes one row of a panel, so weights are read in full lines and an element of x is
 * uniform across the warp. A warp computes one token. A row is accumulated column by column, group
 * by group: not the order of the other kernels, but also batch-invariant.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/gemm/groupwise/groupwise.cuh"

enum { TOKENS = 4, THREADS = 32 * TOKENS };

/* A weight as groupwise.cuh defines it: exact, unless scales multiply weights. */
__device__ __forceinline__ float weight_of(const ft_cuda_groupwise_args &p, int integer,
                                           float weight_scale)
{
    float weight = (float) integer;
    if (weight_scale == 1.0f)
        return weight;
    weight *= weight_scale;
    return p.x_dtype == FT_F16 ? __half2float(__float2half_rn(weight))
                               : __bfloat162float(__float2bfloat16_rn(weight));
}

/* Add the columns of one word: 2t and 2t + 1 of each 8 from `column`. */
template <int bits>
__device__ __forceinline__ float add_word(float sum, const ft_cuda_groupwise_args &p, size_t row,
                                          uint32_t word, int zero, float weight_scale, int column)
{
#pragma unroll
    for (int i = 0; i < 32 / bits; i++) {
        int own = i / 2 * 8 + i % 2; /* position of the value among the columns of the word */
        int code = (int) (word >> ft_panel_shift((size_t) own, bits) & (1u << bits) - 1);
        float x = 0.0f;
        if (column + own < (int) p.k)
            ft_load<1>(&x, p.x, p.x_dtype, row * p.k + column + own);
        sum = fmaf(weight_of(p, code - zero, weight_scale), x, sum);
    }
    return sum;
}

/* grid = (panels, ceil(m / TOKENS)) */
template <int bits>
static __global__ void simt_kernel(const __grid_constant__ ft_cuda_groupwise_args p,
                                   const __grid_constant__ groupwise_shape shape)
{
    constexpr int load_columns = 128 / bits; /* columns per block */
    size_t token = (size_t) blockIdx.y * TOKENS + threadIdx.x / 32;
    int lane = (int) threadIdx.x % 32, panel = (int) blockIdx.x;
    int which = groupwise_linear_of(shape, panel);
    const ft_cuda_groupwise_linear &linear = p.linear[which];
    const uint32_t *words =
        (const uint32_t *) (linear.w + (size_t) panel * shape.panel_bytes) + lane;
    bool scales_weights = p.x_dtype != FT_F32 && groupwise_has_step_scales(&p);
    float total = 0.0f;
    ft_pdl_wait();
    ft_pdl_launch_dependents();
    if (token >= p.m)
        return;
    for (int from = 0, next; from < shape.k; from = next) {
        next = shape.k - from > shape.group ? from + shape.group : shape.k;
        size_t at = (size_t) groupwise_group_of(shape, from) * shape.padded_n[which] +
                    panel * GROUPWISE_PANEL_ROWS + lane;
        int zero = linear.zero != NULL ? linear.zero[at] : 1 << (bits - 1);
        float scale = __half2float(((const __half *) linear.scale)[at]), sum = 0.0f;
        for (int column = from; column < next; column += load_columns)
            for (int t = 0; t < 4; t++)
                sum = add_word<bits>(sum, p, token, words[(column / load_columns * 4 + t) * 32],
                                     zero, scales_weights ? scale : 1.0f, column + 2 * t);
        total = fmaf(scales_weights ? 1.0f : scale, sum, total);
    }
    size_t row = (size_t) panel * GROUPWISE_PANEL_ROWS + lane;
    if (row >= linear.rows)
        return;
    if (linear.bias != NULL)
        total += linear.bias[row];
    total = ft_activate(p.activation, total);
    ft_store<1>(linear.y, p.y_dtype, token * linear.rows + row, &total);
}

/* Grids have up to 65535 tiles of tokens. */
bool ft_cuda_groupwise_simt_supports(const ft_cuda_device_props *props,
                                     const ft_cuda_groupwise_args *p)
{
    (void) props;
    return p->m <= (size_t) 65535 * TOKENS && p->k < 1u << 20;
}

int ft_cuda_groupwise_simt(const ft_cuda_device_props *props, void *stream,
                           const ft_cuda_groupwise_args *p)
{
    groupwise_shape shape = groupwise_shape_of(p);
    dim3 grid((unsigned) shape.panels, ft_ceil_div(p->m, TOKENS));
    return ft_launch(p->bits == 4 ? simt_kernel<4> : simt_kernel<8>, grid, THREADS, 0, stream,
                     props->has_pdl, 1, *p, shape);
}
