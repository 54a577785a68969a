/*
 * simt.cu - INT8 GEMM for any shape on any device.
 *
 * It requires no tensor cores, alignment or size multiples: it is the reference for the faster
 * kernels and the fallback where they do not apply. It also computes fake-quantized plans, whose
 * quantized values are stored in float and packed to int8 while they are staged.
 *
 * A thread block computes a 64 x 64 tile, each of its 256 threads 4 x 4 results, with dp4a on words
 * of four int8 values. Both operands are stored in shared memory as [row][word] with an odd number
 * of words per row, which avoids bank conflicts between threads on neighbouring rows.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/common.cuh"
#include "kernels/cuda/cuda.h"
#include "kernels/cuda/gemm/int8/store_out.cuh"
#include "kernels/layout.h"

enum {
    THREADS = 256,
    TILE = 64,
    THREAD_TILE = 4,
    WORDS = 16,
    ROW_WORDS = WORDS + 1,
    TILE_K = 4 * WORDS
};

/* int8 operands: x row-major, w in COL4_4R2_8C. */
typedef struct int8_operands {
    const int8_t *x, *w;
    size_t k, padded_n;
} int8_operands;

/* Fake-quantized operands: integers in float, both row-major. */
typedef struct fake_quant_operands {
    const float *x, *w;
    size_t k;
} fake_quant_operands;

__device__ __forceinline__ uint32_t int8_at(const int8_t *x, size_t at)
{
    return (uint8_t) x[at];
}

__device__ __forceinline__ uint32_t int8_at(const float *x, size_t at)
{
    return (uint8_t) (int8_t) x[at];
}

/* Four int8 values of a row-major matrix from column `col`, zero-padded. */
template <typename element>
__device__ __forceinline__ uint32_t load_word(const element *x, size_t k, size_t row, size_t col)
{
    uint32_t word = 0;
#pragma unroll
    for (unsigned i = 0; i < 4; i++) {
        if (col + i < k)
            word |= int8_at(x, row * k + col + i) << (8 * i);
    }
    return word;
}

__device__ __forceinline__ uint32_t x_word(const int8_operands &s, size_t row, size_t col)
{
    if (s.k % 4 == 0 && (uintptr_t) s.x % 4 == 0)
        return col < s.k ? *(const uint32_t *) (s.x + row * s.k + col) : 0;
    return load_word(s.x, s.k, row, col);
}

/* Four neighbouring columns are four bytes; padding of w is multiplied by zeros of x. */
__device__ __forceinline__ uint32_t w_word(const int8_operands &s, size_t row, size_t col)
{
    return col < s.k ? *(const uint32_t *) (s.w + ft_offset_col4(row, col, s.padded_n)) : 0;
}

__device__ __forceinline__ uint32_t x_word(const fake_quant_operands &s, size_t row, size_t col)
{
    return load_word(s.x, s.k, row, col);
}

__device__ __forceinline__ uint32_t w_word(const fake_quant_operands &s, size_t row, size_t col)
{
    return load_word(s.w, s.k, row, col);
}

/* blockDim.x = 256; grid = (tiles of rows, tiles of columns). */
template <typename operands>
__global__ void __launch_bounds__(THREADS)
    simt_kernel(const __grid_constant__ ft_cuda_gemm_args p, const ft_output_layout shape,
                const operands s)
{
    __shared__ uint32_t x[TILE * ROW_WORDS], w[TILE * ROW_WORDS];
    size_t first_row = (size_t) blockIdx.x * TILE, first_col = (size_t) blockIdx.y * TILE;
    unsigned thread_row = threadIdx.x / 16, thread_col = threadIdx.x % 16;
    int32_t sum[THREAD_TILE][THREAD_TILE] = {};
    ft_pdl_wait();
    for (size_t k0 = 0; k0 < p.k; k0 += TILE_K) {
        for (unsigned i = threadIdx.x; i < TILE * WORDS; i += THREADS) {
            size_t row = i / WORDS, word = i % WORDS, col = k0 + 4 * word;
            size_t at = row * ROW_WORDS + word;
            x[at] = first_row + row < p.m ? x_word(s, first_row + row, col) : 0;
            w[at] = first_col + row < p.n ? w_word(s, first_col + row, col) : 0;
        }
        __syncthreads();
        for (unsigned word = 0; word < WORDS; word++) {
#pragma unroll
            for (unsigned i = 0; i < THREAD_TILE; i++) {
#pragma unroll
                for (unsigned j = 0; j < THREAD_TILE; j++)
                    sum[i][j] =
                        __dp4a((int) x[(thread_row + 16 * i) * ROW_WORDS + word],
                               (int) w[(thread_col + 16 * j) * ROW_WORDS + word], sum[i][j]);
            }
        }
        __syncthreads();
    }
    ft_pdl_launch_dependents();
    for (unsigned i = 0; i < THREAD_TILE; i++) {
        uint32_t row = (uint32_t) first_row + thread_row + 16 * i;
        for (unsigned j = 0; j < THREAD_TILE && row < p.m; j++) {
            uint32_t col = (uint32_t) first_col + thread_col + 16 * j;
            if (col >= p.n)
                break;
            float scale = ft_column_scale(p, col) * ft_row_scale(p, row);
            ft_store_output_residual(
                p, shape, row, col,
                ft_output_value<FT_EPILOGUE_ANY>(p, sum[i][j], scale, ft_column_bias(p, col)));
        }
    }
}

static dim3 grid_of(const ft_cuda_gemm_args *p)
{
    return dim3(ft_ceil_div(p->m, TILE), ft_ceil_div(p->n, TILE));
}

/* ------------------------------------------------------------------------------------------ */

extern "C" bool ft_cuda_gemm_simt_supports(const ft_cuda_device_props *props,
                                           const ft_cuda_gemm_args *p)
{
    (void) props;
    return p->w != NULL;
}

extern "C" int ft_cuda_gemm_simt(const ft_cuda_device_props *props, void *stream,
                                 const ft_cuda_gemm_args *p)
{
    int8_operands operands = { p->x, p->w, p->k, ft_layout_rows(FT_COL4_4R2_8C, p->n) };
    return ft_launch(simt_kernel<int8_operands>, grid_of(p), THREADS, 0, stream, props->has_pdl, 1,
                     *p, ft_output_layout_of(p), operands);
}

extern "C" int ft_cuda_gemm_fake_quantized(void *stream, const ft_cuda_gemm_args *p, const float *x,
                                           const float *w)
{
    fake_quant_operands operands = { x, w, p->k };
    return ft_launch(simt_kernel<fake_quant_operands>, grid_of(p), THREADS, 0, stream, false, 1, *p,
                     ft_output_layout_of(p), operands);
}
