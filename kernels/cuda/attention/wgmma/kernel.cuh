/*
 * kernel.cuh - the body of an attention kernel by TMA and wgmma, and its launch.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_ATTENTION_WGMMA_KERNEL_CUH
#define FT_KERNELS_CUDA_ATTENTION_WGMMA_KERNEL_CUH

#include "kernels/cuda/attention/wgmma/consumer.cuh"
#include "kernels/cuda/attention/wgmma/producer.cuh"

#ifdef FT_HAS_WGMMA

/*
 * Divides the CTA into consumer warpgroups and a producer warp. ROWS, made of the parameters, finds
 * the work items and the rows of their keys; `scores` masks and scales.
 */
template <class SHAPE, bool bf16, class ROWS, class PARAMETERS, class SCORES>
static __device__ __forceinline__ void compute_attention(const attention_maps &maps,
                                                         const PARAMETERS &a, const SCORES &scores)
{
    extern __shared__ __align__(1024) uint8_t shared[];
    attention_storage<SHAPE> *m = (attention_storage<SHAPE> *) shared;
    int warpgroup = warpgroup_index();
    init_barriers<SHAPE>(m, 1);
    ft_pdl_wait();
    ft_pdl_launch_dependents();
    if (warpgroup == SHAPE::warpgroups) {
        if constexpr (SHAPE::warpgroups > 1)
            decrease_registers<SHAPE::producer_registers>();
        if (threadIdx.x % WARPGROUP < 32)
            produce(m, maps, ROWS(a));
    } else {
        if constexpr (SHAPE::warpgroups > 1)
            increase_registers<SHAPE::consumer_registers>();
        attention_output to = { (uint16_t *) a.y, a.heads, a.head_size };
        consume<SHAPE, bf16>(m, scores, to, warpgroup);
    }
}

#endif

/* Launches a kernel of that body with a CTA for each multiprocessor, or for each work item. */
template <class SHAPE, class... PARAMETERS, class... ARGUMENTS>
static int launch_attention(void (*kernel)(PARAMETERS...), const ft_cuda_device_props *props,
                            void *stream, size_t items, const ARGUMENTS &...arguments)
{
    const size_t bytes = sizeof(attention_storage<SHAPE>), sms = (size_t) props->sm_count;
    dim3 grid((unsigned) (items < sms ? items : sms));
    cudaError_t status =
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int) bytes);
    if (status != cudaSuccess)
        return (int) status;
    return ft_launch(kernel, grid, dim3(SHAPE::threads), bytes, stream, props->has_pdl, 1,
                     arguments...);
}

#endif
