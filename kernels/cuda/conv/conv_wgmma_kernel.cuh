/*
 * conv_wgmma_kernel.cuh - the kernel of conv_wgmma.cuh and its launch.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_CONV_CONV_WGMMA_KERNEL_CUH
#define FT_KERNELS_CUDA_CONV_CONV_WGMMA_KERNEL_CUH

#include "kernels/cuda/conv/conv_wgmma_epilogue.cuh"
#include "kernels/cuda/conv/conv_wgmma_producer.cuh"

#ifdef FT_HAS_WGMMA

/* Consumer warpgroups. */
template <class FORM>
__device__ __forceinline__ void conv_consumer(const char *stages_smem, conv_storage &storage,
                                              const conv_gemm_params &p)
{
    int consumer = threadIdx.x / CONV_WARPGROUP, warp = threadIdx.x / 32 % 4,
        g = threadIdx.x % 32 / 4;
    conv_operands o = conv_operands_of<FORM>(p, consumer);
    ft_pipeline_state state = { 0, 0 };
    ft_pdl_wait();
    for (int tile = (int) blockIdx.x; tile < p.tiles; tile += (int) gridDim.x) {
        conv_tile_coord coord = conv_tile_coord_of(p, tile);
        int output = coord.output + (p.split_windows ? 0 : consumer * 64);
        int window = coord.window + (p.split_windows ? consumer * FORM::windows : 0);
        conv_accumulators<FORM> sums;
        if constexpr (FORM::bits > 0)
            conv_mainloop_groupwise<FORM>(sums, stages_smem, storage, p, o, state,
                                          output + warp / 2 * 32 + 4 * g + warp % 2 * 2);
        else
            conv_mainloop<FORM>(sums, stages_smem, storage, p, o, state, p.k_blocks);
        conv_epilogue<FORM>(storage.staging[threadIdx.x / 32], p, output, coord.segment, window,
                            sums);
    }
}

#endif

/* grid = at most the number of CTAs that run concurrently */
template <class FORM>
static __global__ void __launch_bounds__(FORM::threads, FORM::ctas_per_sm)
    conv_kernel(const __grid_constant__ conv_gemm_params p)
{
#ifdef FT_HAS_WGMMA
    extern __shared__ __align__(1024) char stages_smem[];
    auto &storage = *(conv_storage *) (stages_smem + p.stages * conv_stage_bytes(p));
    if (threadIdx.x == CONV_CONSUMERS)
        conv_init_barriers<FORM>(storage, p, CONV_CONSUMERS / 32);
    __syncthreads();
    if (threadIdx.x < CONV_CONSUMERS) {
        if constexpr (FORM::bits > 0)
            asm volatile("setmaxnreg.inc.sync.aligned.u32 184;");
        conv_consumer<FORM>(stages_smem, storage, p);
    } else {
        conv_producer<FORM>(stages_smem, storage, p);
    }
#endif
}

/* ---- Host ----------------------------------------------------------------------------------- */

/* Launches with as many stages as fit. */
template <class FORM>
static int conv_launch(const ft_cuda_device_props *props, void *stream, conv_gemm_params *p)
{
    auto *kernel = conv_kernel<FORM>;
    size_t stage = (size_t) conv_stage_bytes(*p);
    int ctas_per_sm = p->one_cta_per_sm ? 1 : FORM::ctas_per_sm;
    size_t smem_bytes =
        ctas_per_sm == 1 ? props->smem_bytes : (props->smem_bytes + 1024) / 2 - 1024;
    size_t stages = (smem_bytes - CONV_STORAGE_BYTES) / stage;
    p->stages = (int) (stages < CONV_MAX_STAGES ? stages : CONV_MAX_STAGES);
    size_t bytes = (size_t) p->stages * stage + CONV_STORAGE_BYTES;
    int max_ctas = props->sm_count * ctas_per_sm;
    int status = (int) cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                            (int) bytes);
    if (status == 0)
        status = (int) cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout,
                                            cudaSharedmemCarveoutMaxShared);
    if (status != 0)
        return status;
    return ft_launch(kernel, (unsigned) (p->tiles < max_ctas ? p->tiles : max_ctas), FORM::threads,
                     bytes, stream, props->has_pdl, 1, *p);
}

#endif
