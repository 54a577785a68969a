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

typedef struct selection {
    void *x, *out;
    int32_t *row; /* row of x for each row of out; 0 for padding rows */
    size_t units; /* per row */
} selection;

/* Copies row blockIdx.x of the result. Padding rows of the batch bucket copy row 0. */
template <typename unit>
static __global__ void __launch_bounds__(THREADS) select_kernel(const selection s)
{
    size_t col = (size_t) blockIdx.y * THREADS + threadIdx.x;
    ft_wait_for_predecessor();
    ft_let_successor_begin();
    if (col >= s.units)
        return;
    size_t from = (size_t) s.row[blockIdx.x];
    ((unit *) s.out)[blockIdx.x * s.units + col] = ((unit *) s.x)[from * s.units + col];
}

template <typename unit> static int launch(const ft_cuda_args *args, selection s, size_t bytes)
{
    s.units = bytes / sizeof(unit);
    dim3 grid((unsigned) args->out.rows, ft_cover(s.units, THREADS));
    return ft_launch(select_kernel<unit>, grid, THREADS, 0, args->stream, args->chip->overlaps, 1,
                     s);
}

extern "C" int ft_cuda_select(const ft_cuda_args *args)
{
    selection s = {};
    size_t bytes = args->out.cols * ft_dtype_size(args->out.dtype);
    s.x = args->in[0].data, s.out = args->out.data;
    s.row = (int32_t *) args->batch->select;
    if (args->out.rows == 0)
        return (int) cudaSuccess;
    return bytes % 16 == 0  ? launch<uint4>(args, s, bytes)
           : bytes % 4 == 0 ? launch<uint32_t>(args, s, bytes)
                            : launch<uint16_t>(args, s, bytes);
}
