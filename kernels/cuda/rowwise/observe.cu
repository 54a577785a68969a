/*
 * observe.cu - the operation OBSERVE: counts the values of a calibration point.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/common.cuh"
#include "kernels/cuda/rowwise/count.cuh"
#include "kernels/cuda/rows.cuh"

/*
 * Each thread of a CTA loads 4 values at a time, STEPS times; 1056 CTAs fill 132 multiprocessors.
 */
enum { THREADS = 256, STEPS = 4, BLOCKS = 1056 };

/* Counts elements i, i + THREADS, ... of each CTA's part. */
static __global__ void __launch_bounds__(THREADS)
    count_kernel(const ft_cuda_counts counts, void *x, ft_dtype dtype, size_t n)
{
    ft_seen seen = {};
    size_t stride = (size_t) gridDim.x * THREADS;
    ft_wait_for_predecessor();
    ft_let_successor_begin();
    for (size_t i = (size_t) blockIdx.x * THREADS + threadIdx.x; i < n; i += STEPS * stride) {
        ft_bits<1> bits[STEPS];
#pragma unroll
        for (int s = 0; s < STEPS; s++)
            if (i + s * stride < n)
                ft_fetch<1>(bits[s], x, dtype, i + s * stride);
#pragma unroll
        for (int s = 0; s < STEPS; s++) {
            float value;
            ft_unpack<1>(&value, bits[s], dtype);
            if (i + s * stride < n)
                ft_count_one(counts, seen, value);
        }
    }
    ft_count_seen(counts, seen);
}

static int count(void *stream, bool overlaps, const ft_cuda_counts *counts, const void *x,
                 ft_dtype dtype, size_t n)
{
    unsigned blocks = ft_cover(n, THREADS);
    if (n == 0)
        return (int) cudaSuccess;
    return ft_launch(count_kernel, blocks < BLOCKS ? blocks : BLOCKS, THREADS, 0, stream, overlaps,
                     1, *counts, (void *) x, dtype, n);
}

/* ---- Operations ---------------------------------------------------------------------------- */

extern "C" int ft_cuda_count(void *stream, const ft_cuda_counts *counts, const float *x, size_t n)
{
    return count(stream, false, counts, x, FT_F32, n);
}

extern "C" int ft_cuda_observe(const ft_cuda_args *args)
{
    const ft_cuda_view *x = &args->in[0];
    if (args->counts == NULL)
        return (int) cudaSuccess;
    return count(args->stream, args->chip->overlaps, args->counts, x->data, x->dtype,
                 x->rows * x->cols);
}
