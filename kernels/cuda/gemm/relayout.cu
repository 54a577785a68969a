/*
 * relayout.cu - layout conversion of int8 matrices (kernels/layout.h).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/common.cuh"
#include "kernels/cuda/cuda.h"
#include "kernels/layout.h"

enum { THREADS = 256 };

/* One thread per element of the padded output: grid = ceil(elements / THREADS). */
__global__ void relayout_kernel(int8_t *__restrict__ out, ft_layout to,
                                const int8_t *__restrict__ in, ft_layout from, size_t rows,
                                size_t cols)
{
    size_t i = (size_t) blockIdx.x * THREADS + threadIdx.x;
    size_t padded_cols = ft_layout_cols(to, cols);
    size_t row = i / padded_cols, col = i % padded_cols;
    if (row >= ft_layout_rows(to, rows))
        return;
    bool inside = row < rows && col < cols;
    out[ft_offset(to, row, col, rows, cols)] =
        inside ? in[ft_offset(from, row, col, rows, cols)] : (int8_t) 0;
}

/* ------------------------------------------------------------------------------------------ */

extern "C" int ft_cuda_relayout(void *stream, int8_t *out, ft_layout to, const int8_t *in,
                                ft_layout from, size_t rows, size_t cols)
{
    size_t elements = ft_layout_bytes(to, rows, cols);
    relayout_kernel<<<ft_ceil_div(elements, THREADS), THREADS, 0, (cudaStream_t) stream>>>(
        out, to, in, from, rows, cols);
    return (int) cudaGetLastError();
}
