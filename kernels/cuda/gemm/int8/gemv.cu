/*
 * gemv.cu - INT8 GEMV on sm_90 for up to 8 rows: streams the weights once.
 *
 * With so few rows the time is that of reading the weights, so DRAM must never idle: neither
 * between iterations of a thread block, nor between thread blocks, nor between launches. A thread
 * block starts where one of the previous launch has ended and fills its pipelines while others
 * still run and x is being computed: weights depend on no predecessor. (Where two blocks fit on an
 * SM, the blocks of a launch are paired on one half of the device and those of the next launch on
 * the other.)
 *
 * L2 prefetches of the weights of later GEMVs did not help (docs/experiments).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/gemm/int8/gemv.cuh"

#if defined __CUDA_ARCH__ && __CUDA_ARCH__ >= 900
__device__ __forceinline__ void load_x(gemv_smem &s, char *x, const ft_cuda_gemm_args &p,
                                       const gemv_params &shape, unsigned lane)
{
    if (lane == 0)
        ft_mbarrier_arrive_expect_tx(&s.x_full, (unsigned) (p.m * p.k));
    __syncwarp();
    if (lane < p.m)
        ft_bulk_load(x + lane * shape.x_stride, p.x + lane * p.k, (unsigned) p.k, &s.x_full);
}
#endif

/* grid = at most one thread block per row tile; blockDim.x = GEMV_THREADS. */
template <int n_stages>
static __global__ void __launch_bounds__(GEMV_THREADS, 1)
    gemv_kernel(const __grid_constant__ ft_cuda_gemm_args p,
                const __grid_constant__ gemv_params shape)
{
#if defined __CUDA_ARCH__ && __CUDA_ARCH__ >= 900
    extern __shared__ __align__(128) char shared[];
    gemv_smem &s = *(gemv_smem *) shared;
    char *pipelines = shared + GEMV_PIPELINE_OFFSET,
         *x = pipelines + GEMV_WARPS * n_stages * GEMV_STAGE_BYTES;
    unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    if (warp == GEMV_WARPS) {
        gemv_column column;
        gemv_init_epilogue(s, lane);
        column.start(p, blockIdx.x, shape.row_tiles, lane);
        ft_pdl_wait();
        load_x(s, x, p, shape, lane);
        __syncthreads();
        ft_pdl_launch_dependents();
        gemv_row_scales row_scales;
        row_scales.load(p, lane);
        gemv_epilogue(s, column, row_scales, p, shape, lane);
    } else {
        gemv_pipeline<n_stages, false> pipeline(s, pipelines, p, shape, (int) warp);
        __syncwarp();
        pipeline.start();
        ft_pdl_wait();
        __syncthreads();
        ft_pdl_launch_dependents();
        ft_mbarrier_wait(&s.x_full, 0);
        gemv_mainloop(s, x, pipeline, p, shape, warp, lane);
    }
#endif
}

/* ---- Host ----------------------------------------------------------------------------------- */

extern "C" bool ft_cuda_gemm_gemv_supports(const ft_cuda_device_props *props,
                                           const ft_cuda_gemm_args *p)
{
    return props->has_pdl && p->prepacked != NULL && p->m > 0 && p->m <= GEMV_TOKENS && p->n > 0 &&
           p->k > 0 && p->k % 16 == 0 && p->n < 1u << 31 && p->k < 1u << 20 &&
           ft_is_aligned(p->x, 16) && ft_is_aligned(p->prepacked, 16) &&
           ft_cuda_gemm_args_valid(p) &&
           gemv_smem_bytes_of(p, gemv_stages_of(p, props)) <= props->smem_bytes;
}

template <int n_stages>
static int launch(const ft_cuda_device_props *props, void *stream, const ft_cuda_gemm_args *p,
                  const gemv_params &shape)
{
    unsigned max_blocks = (unsigned) props->sm_count, row_tiles = (unsigned) shape.row_tiles;
    size_t bytes = gemv_smem_bytes_of(p, n_stages);
    cudaError_t status = cudaFuncSetAttribute(
        gemv_kernel<n_stages>, cudaFuncAttributeMaxDynamicSharedMemorySize, (int) bytes);
    if (status != cudaSuccess)
        return (int) status;
    return ft_launch(gemv_kernel<n_stages>, dim3(row_tiles < max_blocks ? row_tiles : max_blocks),
                     GEMV_THREADS, bytes, stream, props->has_pdl, 1, *p, shape);
}

extern "C" int ft_cuda_gemm_gemv(const ft_cuda_device_props *props, void *stream,
                                 const ft_cuda_gemm_args *p)
{
    gemv_params shape = gemv_params_of(p);
    switch (gemv_stages_of(p, props)) {
    case 4:
        return launch<4>(props, stream, p, shape);
    case 2:
        return launch<2>(props, stream, p, shape);
    default:
        return launch<1>(props, stream, p, shape);
    }
}
