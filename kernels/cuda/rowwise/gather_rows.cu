/*
 * gather_rows.cu - the operation GATHER_ROWS: copies the rows whose results the caller needs.
 *
 * Rows are copied as bytes, sixteen at a time where their width allows it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/common.cuh"
#include "kernels/cuda/cuda.h"
#include "runtime/tensor.h"

enum { THREADS = 256 };

typedef struct gather_args {
    void *x, *out;
    int32_t *row; /* row of x for each row of out; 0 for padding rows */
    size_t words; /* per row */
} gather_args;

/* Copies row blockIdx.x of the result. Padding rows of the batch bucket copy row 0. */
template <typename word>
static __global__ void __launch_bounds__(THREADS) gather_kernel(const gather_args s)
{
    size_t col = (size_t) blockIdx.y * THREADS + threadIdx.x;
    ft_pdl_wait();
    ft_pdl_launch_dependents();
    if (col >= s.words)
        return;
    size_t from = (size_t) s.row[blockIdx.x];
    ((word *) s.out)[blockIdx.x * s.words + col] = ((word *) s.x)[from * s.words + col];
}

template <typename word> static int launch(const ft_cuda_args *args, gather_args s, size_t bytes)
{
    s.words = bytes / sizeof(word);
    dim3 grid((unsigned) args->out.rows, ft_ceil_div(s.words, THREADS));
    return ft_launch(gather_kernel<word>, grid, THREADS, 0, args->stream, args->props->has_pdl, 1,
                     s);
}

extern "C" int ft_cuda_gather_rows(const ft_cuda_args *args)
{
    gather_args s = {};
    size_t bytes = args->out.cols * ft_dtype_size(args->out.dtype);
    s.x = args->in[0].data, s.out = args->out.data;
    s.row = (int32_t *) args->batch->selected_rows;
    if (args->out.rows == 0)
        return (int) cudaSuccess;
    return bytes % 16 == 0  ? launch<uint4>(args, s, bytes)
           : bytes % 4 == 0 ? launch<uint32_t>(args, s, bytes)
                            : launch<uint16_t>(args, s, bytes);
}
