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

enum { THREADS = 256, TILE = 64, EACH = 4, WORDS = 16, ROW = WORDS + 1, STEP = 4 * WORDS };

/* int8 operands: x row-major, w in COL4_4R2_8C. */
typedef struct codes_source {
    const int8_t *x, *w;
    size_t k, padded_n;
} codes_source;

/* Fake-quantized operands: integers in float, both row-major. */
typedef struct faked_source {
    const float *x, *w;
    size_t k;
} faked_source;

__device__ __forceinline__ uint32_t code_at(const int8_t *x, size_t at)
{
    return (uint8_t) x[at];
}

__device__ __forceinline__ uint32_t code_at(const float *x, size_t at)
{
    return (uint8_t) (int8_t) x[at];
}

/* Four int8 values of a row-major matrix from column `col`, zero-padded. */
template <typename element>
__device__ __forceinline__ uint32_t row_word(const element *x, size_t k, size_t row, size_t col)
{
    uint32_t word = 0;
#pragma unroll
    for (unsigned i = 0; i < 4; i++) {
        if (col + i < k)
            word |= code_at(x, row * k + col + i) << (8 * i);
    }
    return word;
}

__device__ __forceinline__ uint32_t x_word(const codes_source &s, size_t row, size_t col)
{
    if (s.k % 4 == 0 && (uintptr_t) s.x % 4 == 0)
        return col < s.k ? *(const uint32_t *) (s.x + row * s.k + col) : 0;
    return row_word(s.x, s.k, row, col);
}

/* Four neighbouring columns are four bytes; padding of w is multiplied by zeros of x. */
__device__ __forceinline__ uint32_t w_word(const codes_source &s, size_t row, size_t col)
{
    return col < s.k ? *(const uint32_t *) (s.w + ft_offset_col4(row, col, s.padded_n)) : 0;
}

__device__ __forceinline__ uint32_t x_word(const faked_source &s, size_t row, size_t col)
{
    return row_word(s.x, s.k, row, col);
}

__device__ __forceinline__ uint32_t w_word(const faked_source &s, size_t row, size_t col)
{
    return row_word(s.w, s.k, row, col);
}

/* blockDim.x = 256; grid = (tiles of rows, tiles of columns). */
template <typename source>
__global__ void __launch_bounds__(THREADS) plain_kernel(const __grid_constant__ ft_cuda_product p,
                                                        const ft_out_shape shape, const source s)
{
    __shared__ uint32_t x[TILE * ROW], w[TILE * ROW];
    size_t first_row = (size_t) blockIdx.x * TILE, first_col = (size_t) blockIdx.y * TILE;
    unsigned down = threadIdx.x / 16, across = threadIdx.x % 16;
    int32_t sum[EACH][EACH] = {};
    ft_wait_for_predecessor();
    for (size_t first = 0; first < p.k; first += STEP) {
        for (unsigned i = threadIdx.x; i < TILE * WORDS; i += THREADS) {
            size_t row = i / WORDS, word = i % WORDS, col = first + 4 * word;
            size_t at = row * ROW + word;
            x[at] = first_row + row < p.m ? x_word(s, first_row + row, col) : 0;
            w[at] = first_col + row < p.n ? w_word(s, first_col + row, col) : 0;
        }
        __syncthreads();
        for (unsigned word = 0; word < WORDS; word++) {
#pragma unroll
            for (unsigned i = 0; i < EACH; i++) {
#pragma unroll
                for (unsigned j = 0; j < EACH; j++)
                    sum[i][j] = __dp4a((int) x[(down + 16 * i) * ROW + word],
                                       (int) w[(across + 16 * j) * ROW + word], sum[i][j]);
            }
        }
        __syncthreads();
    }
    ft_let_successor_begin();
    for (unsigned i = 0; i < EACH; i++) {
        uint32_t row = (uint32_t) first_row + down + 16 * i;
        for (unsigned j = 0; j < EACH && row < p.m; j++) {
            uint32_t col = (uint32_t) first_col + across + 16 * j;
            if (col >= p.n)
                break;
            float scale = ft_column_scale(p, col) * ft_row_scale(p, row);
            ft_out_one(p, shape, row, col,
                       ft_out_value<FT_EPILOGUE_ANY>(p, sum[i][j], scale, ft_column_bias(p, col)));
        }
    }
}

static dim3 grid_of(const ft_cuda_product *p)
{
    return dim3(ft_cover(p->m, TILE), ft_cover(p->n, TILE));
}

/* ------------------------------------------------------------------------------------------ */

extern "C" bool ft_cuda_gemm_plain_takes(const ft_cuda_chip *chip, const ft_cuda_product *p)
{
    (void) chip;
    return p->w != NULL;
}

extern "C" int ft_cuda_gemm_plain(const ft_cuda_chip *chip, void *stream, const ft_cuda_product *p)
{
    codes_source source = { p->x, p->w, p->k, ft_layout_rows(FT_COL4_4R2_8C, p->n) };
    return ft_launch(plain_kernel<codes_source>, grid_of(p), THREADS, 0, stream, chip->overlaps, 1,
                     *p, ft_out_shape_of(p), source);
}

extern "C" int ft_cuda_gemm_faked(void *stream, const ft_cuda_product *p, const float *x,
                                  const float *w)
{
    faked_source source = { x, w, p->k };
    return ft_launch(plain_kernel<faked_source>, grid_of(p), THREADS, 0, stream, false, 1, *p,
                     ft_out_shape_of(p), source);
}
