/*
 * beam_merge.cu - selects the next beams from the candidates of all beams: one CTA per text.
 *
 * The lists are sorted, so one warp merges them: each thread holds the first remaining candidates
 * of two beams, and the best of all is taken, until there are enough. This takes a few more
 * iterations than there are beams. The rest of the CTA moves tokens and the cache indirection.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/sampling/beam_search.h"
#include "kernels/cuda/common.cuh"

enum { THREADS = 512, TILE = 256 };

typedef struct merge_shared {
    ft_beam_params beams;
    ft_beam_step turn;
    ft_beam beam[FT_MAX_BEAMS];
    int32_t parent[FT_MAX_BEAMS]; /* parent of each beam; itself if the beam is dead */
    int32_t token[FT_MAX_BEAMS];  /* FT_NO_TOKEN: the beam is dead */
    bool lives[FT_MAX_BEAMS];     /* before this step */
    union {
        uint64_t candidate[FT_MAX_BEAMS][FT_BEAM_CANDIDATES];
        uint8_t cache_indirection[FT_MAX_BEAMS][TILE];
    };
} merge_shared;

/* ---- Merge --------------------------------------------------------------------------------- */

/* Loads the lists of a beam group's beams; returns whether one has failed. */
__device__ __forceinline__ bool load_lists(merge_shared &s, const ft_cuda_beam_params &args,
                                           int32_t first_beam)
{
    const ft_beam_params &b = s.beams;
    const ft_cuda_beam_candidate_list *lists =
        (const ft_cuda_beam_candidate_list *) args.scratch + b.slot;
    int32_t depth = ft_beam_max_candidates(&b), all = ft_beam_group_width(&b) * depth;
    bool failed = false;
#pragma unroll 4
    for (int32_t i = (int32_t) threadIdx.x; i < all; i += THREADS) {
        int32_t beam_id = first_beam + i / depth;
        uint64_t candidate = lists[beam_id].candidate[i % depth]; /* arbitrary for a dead beam */
        s.candidate[beam_id][i % depth] = s.lives[beam_id] ? candidate : 0;
    }
    int32_t own = first_beam + (int32_t) threadIdx.x;
    if (own < first_beam + ft_beam_group_width(&b))
        failed = s.lives[own] && lists[own].failed;
    failed = __syncthreads_or(failed);
    if (b.diversity_penalty != 0.0f && first_beam > 0) {
        int32_t beam_id = first_beam + (int32_t) threadIdx.x;
        if (beam_id < first_beam + ft_beam_group_width(&b))
            ft_beam_penalize_diversity(s.candidate[beam_id], &b, s.token, first_beam,
                                       (uint32_t) args.memory.vocabulary);
        __syncthreads();
    }
    return failed;
}

__device__ __forceinline__ uint64_t warp_max(uint64_t x)
{
#if defined __CUDA_ARCH__ && __CUDA_ARCH__ >= 800
    uint32_t high = __reduce_max_sync(~0u, (uint32_t) (x >> 32));
    uint32_t low = __reduce_max_sync(~0u, (uint32_t) (x >> 32) == high ? (uint32_t) x : 0);
    x = (uint64_t) high << 32 | low;
#else
#pragma unroll
    for (int distance = 16; distance > 0; distance >>= 1) {
        uint64_t other = __shfl_xor_sync(~0u, (unsigned long long) x, distance);
        x = other > x ? other : x;
    }
#endif
    return x;
}

/* One warp takes candidates in order until the group has all it needs. */
__device__ __forceinline__ void select_candidates(merge_shared &s, int32_t first_beam,
                                                  uint32_t vocabulary)
{
    int32_t first = first_beam + (int32_t) threadIdx.x, second = first + 32,
            depth = ft_beam_max_candidates(&s.beams);
    int32_t end = first_beam + ft_beam_group_width(&s.beams), n_taken[2] = { 0, 0 };
    for (bool more = true; more;) {
        uint64_t a = first < end && n_taken[0] < depth ? s.candidate[first][n_taken[0]] : 0;
        uint64_t b = second < end && n_taken[1] < depth ? s.candidate[second][n_taken[1]] : 0;
        uint64_t best = warp_max(a > b ? a : b);
        n_taken[0] += a == best;
        n_taken[1] += b == best;
        if (threadIdx.x == 0)
            more = ft_beam_step_consume(&s.turn, s.beam + first_beam, &s.beams, vocabulary, best);
        more = __shfl_sync(~0u, more, 0);
    }
}

/* Copies the tokens of hypotheses that have just finished. */
__device__ __forceinline__ void copy_finished(const merge_shared &s, const ft_beam_state &m,
                                              int32_t first_beam)
{
    const ft_beam_params &b = s.beams;
    for (int32_t i = 0; i < s.turn.ended; i++) {
        int32_t *to =
            m.finished + (size_t) (b.slot + first_beam + s.turn.finished_index[i]) * m.context;
        for (int32_t at = b.prompt + (int32_t) threadIdx.x; at < b.n_tokens; at += THREADS)
            to[at - b.prompt] = ft_beam_token_at(&b, &m, s.turn.finished_parent[i], at);
        if (threadIdx.x == 0)
            to[b.n_tokens - b.prompt] = s.turn.finished_token[i];
    }
}

__device__ __forceinline__ void merge_group(merge_shared &s, const ft_cuda_beam_params &args,
                                            int32_t first_beam)
{
    const ft_beam_params &b = s.beams;
    ft_beam *group = s.beam + first_beam;
    if (threadIdx.x == 0)
        ft_beam_step_begin(&s.turn, group, &b);
    bool failed = load_lists(s, args, first_beam); /* synchronizes all threads */
    if (group->status != FT_BEAM_RUNS)
        return;
    if (threadIdx.x < 32 && !failed)
        select_candidates(s, first_beam, (uint32_t) args.memory.vocabulary);
    __syncthreads();
    if (threadIdx.x == 0)
        ft_beam_step_end(&s.turn, group, &b, failed);
    copy_finished(s, args.memory, first_beam);
    if ((int32_t) threadIdx.x < s.turn.lives) {
        s.parent[first_beam + threadIdx.x] = s.turn.parent[threadIdx.x];
        s.token[first_beam + threadIdx.x] = s.turn.token[threadIdx.x];
    }
    __syncthreads();
}

/* ---- Update -------------------------------------------------------------------------------- */

/* Every beam takes over the cache indirection of its parent, TILE positions at a time. */
__device__ __forceinline__ void update_cache_indirection(merge_shared &s, const ft_beam_state &m)
{
    const ft_beam_params &b = s.beams;
    int32_t *cache_indirection = m.cache_indirection + (size_t) b.slot * m.context;
    for (int32_t first = 0; first < b.n_tokens; first += TILE) {
        int32_t count = min((int32_t) TILE, b.n_tokens - first), all = b.width * count;
        __syncthreads();
#pragma unroll 4
        for (int32_t i = (int32_t) threadIdx.x; i < all; i += THREADS)
            s.cache_indirection[i / count][i % count] =
                (uint8_t) ft_beam_parent_at(&b, &m, i / count, first + i % count);
        __syncthreads();
        for (int32_t i = (int32_t) threadIdx.x; i < all; i += THREADS)
            cache_indirection[(size_t) (i / count) * m.context + (size_t) (first + i % count)] =
                s.cache_indirection[s.parent[i / count]][i % count];
    }
}

/*
 * Stores the token as ft_cpu_sample_append() does; from here on a beam's keys are in its own pages.
 */
__device__ __forceinline__ void store_token(const merge_shared &s, const ft_beam_state &m,
                                            int32_t beam_id)
{
    size_t slot = (size_t) (s.beams.slot + beam_id);
    size_t at = slot * m.context + (size_t) s.beams.n_tokens;
    int32_t token = s.token[beam_id] == FT_NO_TOKEN ? 0 : s.token[beam_id];
    m.last[slot] = token;
    m.beam[slot] = s.beam[beam_id];
    if ((size_t) s.beams.n_tokens < m.context) {
        m.history[at] = token;
        m.cache_indirection[at] = beam_id;
    }
}

/* ---- The kernel ----------------------------------------------------------------------------- */

static __global__ void __launch_bounds__(THREADS) merge_kernel(const ft_cuda_beam_params args)
{
    __shared__ merge_shared s;
    int32_t thread = (int32_t) threadIdx.x;
    ft_pdl_wait();
    ft_pdl_launch_dependents();
    const uint32_t *from = (const uint32_t *) &args.beams[blockIdx.x];
    if (threadIdx.x < sizeof(ft_beam_params) / 4)
        ((uint32_t *) &s.beams)[threadIdx.x] = from[threadIdx.x];
    __syncthreads();
    const ft_beam_params &b = s.beams;
    if (b.slot < 0)
        return;
    if (thread < b.width) {
        s.beam[thread] = args.memory.beam[b.slot + thread];
        s.lives[thread] = ft_beam_input_score(&b, &args.memory, thread) > -INFINITY;
        s.parent[thread] = thread;
        s.token[thread] = FT_NO_TOKEN;
    }
    __syncthreads();
    for (int32_t first_beam = 0; first_beam < b.width; first_beam += ft_beam_group_width(&b))
        merge_group(s, args, first_beam);
    update_cache_indirection(s, args.memory);
    if (thread < b.width)
        store_token(s, args.memory, thread);
}

int ft_cuda_beam_merge(const ft_cuda_device_props *props, void *stream,
                       const ft_cuda_beam_params *args)
{
    static_assert(sizeof(ft_beam_params) / 4 <= THREADS, "each thread copies at most one word");
    static_assert(sizeof(merge_shared) <= 48 << 10, "fits the shared memory of any device");
    if (args->groups == 0)
        return 0;
    return ft_launch(merge_kernel, dim3((unsigned) args->groups), dim3(THREADS), 0, stream,
                     props->has_pdl, 1, *args);
}
