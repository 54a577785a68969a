/*
 * pipeline.cuh - state of multistage pipelines of TMA and bulk copies.
 *
 * Stages are filled and read in order. Each has two mbarriers: `full` completes a phase when its
 * bytes have arrived, `empty` when all consumer warps have released it. A pipeline state is the
 * next stage of a producer or consumer, and the parity of its phase; the first phase is 0.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_PTX_PIPELINE_CUH
#define FT_KERNELS_CUDA_PTX_PIPELINE_CUH

struct ft_pipeline_state {
    int stage_index;
    unsigned phase;

    __device__ __forceinline__ void advance(int n_stages)
    {
        if (++stage_index == n_stages) {
            stage_index = 0;
            phase ^= 1;
        }
    }
};

/* The state after `count` stages. */
__device__ __forceinline__ ft_pipeline_state ft_pipeline_state_after(int count, int n_stages)
{
    int lap = count / n_stages;
    ft_pipeline_state state = { count - lap * n_stages, (unsigned) lap & 1 };
    return state;
}

#endif
