/*
 * pipeline.cuh - multistage pipelines of TMA and bulk copies.
 *
 * Stages are filled and read in order. Each has two mbarriers: `full` completes a phase when its
 * producers have arrived and their bytes too, `empty` when all consumer warps have released it. A
 * pipeline state is the next stage of a producer or consumer, and the parity of its phase; the
 * first phase is 0. Names are those of CUTLASS (PipelineState, PipelineTmaAsync).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_PTX_PIPELINE_CUH
#define FT_KERNELS_CUDA_PTX_PIPELINE_CUH

#include "kernels/cuda/ptx/tma.cuh"

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
    unsigned lap = (unsigned) (count / n_stages);
    ft_pipeline_state state = { count % n_stages, lap & 1 };
    return state;
}

#if defined __CUDA_ARCH__ && __CUDA_ARCH__ >= 900

/* PIPELINE has the barriers `full` and `empty`, as arrays or pointers. */

/*
 * One thread, before all others start; ft_mbarrier_fence_init() follows. `producers` threads fill
 * the stage, `consumer_warps` warps release it.
 */
template <class PIPELINE>
__device__ __forceinline__ void ft_pipeline_init_stage(PIPELINE &pipeline, int stage_index,
                                                       unsigned producers, unsigned consumer_warps)
{
    ft_mbarrier_init(&pipeline.full[stage_index], producers);
    ft_mbarrier_init(&pipeline.empty[stage_index], consumer_warps);
}

/* Wait until the stage has been released. */
template <class PIPELINE>
__device__ __forceinline__ void ft_pipeline_producer_acquire(PIPELINE &pipeline,
                                                             const ft_pipeline_state &state)
{
    ft_mbarrier_wait(&pipeline.empty[state.stage_index], state.phase ^ 1);
}

/* Announce `bytes` bytes for an acquired stage; returns the barrier that counts them. */
template <class PIPELINE>
__device__ __forceinline__ uint64_t *
ft_pipeline_producer_expect(PIPELINE &pipeline, const ft_pipeline_state &state, unsigned bytes)
{
    ft_mbarrier_arrive_expect_tx(&pipeline.full[state.stage_index], bytes);
    return &pipeline.full[state.stage_index];
}

/* Both. */
template <class PIPELINE>
__device__ __forceinline__ uint64_t *
ft_pipeline_producer_acquire(PIPELINE &pipeline, const ft_pipeline_state &state, unsigned bytes)
{
    ft_pipeline_producer_acquire(pipeline, state);
    return ft_pipeline_producer_expect(pipeline, state, bytes);
}

/* Wait until the stage is full. */
template <class PIPELINE>
__device__ __forceinline__ void ft_pipeline_consumer_wait(PIPELINE &pipeline,
                                                          const ft_pipeline_state &state)
{
    ft_mbarrier_wait(&pipeline.full[state.stage_index], state.phase);
}

/* Release a stage that all lanes of this warp have read. */
template <class PIPELINE>
__device__ __forceinline__ void ft_pipeline_consumer_release(PIPELINE &pipeline, int stage_index)
{
    if (threadIdx.x % 32 == 0)
        ft_mbarrier_arrive(&pipeline.empty[stage_index]);
}

/*
 * Barriers and state of a pipeline with one producer thread. `barriers` are the n_stages full ones,
 * then the empty ones.
 */
struct ft_pipeline : ft_pipeline_state {
    uint64_t *full, *empty;
    int n_stages;

    __device__ __forceinline__ ft_pipeline(char *barriers, int n_stages)
        : ft_pipeline_state{ 0, 0 }, full((uint64_t *) barriers), empty(full + n_stages),
          n_stages(n_stages)
    {
    }
    __device__ __forceinline__ void init(unsigned consumer_warps) const
    {
        for (int i = 0; i < n_stages; i++)
            ft_pipeline_init_stage(*this, i, 1, consumer_warps);
    }
    __device__ __forceinline__ void advance()
    {
        ft_pipeline_state::advance(n_stages);
    }
    __device__ __forceinline__ void producer_acquire() const
    {
        ft_pipeline_producer_acquire(*this, *this);
    }
    __device__ __forceinline__ uint64_t *producer_expect(unsigned bytes) const
    {
        return ft_pipeline_producer_expect(*this, *this, bytes);
    }
    __device__ __forceinline__ uint64_t *producer_acquire(unsigned bytes) const
    {
        return ft_pipeline_producer_acquire(*this, *this, bytes);
    }
    __device__ __forceinline__ void consumer_wait() const
    {
        ft_pipeline_consumer_wait(*this, *this);
    }
    /* Whether the stage is full, tested long before it is needed, when the test is free. */
    __device__ __forceinline__ bool consumer_test_wait() const
    {
        return ft_mbarrier_test_wait(&full[stage_index], phase);
    }
    __device__ __forceinline__ void consumer_release() const
    {
        ft_pipeline_consumer_release(*this, stage_index);
    }
};

#endif
#endif
