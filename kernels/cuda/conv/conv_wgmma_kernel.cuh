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
__device__ __forceinline__ void conv_work(const char *ring, conv_rest &rest, const conv_product &p)
{
    int team = threadIdx.x / CONV_TEAM, warp = threadIdx.x / 32 % 4, g = threadIdx.x % 32 / 4;
    conv_operands o = conv_operands_of<FORM>(p, team);
    conv_at at = { 0, 0 };
    ft_wait_for_predecessor();
    for (int tile = (int) blockIdx.x; tile < p.tiles; tile += (int) gridDim.x) {
        conv_place place = conv_place_of(p, tile);
        int output = place.output + (p.beside ? 0 : team * 64);
        int window = place.window + (p.beside ? team * FORM::windows : 0);
        conv_sums<FORM> sums;
        if constexpr (FORM::bits > 0)
            conv_add_groups<FORM>(sums, ring, rest, p, o, at,
                                  output + warp / 2 * 32 + 4 * g + warp % 2 * 2);
        else
            conv_add_steps<FORM>(sums, ring, rest, p, o, at, p.steps);
        conv_put<FORM>(rest.laid[threadIdx.x / 32], p, output, place.run, window, sums);
    }
}

#endif

/* grid = at most the number of CTAs that run concurrently */
template <class FORM>
static __global__ void __launch_bounds__(FORM::threads, FORM::ctas_per_sm)
    conv_kernel(const __grid_constant__ conv_product p)
{
#ifdef FT_HAS_WGMMA
    extern __shared__ __align__(1024) char ring[];
    auto &rest = *(conv_rest *) (ring + p.stages * conv_stage_bytes(p));
    if (threadIdx.x == CONV_WORKERS)
        conv_set_up<FORM>(rest, p, CONV_WORKERS / 32);
    __syncthreads();
    if (threadIdx.x < CONV_WORKERS) {
        if constexpr (FORM::bits > 0)
            asm volatile("setmaxnreg.inc.sync.aligned.u32 184;");
        conv_work<FORM>(ring, rest, p);
    } else {
        conv_serve<FORM>(ring, rest, p);
    }
#endif
}

/* ---- Host ----------------------------------------------------------------------------------- */

/* Launches with as many stages as fit. */
template <class FORM>
static int conv_launch(const ft_cuda_chip *chip, void *stream, conv_product *p)
{
    auto *kernel = conv_kernel<FORM>;
    size_t stage = (size_t) conv_stage_bytes(*p);
    int ctas_per_sm = p->alone ? 1 : FORM::ctas_per_sm;
    size_t room = ctas_per_sm == 1 ? chip->shared : (chip->shared + 1024) / 2 - 1024;
    size_t stages = (room - CONV_REST) / stage;
    p->stages = (int) (stages < CONV_STAGES ? stages : CONV_STAGES);
    size_t bytes = (size_t) p->stages * stage + CONV_REST;
    int most = chip->multiprocessors * ctas_per_sm;
    int status = (int) cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                            (int) bytes);
    if (status == 0)
        status = (int) cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout,
                                            cudaSharedmemCarveoutMaxShared);
    if (status != 0)
        return status;
    return ft_launch(kernel, (unsigned) (p->tiles < most ? p->tiles : most), FORM::threads, bytes,
                     stream, chip->overlaps, 1, *p);
}

#endif
