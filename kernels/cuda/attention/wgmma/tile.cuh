/*
 * tile.cuh - f16 and bf16 attention by TMA and wgmma: the work of a CTA, and its shared memory.
 *
 * A CTA stays on its multiprocessor and takes one work item after the other: up to 64 queries per
 * consumer warpgroup, of one head. A producer warp runs ahead of the consumers, across work items:
 * it finds the next item, and loads its queries and its keys and values, 128 at a time.
 *
 * Keys are processed in tiles that begin at multiples of 128 in their sequence. So a result depends
 * neither on the number of warpgroups nor on where its sequence is.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_ATTENTION_WGMMA_TILE_CUH
#define FT_KERNELS_CUDA_ATTENTION_WGMMA_TILE_CUH

#include "kernels/cuda/common.cuh"
#include "kernels/cuda/ptx/named_barrier.cuh"
#include "kernels/cuda/ptx/pipeline.cuh"
#include "kernels/cuda/ptx/wgmma_f16.cuh"

enum {
    WARPGROUP = 128, /* threads of a warpgroup */
    ROW_BYTES = 128, /* of a row in a panel of shared memory: 64 elements */
    BOX_ROWS = 64,   /* rows of a TMA box: queries of a warpgroup, or half a tile of keys */
    BOX_BYTES = BOX_ROWS * ROW_BYTES,
    KEYS = 128, /* keys per tile */
    KEY_PANEL = KEYS * ROW_BYTES
};

/*
 * Heads of up to WIDTH elements, 64 queries for each of the consumer warpgroups, a pipeline of
 * STAGES tiles of keys and as many of values, and the queries of QUERY_SLOTS work items.
 */
template <int WIDTH, int WARPGROUPS, int STAGES, int QUERY_SLOTS> struct attention_shape {
    static constexpr int width = WIDTH, warpgroups = WARPGROUPS, stages = STAGES;
    static constexpr int query_slots = QUERY_SLOTS;
    static constexpr int panels = width / 64, queries = BOX_ROWS * warpgroups;
    static constexpr int threads = (warpgroups + 1) * WARPGROUP;
    static constexpr int query_panel = queries * ROW_BYTES;
    /* With one consumer warpgroup there are registers enough without setmaxnreg. */
    static constexpr int consumer_registers = warpgroups == 3 ? 160 : 240;
    static constexpr int producer_registers = warpgroups == 3 ? 32 : 24;
};

/* Up to SHAPE::queries queries of one head, and the keys that they see. */
typedef struct attention_work {
    int row, queries;       /* first row of q and y; 0 queries: no work is left */
    int head, key_head;     /* in the tensors of q and y, and of keys and values */
    int first_key, end_key; /* keys seen by any query; the first is a multiple of KEYS */
    int last_visible;       /* the last key that the first query sees */
} attention_work;

template <int n> struct stage_barriers {
    uint64_t full[n], empty[n];
};

template <class SHAPE> struct attention_storage {
    uint8_t query[SHAPE::query_slots][SHAPE::panels * SHAPE::query_panel];
    uint8_t key[SHAPE::stages][SHAPE::panels * KEY_PANEL];
    uint8_t value[SHAPE::stages][SHAPE::panels * KEY_PANEL];
    stage_barriers<SHAPE::query_slots> queries;
    stage_barriers<SHAPE::stages> keys, values;
    attention_work work[SHAPE::query_slots];
};

#ifdef FT_HAS_WGMMA

/* `producers` threads fill a stage; all consumer warps release it. */
template <class SHAPE, class STORAGE>
static __device__ __forceinline__ void init_barriers(STORAGE *m, unsigned producers)
{
    const unsigned warps = 4 * SHAPE::warpgroups;
    if (threadIdx.x == 0) {
        for (int i = 0; i < SHAPE::query_slots; i++)
            ft_pipeline_init_stage(m->queries, i, producers, warps);
        for (int i = 0; i < SHAPE::stages; i++) {
            ft_pipeline_init_stage(m->keys, i, producers, warps);
            ft_pipeline_init_stage(m->values, i, producers, warps);
        }
        ft_mbarrier_fence_init();
    }
    __syncthreads();
}

/* The warpgroup of a thread, as a value that the compiler knows to be uniform in its warp. */
static __device__ __forceinline__ int warpgroup_index()
{
    return __shfl_sync(~0u, (int) threadIdx.x / WARPGROUP, 0);
}

template <int registers> static __device__ __forceinline__ void increase_registers()
{
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(registers));
}

template <int registers> static __device__ __forceinline__ void decrease_registers()
{
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(registers));
}

#endif
#endif
