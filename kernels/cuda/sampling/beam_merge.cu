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
    ft_beams beams;
    ft_beam_turn turn;
    ft_beam beam[FT_MAX_BEAMS];
    int32_t parent[FT_MAX_BEAMS]; /* parent of each beam; itself if the beam is dead */
    int32_t token[FT_MAX_BEAMS];  /* FT_NO_TOKEN: the beam is dead */
    bool lives[FT_MAX_BEAMS];     /* before this step */
    union {
        uint64_t candidate[FT_MAX_BEAMS][FT_BEAM_CANDIDATES];
        uint8_t origin[FT_MAX_BEAMS][TILE];
    };
} merge_shared;

/* ---- Merge --------------------------------------------------------------------------------- */

/* Loads the lists of a beam group's beams; returns whether one has failed. */
__device__ __forceinline__ bool load_lists(merge_shared &s, const ft_cuda_beams &args, int32_t head)
{
    const ft_beams &b = s.beams;
    const ft_cuda_beam_list *lists = (const ft_cuda_beam_list *) args.scratch + b.seat;
    int32_t depth = ft_beams_depth(&b), all = ft_beams_span(&b) * depth;
    bool failed = false;
#pragma unroll 4
    for (int32_t i = (int32_t) threadIdx.x; i < all; i += THREADS) {
        int32_t lane = head + i / depth;
        uint64_t candidate = lists[lane].candidate[i % depth]; /* arbitrary for a dead beam */
        s.candidate[lane][i % depth] = s.lives[lane] ? candidate : 0;
    }
    int32_t own = head + (int32_t) threadIdx.x;
    if (own < head + ft_beams_span(&b))
        failed = s.lives[own] && lists[own].failed;
    failed = __syncthreads_or(failed);
    if (b.diversity != 0.0f && head > 0) {
        int32_t lane = head + (int32_t) threadIdx.x;
        if (lane < head + ft_beams_span(&b))
            ft_beam_diversify(s.candidate[lane], &b, s.token, head,
                              (uint32_t) args.memory.vocabulary);
        __syncthreads();
    }
    return failed;
}

__device__ __forceinline__ uint64_t most_of_warp(uint64_t x)
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
__device__ __forceinline__ void pass_candidates(merge_shared &s, int32_t head, uint32_t vocabulary)
{
    int32_t first = head + (int32_t) threadIdx.x, second = first + 32,
            depth = ft_beams_depth(&s.beams);
    int32_t end = head + ft_beams_span(&s.beams), taken[2] = { 0, 0 };
    for (bool more = true; more;) {
        uint64_t a = first < end && taken[0] < depth ? s.candidate[first][taken[0]] : 0;
        uint64_t b = second < end && taken[1] < depth ? s.candidate[second][taken[1]] : 0;
        uint64_t best = most_of_warp(a > b ? a : b);
        taken[0] += a == best;
        taken[1] += b == best;
        if (threadIdx.x == 0)
            more = ft_beam_turn_take(&s.turn, s.beam + head, &s.beams, vocabulary, best);
        more = __shfl_sync(~0u, more, 0);
    }
}

/* Copies the tokens of hypotheses that have just finished. */
__device__ __forceinline__ void copy_finished(const merge_shared &s, const ft_beam_memory &m,
                                              int32_t head)
{
    const ft_beams &b = s.beams;
    for (int32_t i = 0; i < s.turn.ended; i++) {
        int32_t *to = m.finished + (size_t) (b.seat + head + s.turn.slot[i]) * m.context;
        for (int32_t at = b.prompt + (int32_t) threadIdx.x; at < b.known; at += THREADS)
            to[at - b.prompt] = ft_beam_token(&b, &m, s.turn.ended_lane[i], at);
        if (threadIdx.x == 0)
            to[b.known - b.prompt] = s.turn.ended_token[i];
    }
}

__device__ __forceinline__ void take_turn(merge_shared &s, const ft_cuda_beams &args, int32_t head)
{
    const ft_beams &b = s.beams;
    ft_beam *part = s.beam + head;
    if (threadIdx.x == 0)
        ft_beam_turn_begin(&s.turn, part, &b);
    bool failed = load_lists(s, args, head); /* synchronizes all threads */
    if (part->status != FT_BEAM_RUNS)
        return;
    if (threadIdx.x < 32 && !failed)
        pass_candidates(s, head, (uint32_t) args.memory.vocabulary);
    __syncthreads();
    if (threadIdx.x == 0)
        ft_beam_turn_end(&s.turn, part, &b, failed);
    copy_finished(s, args.memory, head);
    if ((int32_t) threadIdx.x < s.turn.lives) {
        s.parent[head + threadIdx.x] = s.turn.parent[threadIdx.x];
        s.token[head + threadIdx.x] = s.turn.token[threadIdx.x];
    }
    __syncthreads();
}

/* ---- Update -------------------------------------------------------------------------------- */

/* Every beam takes over the cache indirection of its parent, TILE positions at a time. */
__device__ __forceinline__ void move_origins(merge_shared &s, const ft_beam_memory &m)
{
    const ft_beams &b = s.beams;
    int32_t *origin = m.origin + (size_t) b.seat * m.context;
    for (int32_t first = 0; first < b.known; first += TILE) {
        int32_t count = min((int32_t) TILE, b.known - first), all = b.width * count;
        __syncthreads();
#pragma unroll 4
        for (int32_t i = (int32_t) threadIdx.x; i < all; i += THREADS)
            s.origin[i / count][i % count] =
                (uint8_t) ft_beam_origin(&b, &m, i / count, first + i % count);
        __syncthreads();
        for (int32_t i = (int32_t) threadIdx.x; i < all; i += THREADS)
            origin[(size_t) (i / count) * m.context + (size_t) (first + i % count)] =
                s.origin[s.parent[i / count]][i % count];
    }
}

/*
 * Stores the token as ft_cpu_choose_keep() does; from here on a beam's keys are in its own pages.
 */
__device__ __forceinline__ void keep_token(const merge_shared &s, const ft_beam_memory &m,
                                           int32_t lane)
{
    size_t seat = (size_t) (s.beams.seat + lane);
    size_t at = seat * m.context + (size_t) s.beams.known;
    int32_t token = s.token[lane] == FT_NO_TOKEN ? 0 : s.token[lane];
    m.last[seat] = token;
    m.beam[seat] = s.beam[lane];
    if ((size_t) s.beams.known < m.context) {
        m.history[at] = token;
        m.origin[at] = lane;
    }
}

/* ---- The kernel ----------------------------------------------------------------------------- */

static __global__ void __launch_bounds__(THREADS) merge_kernel(const ft_cuda_beams args)
{
    __shared__ merge_shared s;
    int32_t thread = (int32_t) threadIdx.x;
    ft_wait_for_predecessor();
    ft_let_successor_begin();
    const uint32_t *from = (const uint32_t *) &args.beams[blockIdx.x];
    if (threadIdx.x < sizeof(ft_beams) / 4)
        ((uint32_t *) &s.beams)[threadIdx.x] = from[threadIdx.x];
    __syncthreads();
    const ft_beams &b = s.beams;
    if (b.seat < 0)
        return;
    if (thread < b.width) {
        s.beam[thread] = args.memory.beam[b.seat + thread];
        s.lives[thread] = ft_beam_score(&b, &args.memory, thread) > -INFINITY;
        s.parent[thread] = thread;
        s.token[thread] = FT_NO_TOKEN;
    }
    __syncthreads();
    for (int32_t head = 0; head < b.width; head += ft_beams_span(&b))
        take_turn(s, args, head);
    move_origins(s, args.memory);
    if (thread < b.width)
        keep_token(s, args.memory, thread);
}

int ft_cuda_beam_merge(const ft_cuda_chip *chip, void *stream, const ft_cuda_beams *args)
{
    static_assert(sizeof(ft_beams) / 4 <= THREADS, "each thread copies at most one word");
    static_assert(sizeof(merge_shared) <= 48 << 10, "fits the shared memory of any device");
    if (args->groups == 0)
        return 0;
    return ft_launch(merge_kernel, dim3((unsigned) args->groups), dim3(THREADS), 0, stream,
                     chip->overlaps, 1, *args);
}
