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
enum { THREADS = 256, LOADS_PER_THREAD = 4, MAX_CTAS = 1056 };

/* Counts elements i, i + THREADS, ... of each CTA's part. */
static __global__ void __launch_bounds__(THREADS)
    count_kernel(const ft_cuda_counts counts, void *x, ft_dtype dtype, size_t n)
{
    ft_local_counts local = {};
    size_t stride = (size_t) gridDim.x * THREADS;
    ft_pdl_wait();
    ft_pdl_launch_dependents();
    for (size_t i = (size_t) blockIdx.x * THREADS + threadIdx.x; i < n;
         i += LOADS_PER_THREAD * stride) {
        ft_raw_vec<1> bits[LOADS_PER_THREAD];
#pragma unroll
        for (int s = 0; s < LOADS_PER_THREAD; s++)
            if (i + s * stride < n)
                ft_load_raw<1>(bits[s], x, dtype, i + s * stride);
#pragma unroll
        for (int s = 0; s < LOADS_PER_THREAD; s++) {
            float value;
            ft_unpack<1>(&value, bits[s], dtype);
            if (i + s * stride < n)
                ft_count_one(counts, local, value);
        }
    }
    ft_flush_counts(counts, local);
}

static int count(void *stream, bool has_pdl, const ft_cuda_counts *counts, const void *x,
                 ft_dtype dtype, size_t n)
{
    unsigned ctas = ft_ceil_div(n, THREADS);
    if (n == 0)
        return (int) cudaSuccess;
    return ft_launch(count_kernel, ctas < MAX_CTAS ? ctas : MAX_CTAS, THREADS, 0, stream, has_pdl,
                     1, *counts, (void *) x, dtype, n);
}

/* ---- Operations ---------------------------------------------------------------------------- */

extern "C" int ft_cuda_count(void *stream, const ft_cuda_counts *counts, const float *x, size_t n)
{
    return count(stream, false, counts, x, FT_F32, n);
}

extern "C" int ft_cuda_observe(const ft_cuda_args *args)
{
    const ft_view *x = &args->in[0];
    if (args->counts == NULL)
        return (int) cudaSuccess;
    return count(args->stream, args->props->has_pdl, args->counts, x->data, x->dtype,
                 x->rows * x->cols);
}
