/*
 * beam_candidates.cu - the best candidates of each beam: one CTA per row of logits.
 *
 * The n best tokens of a row are found without sorting it. Each thread finds the largest logit of
 * its part of the row. The n-th largest of these is a threshold that at least n tokens reach, and
 * hardly more. Tokens that reach it are listed and ranked by counting those before each. The cost
 * is two passes over the row, whatever n is: one for the maxima, and one that lists tokens while it
 * accumulates the softmax denominator. With a repetition penalty scores must be known before tokens
 * are listed, which takes a third pass.
 *
 * Rows in which too many tokens reach the threshold, because most logits are equal, take a slow
 * path: the n-th candidate is found bit by bit (radix select), with a pass over the row for each
 * bit.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/sampling/beam_search.h"
#include "kernels/cuda/common.cuh"

#include <cfloat>

enum { THREADS = 1024, WARPS = THREADS / 32, LIST = 2048 };

typedef unsigned long long wide;

/* Words of a bitmap with one bit per token. */
static __host__ __device__ __forceinline__ size_t mark_words(size_t vocabulary)
{
    return (vocabulary + 31) / 32;
}

static __host__ __device__ __forceinline__ size_t lists_bytes(size_t seats)
{
    return (seats * sizeof(ft_cuda_beam_list) + 15) / 16 * 16;
}

typedef struct row_shared {
    ft_beams beams;
    ft_beam_memory memory;
    wide part[WARPS];
    uint32_t key[WARPS];
    uint64_t list[LIST];
    uint32_t listed; /* number of listed candidates, even if the list is full */
} row_shared;

typedef struct row {
    const ft_beams *beams;
    const ft_beam_memory *memory;
    int32_t beam_id;
    const float *logits;
    uint32_t words;          /* vocabulary size */
    uint32_t skew;           /* tokens before the first 16-byte aligned address */
    bool marked;             /* seen[] and banned[] are in use */
    uint32_t *seen, *banned; /* bitmaps of tokens, in the scratch buffer */
    float score, largest, log_total;
} row;

/* ---- Reductions over a CTA ------------------------------------------------------------------ */

__device__ __forceinline__ wide sum_block(row_shared &s, wide x)
{
#pragma unroll
    for (int distance = 16; distance > 0; distance >>= 1)
        x += __shfl_xor_sync(~0u, x, distance);
    __syncthreads(); /* all threads have read part[] */
    if (threadIdx.x % 32 == 0)
        s.part[threadIdx.x / 32] = x;
    __syncthreads();
    x = s.part[threadIdx.x % WARPS];
#pragma unroll
    for (int distance = 16; distance > 0; distance >>= 1)
        x += __shfl_xor_sync(~0u, x, distance);
    return x;
}

__device__ __forceinline__ uint32_t most_of_block(row_shared &s, uint32_t x)
{
#pragma unroll
    for (int distance = 16; distance > 0; distance >>= 1)
        x = max(x, __shfl_xor_sync(~0u, x, distance));
    if (threadIdx.x % 32 == 0)
        s.key[threadIdx.x / 32] = x;
    __syncthreads();
    x = s.key[threadIdx.x % WARPS];
#pragma unroll
    for (int distance = 16; distance > 0; distance >>= 1)
        x = max(x, __shfl_xor_sync(~0u, x, distance));
    return x;
}

/*
 * The upper half of a candidate: an order-preserving integer for each number above -inf, otherwise
 * 0.
 */
__device__ __forceinline__ uint32_t key_of(float x)
{
    return (uint32_t) (ft_beam_candidate(x, 0) >> 32);
}

__device__ __forceinline__ float value_of(uint32_t key)
{
    return key == 0 ? -INFINITY : ft_beam_value((uint64_t) key << 32);
}

/* ---- Logits --------------------------------------------------------------------------------- */

enum { AHEAD = 4 }; /* loads in flight; visits may delay the next ones */

/* Calls visit(token, logit) for the whole row: in vectors of four, except at the unaligned ends. */
template <typename Visit> __device__ __forceinline__ void each(const row &r, Visit visit)
{
    const float4 *from = (const float4 *) (r.logits + r.skew);
    uint32_t fours = (r.words - r.skew) / 4, edge = threadIdx.x;
    for (uint32_t first = threadIdx.x; first < fours; first += AHEAD * THREADS) {
        float4 x[AHEAD];
#pragma unroll
        for (uint32_t i = 0; i < AHEAD; i++)
            if (first + i * THREADS < fours)
                x[i] = from[first + i * THREADS];
#pragma unroll
        for (uint32_t i = 0; i < AHEAD; i++)
            if (first + i * THREADS < fours)
#pragma unroll
                for (uint32_t j = 0; j < 4; j++)
                    visit(r.skew + (first + i * THREADS) * 4 + j, ((const float *) &x[i])[j]);
    }
    if (edge >= r.words - 4 * fours)
        return;
    edge += edge < r.skew ? 0 : 4 * fours;
    visit(edge, r.logits[edge]);
}

__device__ __forceinline__ bool has_mark(const uint32_t *marks, uint32_t token)
{
    return marks[token / 32] >> token % 32 & 1;
}

__device__ __forceinline__ void mark(const row &r, uint32_t *marks, int32_t token)
{
    if (token >= 0 && (uint32_t) token < r.words)
        atomicOr(&marks[token / 32], 1u << token % 32);
}

__device__ __forceinline__ bool bans_ends(const ft_beams &b)
{
    return b.known - b.prompt < b.least && b.ends > 0;
}

/* Marks the tokens that the beam contains already, and those that are banned. */
__device__ __forceinline__ void mark_row(row &r)
{
    const ft_beams &b = *r.beams;
    int32_t n = b.ngram, thread = (int32_t) threadIdx.x;
    r.marked = b.forced < 0 && (ft_beams_repeat(&b) || n > 0 || bans_ends(b) || b.bans > 0);
    if (!r.marked)
        return;
    for (size_t i = threadIdx.x; i < mark_words(r.words); i += THREADS)
        r.seen[i] = r.banned[i] = 0;
    __syncthreads();
    for (int32_t at = thread; ft_beams_repeat(&b) && at < b.known; at += THREADS)
        mark(r, r.seen, ft_beam_token(&b, r.memory, r.beam_id, at));
    for (int32_t at = thread; n > 0 && at <= b.known - n; at += THREADS)
        if (ft_beam_recurs(&b, r.memory, r.beam_id, at))
            mark(r, r.banned, ft_beam_token(&b, r.memory, r.beam_id, at + n - 1));
    if (bans_ends(b) && thread < b.ends)
        mark(r, r.banned, b.end[thread]);
    if (thread < b.bans)
        mark(r, r.banned, b.ban[thread]);
    __syncthreads();
}

/*
 * Finds the maximum logit, and in *own the key of this thread's largest unmarked logit. Returns
 * false if a logit is NaN or +inf.
 */
__device__ __forceinline__ bool look_at(row_shared &s, row &r, uint32_t *own)
{
    float most = -INFINITY, free_most = -INFINITY;
    bool nan = false;
    each(r, [&](uint32_t token, float logit) {
        nan |= !(logit == logit);
        most = fmaxf(most, logit);
        if (!r.marked || !(has_mark(r.seen, token) || has_mark(r.banned, token)))
            free_most = fmaxf(free_most, logit);
    });
    *own = key_of(free_most);
    nan = __syncthreads_or(nan);
    r.largest = value_of(most_of_block(s, key_of(most)));
    return !nan && r.largest < INFINITY;
}

__device__ __forceinline__ float weigh(row_shared &s, const row &r)
{
    float slope = ft_choice_slope(1.0f);
    wide sum = 0;
    each(r, [&](uint32_t, float logit) {
        sum += ft_choice_mass(ft_choice_exponent(logit, r.largest, slope));
    });
    return ft_beam_log_total(sum_block(s, sum));
}

/* ---- Candidates ----------------------------------------------------------------------------- */

__device__ __forceinline__ float extend(const row &r, float logit, bool seen)
{
    return ft_beam_extend(r.score, ft_beam_logprob(logit, r.largest, r.log_total), seen, r.beams);
}

__device__ __forceinline__ uint64_t candidate_of(const row &r, uint32_t token, float logit)
{
    bool seen = false;
    if (r.marked) {
        if (has_mark(r.banned, token))
            return 0;
        seen = has_mark(r.seen, token);
    }
    return ft_beam_candidate(extend(r, logit, seen), (uint32_t) r.beam_id * r.words + token);
}

/* The n-th largest of the threads' keys; 0: there are fewer. */
__device__ __forceinline__ uint32_t find_key(uint32_t own, int n)
{
    uint32_t found = 0;
    for (uint32_t bit = 0x80000000u; bit > 0; bit >>= 1)
        if (__syncthreads_count(own >= (found | bit)) >= n)
            found |= bit;
    return found;
}

/* Lists all candidates that are not below `bound`. */
__device__ __forceinline__ void list_from(row_shared &s, const row &r, uint64_t bound)
{
    __syncthreads();
    if (threadIdx.x == 0)
        s.listed = 0;
    __syncthreads();
    each(r, [&](uint32_t token, float logit) {
        uint64_t candidate = candidate_of(r, token, logit);
        if (candidate == 0 || candidate < bound)
            return;
        uint32_t at = atomicAdd(&s.listed, 1u);
        if (at < LIST)
            s.list[at] = candidate;
    });
    __syncthreads();
}

/*
 * A logit threshold below which no candidate is among the best: below `least`, which n tokens
 * reach, by more than the rounding error of scores. A score is the sum of four numbers, of which
 * the last is the logarithm of at most 2^31.
 */
__device__ __forceinline__ float floor_of(const row &r, float least)
{
    float size = fabsf(r.score) + fabsf(r.largest) + fabsf(least) + 32.0f;
    return least - size * 0x1p-20f;
}

/*
 * Accumulates the softmax denominator and lists the best tokens in the same pass; requires that
 * there is no repetition penalty. Returns false if the list overflows.
 */
__device__ __forceinline__ bool weigh_and_list(row_shared &s, row &r, uint32_t key)
{
    float slope = ft_choice_slope(1.0f);
    float least = key == 0 ? -FLT_MAX : floor_of(r, value_of(key));
    wide sum = 0;
    if (threadIdx.x == 0)
        s.listed = 0;
    __syncthreads();
    each(r, [&](uint32_t token, float logit) {
        sum += ft_choice_mass(ft_choice_exponent(logit, r.largest, slope));
        if (logit < least)
            return;
        uint32_t at = atomicAdd(&s.listed, 1u);
        if (at < LIST)
            s.list[at] = ft_beam_candidate(logit, token);
    });
    r.log_total = ft_beam_log_total(sum_block(s, sum)); /* all threads have listed theirs */
    if (s.listed > LIST)
        return false;
    for (uint32_t i = threadIdx.x; i < s.listed; i += THREADS)
        s.list[i] = candidate_of(r, ft_beam_index(s.list[i]), ft_beam_value(s.list[i]));
    __syncthreads();
    return true;
}

/* Slow path: the n-th largest candidate itself is the bound. */
__device__ __noinline__ void list_crowded(row_shared &s, const row r, int n)
{
    uint64_t bound = 0;
    for (uint64_t bit = (uint64_t) 1 << 63; bit > 0; bit >>= 1) {
        wide count = 0;
        each(r, [&](uint32_t token, float logit) {
            count += candidate_of(r, token, logit) >= (bound | bit);
        });
        if (sum_block(s, count) >= (wide) n)
            bound |= bit;
    }
    list_from(s, r, bound);
}

/* Writes the n best of the list in order, followed by zeros; listed candidates may be zero too. */
__device__ __forceinline__ void hand_in(const row_shared &s, int n, ft_cuda_beam_list *out)
{
    uint32_t listed = s.listed;
    for (int i = (int) threadIdx.x; i < n; i += THREADS)
        out->candidate[i] = 0;
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < listed; i += THREADS) {
        uint64_t own = s.list[i];
        uint32_t rank = own == 0 ? (uint32_t) n : 0;
        for (uint32_t j = 0; j < listed; j++)
            rank += s.list[j] > own;
        if (rank < (uint32_t) n)
            out->candidate[rank] = own;
    }
}

/*
 * Lists the best candidates. `key` belongs to a logit which at least n unmarked tokens reach; 0:
 * unknown.
 */
__device__ __forceinline__ void list_best(row_shared &s, row &r, uint32_t key, int n)
{
    bool priced = r.marked && ft_beams_repeat(r.beams);
    if (!priced && weigh_and_list(s, r, key))
        return;
    if (priced)
        r.log_total = weigh(s, r);
    float bound = key == 0 ? -INFINITY : extend(r, value_of(key), false);
    list_from(s, r, (uint64_t) key_of(bound) << 32);
    if (s.listed > LIST)
        list_crowded(s, r, n);
}

/* A list of one candidate, or of none. */
__device__ __forceinline__ void hand_in_one(int n, uint64_t candidate, ft_cuda_beam_list *out)
{
    for (int i = (int) threadIdx.x; i < n; i += THREADS)
        out->candidate[i] = i == 0 ? candidate : 0;
}

__device__ __forceinline__ void work(row_shared &s, row &r, ft_cuda_beam_list *out)
{
    const ft_beams &b = *r.beams;
    int n = ft_beams_depth(&b);
    uint32_t own;
    mark_row(r);
    bool fine = look_at(s, r, &own);
    if (threadIdx.x == 0)
        out->failed = !fine;
    if (!fine || r.largest == -INFINITY) {
        hand_in_one(n, 0, out);
        return;
    }
    if (b.forced >= 0) {
        bool exists = (uint32_t) b.forced < r.words;
        uint32_t index = (uint32_t) r.beam_id * r.words + (uint32_t) b.forced;
        hand_in_one(n, exists ? ft_beam_candidate(r.score, index) : 0, out);
        return;
    }
    list_best(s, r, find_key(own, n), n);
    hand_in(s, n, out);
}

/* ---- The kernel ----------------------------------------------------------------------------- */

/* grid = groups x beams. */
static __global__ void __launch_bounds__(THREADS, 1) rows_kernel(const ft_cuda_beams args)
{
    __shared__ row_shared s;
    ft_wait_for_predecessor();
    ft_let_successor_begin();
    const uint32_t *from = (const uint32_t *) &args.beams[blockIdx.x / args.widest];
    if (threadIdx.x < sizeof(ft_beams) / 4)
        ((uint32_t *) &s.beams)[threadIdx.x] = from[threadIdx.x];
    if (threadIdx.x == 0)
        s.memory = args.memory;
    __syncthreads();
    int32_t beam_id = (int32_t) (blockIdx.x % args.widest);
    if (s.beams.seat < 0 || beam_id >= s.beams.width)
        return;
    row r = {};
    r.beams = &s.beams;
    r.memory = &s.memory;
    r.beam_id = beam_id;
    r.score = ft_beam_score(&s.beams, &s.memory, beam_id);
    if (r.score == -INFINITY)
        return;
    size_t seat = (size_t) (s.beams.seat + beam_id), words = args.memory.vocabulary;
    uint32_t *marks = (uint32_t *) ((char *) args.scratch + lists_bytes(args.seats));
    r.words = (uint32_t) words;
    r.logits = args.logits + (size_t) ft_beam_row(&s.beams, beam_id) * words;
    r.skew = min(r.words, (uint32_t) (-(intptr_t) r.logits / 4 & 3));
    r.seen = marks + seat * 2 * mark_words(words);
    r.banned = r.seen + mark_words(words);
    work(s, r, (ft_cuda_beam_list *) args.scratch + seat);
}

size_t ft_cuda_beam_scratch(size_t seats, size_t vocabulary)
{
    return lists_bytes(seats) + seats * 2 * mark_words(vocabulary) * sizeof(uint32_t);
}

int ft_cuda_beam_rows(const ft_cuda_chip *chip, void *stream, const ft_cuda_beams *args)
{
    static_assert(sizeof(ft_beams) % 4 == 0 && sizeof(ft_beams) / 4 <= THREADS,
                  "each thread copies at most one word");
    size_t blocks = args->groups * args->widest;
    if (blocks == 0)
        return 0;
    return ft_launch(rows_kernel, dim3((unsigned) blocks), dim3(THREADS), 0, stream, chip->overlaps,
                     1, *args);
}

int ft_cuda_beam_step(const ft_cuda_chip *chip, void *stream, const ft_cuda_beams *args)
{
    int status = ft_cuda_beam_rows(chip, stream, args);
    return status != 0 ? status : ft_cuda_beam_merge(chip, stream, args);
}
