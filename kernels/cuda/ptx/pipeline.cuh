/*
 * pipeline.cuh - multistage pipelines of TMA and bulk copies.
 *
 * Stages are filled and read in order. Each has two mbarriers: `full` completes a phase when its
 * bytes have arrived, `empty` when all consumer warps have released it. A pipeline state is the
 * next stage of a producer or consumer, and the parity of its phase; the first phase is 0.
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
    int lap = count / n_stages;
    ft_pipeline_state state = { count - lap * n_stages, (unsigned) lap & 1 };
    return state;
}

#if defined __CUDA_ARCH__ && __CUDA_ARCH__ >= 900

/* The barriers of `n_stages` stages, and the state of one producer or consumer. */
struct ft_pipeline : ft_pipeline_state {
    uint64_t *full, *empty;
    int n_stages;

    __device__ __forceinline__ ft_pipeline(uint64_t *full, uint64_t *empty, int n_stages,
                                           ft_pipeline_state state = { 0, 0 })
        : ft_pipeline_state(state), full(full), empty(empty), n_stages(n_stages)
    {
    }
    /* `empty` follows `full`. */
    __device__ __forceinline__ ft_pipeline(char *barriers, int n_stages)
        : ft_pipeline((uint64_t *) barriers, (uint64_t *) barriers + n_stages, n_stages)
    {
    }
    /* One thread, before all others start. */
    __device__ __forceinline__ void init(unsigned producers, unsigned consumer_warps) const
    {
        for (int i = 0; i < n_stages; i++) {
            ft_mbarrier_init(&full[i], producers);
            ft_mbarrier_init(&empty[i], consumer_warps);
        }
    }
    __device__ __forceinline__ void advance()
    {
        ft_pipeline_state::advance(n_stages);
    }
    /* Producer: wait until all consumers have released the stage. */
    __device__ __forceinline__ void producer_acquire() const
    {
        ft_mbarrier_wait(&empty[stage_index], phase ^ 1);
    }
    /* Producer: expect so many bytes; returns the barrier that counts them. */
    __device__ __forceinline__ uint64_t *expect_tx(unsigned bytes) const
    {
        ft_mbarrier_arrive_expect_tx(&full[stage_index], bytes);
        return &full[stage_index];
    }
    __device__ __forceinline__ uint64_t *producer_acquire(unsigned bytes) const
    {
        producer_acquire();
        return expect_tx(bytes);
    }
    __device__ __forceinline__ void consumer_wait() const
    {
        ft_mbarrier_wait(&full[stage_index], phase);
    }
    /* Whether the stage is full; does not wait. */
    __device__ __forceinline__ bool consumer_test_wait() const
    {
        return ft_mbarrier_test_wait(&full[stage_index], phase);
    }
    /* Release a stage, one arrival per warp; all its lanes have read the stage. */
    __device__ __forceinline__ void consumer_release(int stage) const
    {
        if (threadIdx.x % 32 == 0)
            ft_mbarrier_arrive(&empty[stage]);
    }
    __device__ __forceinline__ void consumer_release() const
    {
        consumer_release(stage_index);
    }
};

#endif
#endif
