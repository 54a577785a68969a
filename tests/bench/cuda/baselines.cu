/*
 * baselines.cu - see baselines.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "tests/bench/cuda/baselines.h"

#include <cuda_fp16.h>

/* A thread writes 32 or 16 f16 of a row: a warp reads complete lines and writes complete sectors.
 */
static __global__ void dequantize_kernel(__half *to, const ft_weight w)
{
    int bits = ft_groupwise_bits(w.dtype), wide = bits == 4 ? 32 : 16;
    size_t blocks = ft_layout_cols(FT_PANEL32, w.cols) / wide;
    size_t own = (size_t) blockIdx.x * blockDim.x + threadIdx.x, block = own / 32;
    size_t row = block / blocks * 32 + own % 32, col = block % blocks * wide;
    if (row >= w.rows)
        return;
    const uint32_t *words = (const uint32_t *) w.data + block * 128 + own % 32;
    uint32_t word[4] = { words[0], words[32], words[64], words[96] };
    size_t at = ft_groupwise_scale_index(&w.groupwise, row, col, w.rows);
    float scale = __half2float(((const __half *) w.groupwise.scale)[at]);
    float zero = (float) ft_groupwise_zero_point(&w.groupwise, at, bits);
    for (int i = 0; i < wide; i += 8) {
        __half2 eight[4];
        for (int t = 0; t < 4; t++) {
            float low = (float) (word[t] >> ft_panel_shift(i, bits) & (1u << bits) - 1);
            float high = (float) (word[t] >> ft_panel_shift(i + 1, bits) & (1u << bits) - 1);
            eight[t] = __floats2half2_rn(scale * (low - zero), scale * (high - zero));
        }
        *(uint4 *) &to[row * w.cols + col + i] = *(const uint4 *) eight;
    }
}

int dequantize(cudaStream_t stream, void *halves, const ft_weight *w)
{
    int wide = ft_groupwise_bits(w->dtype) == 4 ? 32 : 16;
    size_t threads =
        ft_layout_rows(FT_PANEL32, w->rows) * ft_layout_cols(FT_PANEL32, w->cols) / wide;
    dequantize_kernel<<<(unsigned) ((threads + 255) / 256), 256, 0, stream>>>((__half *) halves,
                                                                              *w);
    return (int) cudaGetLastError();
}

enum { SIDE = 16 };

/* One element per thread, with both operands in shared-memory tiles of 16 x 16. */
static __global__ void scalar_kernel(scalar_product p)
{
    __shared__ int8_t x[SIDE][SIDE], w[SIDE][SIDE];
    int row = blockIdx.y * SIDE + threadIdx.y, col = blockIdx.x * SIDE + threadIdx.x;
    int other = blockIdx.x * SIDE + threadIdx.y, groups = p.k / p.group;
    float total = 0.0f;
    for (int group = 0; group < groups; group++) {
        int sum = 0, quantized = 0;
        for (int k = group * p.group; k < (group + 1) * p.group; k += SIDE) {
            x[threadIdx.y][threadIdx.x] = row < p.m ? p.x[(size_t) row * p.k + k + threadIdx.x] : 0;
            w[threadIdx.y][threadIdx.x] =
                other < p.n ? p.w[(size_t) other * p.k + k + threadIdx.x] : 0;
            __syncthreads();
            for (int i = 0; i < SIDE; i++) {
                sum += x[threadIdx.y][i] * w[threadIdx.x][i];
                quantized += x[threadIdx.y][i];
            }
            __syncthreads();
        }
        if (row < p.m && col < p.n)
            total += p.w_scale[group * p.n + col] * p.x_scale[row * groups + group] *
                     (float) (sum - p.zero[group * p.n + col] * quantized);
    }
    if (row < p.m && col < p.n)
        ((__half *) p.y)[(size_t) row * p.n + col] = __float2half_rn(total);
}

int multiply_scalars(cudaStream_t stream, const scalar_product *p)
{
    dim3 grid((unsigned) (p->n + SIDE - 1) / SIDE, (unsigned) (p->m + SIDE - 1) / SIDE);
    scalar_kernel<<<grid, dim3(SIDE, SIDE), 0, stream>>>(*p);
    return (int) cudaGetLastError();
}
