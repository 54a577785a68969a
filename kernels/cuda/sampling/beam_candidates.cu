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
#include <cub/block/block_reduce.cuh>
#include <cuda/functional>

enum { THREADS = 1024, LIST = 2048 };

typedef unsigned long long u64;
typedef cub::BlockReduce<u64, THREADS> sum_reduce;
typedef cub::BlockReduce<uint32_t, THREADS> max_reduce;

/* Words of a bitmap with one bit per token. */
static __host__ __device__ __forceinline__ size_t bitmap_words(size_t vocabulary)
{
    return (vocabulary + 31) / 32;
}

static __host__ __device__ __forceinline__ size_t candidate_lists_bytes(size_t num_slots)
{
    return (num_slots * sizeof(ft_cuda_beam_candidate_list) + 15) / 16 * 16;
}

typedef struct cta_storage {
    ft_beam_params beams;
    ft_beam_state memory;
    union {
        sum_reduce::TempStorage sum_storage;
        max_reduce::TempStorage max_storage;
    };
    u64 sum;
    uint32_t max;
    uint64_t list[LIST];
    uint32_t n_listed; /* number of listed candidates, even if the list is full */
} cta_storage;

typedef struct logits_row {
    const ft_beam_params *beams;
    const ft_beam_state *memory;
    int32_t beam_id;
    const float *logits;
    uint32_t vocab_size;       /* vocabulary size */
    uint32_t unaligned_prefix; /* tokens before the first 16-byte aligned address */
    bool has_bitmaps;          /* seen[] and banned[] are in use */
    uint32_t *seen, *banned;   /* bitmaps of tokens, in the scratch buffer */
    float score, largest, log_total;
} logits_row;

/* ---- Reductions over a CTA ------------------------------------------------------------------ */

/* The sum of all threads' x, for all of them. */
__device__ __forceinline__ u64 block_sum(cta_storage &s, u64 x)
{
    __syncthreads(); /* all threads have read the last result */
    x = sum_reduce(s.sum_storage).Sum(x);
    if (threadIdx.x == 0)
        s.sum = x;
    __syncthreads();
    return s.sum;
}

__device__ __forceinline__ uint32_t block_max(cta_storage &s, uint32_t x)
{
    __syncthreads();
    x = max_reduce(s.max_storage).Reduce(x, cuda::maximum<>{});
    if (threadIdx.x == 0)
        s.max = x;
    __syncthreads();
    return s.max;
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
    return key == 0 ? -INFINITY : ft_beam_candidate_score((uint64_t) key << 32);
}

/* ---- Logits --------------------------------------------------------------------------------- */

enum { LOADS_IN_FLIGHT = 4 }; /* loads in flight; visits may delay the next ones */

/* Calls visit(token, logit) for the whole row: in vectors of four, except at the unaligned ends. */
template <typename Visit>
__device__ __forceinline__ void for_each_token(const logits_row &r, Visit visit)
{
    const float4 *from = (const float4 *) (r.logits + r.unaligned_prefix);
    uint32_t vectors = (r.vocab_size - r.unaligned_prefix) / 4, edge = threadIdx.x;
    for (uint32_t first = threadIdx.x; first < vectors; first += LOADS_IN_FLIGHT * THREADS) {
        float4 x[LOADS_IN_FLIGHT];
#pragma unroll
        for (uint32_t i = 0; i < LOADS_IN_FLIGHT; i++)
            if (first + i * THREADS < vectors)
                x[i] = from[first + i * THREADS];
#pragma unroll
        for (uint32_t i = 0; i < LOADS_IN_FLIGHT; i++)
            if (first + i * THREADS < vectors)
#pragma unroll
                for (uint32_t j = 0; j < 4; j++)
                    visit(r.unaligned_prefix + (first + i * THREADS) * 4 + j,
                          ((const float *) &x[i])[j]);
    }
    if (edge >= r.vocab_size - 4 * vectors)
        return;
    edge += edge < r.unaligned_prefix ? 0 : 4 * vectors;
    visit(edge, r.logits[edge]);
}

__device__ __forceinline__ bool test_bit(const uint32_t *marks, uint32_t token)
{
    return marks[token / 32] >> token % 32 & 1;
}

__device__ __forceinline__ void set_bit(const logits_row &r, uint32_t *marks, int32_t token)
{
    if (token >= 0 && (uint32_t) token < r.vocab_size)
        atomicOr(&marks[token / 32], 1u << token % 32);
}

__device__ __forceinline__ bool bans_end_tokens(const ft_beam_params &b)
{
    return b.n_tokens - b.prompt < b.min_new_tokens && b.n_eos > 0;
}

/* Marks the tokens that the beam contains already, and those that are banned. */
__device__ __forceinline__ void build_bitmaps(logits_row &r)
{
    const ft_beam_params &b = *r.beams;
    int32_t n = b.no_repeat_ngram, thread = (int32_t) threadIdx.x;
    r.has_bitmaps = b.forced < 0 && (ft_beam_has_repetition_penalty(&b) || n > 0 ||
                                     bans_end_tokens(b) || b.n_banned > 0);
    if (!r.has_bitmaps)
        return;
    for (size_t i = threadIdx.x; i < bitmap_words(r.vocab_size); i += THREADS)
        r.seen[i] = r.banned[i] = 0;
    __syncthreads();
    for (int32_t at = thread; ft_beam_has_repetition_penalty(&b) && at < b.n_tokens; at += THREADS)
        set_bit(r, r.seen, ft_beam_token_at(&b, r.memory, r.beam_id, at));
    for (int32_t at = thread; n > 0 && at <= b.n_tokens - n; at += THREADS)
        if (ft_beam_ngram_repeats(&b, r.memory, r.beam_id, at))
            set_bit(r, r.banned, ft_beam_token_at(&b, r.memory, r.beam_id, at + n - 1));
    if (bans_end_tokens(b) && thread < b.n_eos)
        set_bit(r, r.banned, b.eos[thread]);
    if (thread < b.n_banned)
        set_bit(r, r.banned, b.banned[thread]);
    __syncthreads();
}

/*
 * Finds the maximum logit, and in *own the key of this thread's largest unmarked logit. Returns
 * false if a logit is NaN or +inf.
 */
__device__ __forceinline__ bool find_max(cta_storage &s, logits_row &r, uint32_t *own_key)
{
    float max_logit = -INFINITY, max_unmarked = -INFINITY;
    bool nan = false;
    for_each_token(r, [&](uint32_t token, float logit) {
        nan |= !(logit == logit);
        max_logit = fmaxf(max_logit, logit);
        if (!r.has_bitmaps || !(test_bit(r.seen, token) || test_bit(r.banned, token)))
            max_unmarked = fmaxf(max_unmarked, logit);
    });
    *own_key = key_of(max_unmarked);
    nan = __syncthreads_or(nan);
    r.largest = value_of(block_max(s, key_of(max_logit)));
    return !nan && r.largest < INFINITY;
}

__device__ __forceinline__ float log_sum_exp(cta_storage &s, const logits_row &r)
{
    float slope = ft_sampling_exponent_scale(1.0f);
    u64 sum = 0;
    for_each_token(r, [&](uint32_t, float logit) {
        sum += ft_sampling_fixed_prob(ft_sampling_exponent(logit, r.largest, slope));
    });
    return ft_beam_log_total(block_sum(s, sum));
}

/* ---- Candidates ----------------------------------------------------------------------------- */

__device__ __forceinline__ float extend_score(const logits_row &r, float logit, bool seen)
{
    return ft_beam_extend_score(r.score, ft_beam_logprob(logit, r.largest, r.log_total), seen,
                                r.beams);
}

__device__ __forceinline__ uint64_t candidate_of(const logits_row &r, uint32_t token, float logit)
{
    bool seen = false;
    if (r.has_bitmaps) {
        if (test_bit(r.banned, token))
            return 0;
        seen = test_bit(r.seen, token);
    }
    return ft_beam_candidate(extend_score(r, logit, seen),
                             (uint32_t) r.beam_id * r.vocab_size + token);
}

/* The n-th largest of the threads' keys; 0: there are fewer. */
__device__ __forceinline__ uint32_t nth_largest_key(uint32_t own_key, int n)
{
    uint32_t found = 0;
    for (uint32_t bit = 0x80000000u; bit > 0; bit >>= 1)
        if (__syncthreads_count(own_key >= (found | bit)) >= n)
            found |= bit;
    return found;
}

/* Lists all candidates that are not below `bound`. */
__device__ __forceinline__ void list_above(cta_storage &s, const logits_row &r, uint64_t bound)
{
    __syncthreads();
    if (threadIdx.x == 0)
        s.n_listed = 0;
    __syncthreads();
    for_each_token(r, [&](uint32_t token, float logit) {
        uint64_t candidate = candidate_of(r, token, logit);
        if (candidate == 0 || candidate < bound)
            return;
        uint32_t at = atomicAdd(&s.n_listed, 1u);
        if (at < LIST)
            s.list[at] = candidate;
    });
    __syncthreads();
}

/*
 * A logit threshold below which no candidate is among the best: below `reached`, which n tokens
 * reach, by more than the rounding error of scores. A score is the sum of four numbers, of which
 * the last is the logarithm of at most 2^31.
 */
__device__ __forceinline__ float logit_threshold(const logits_row &r, float reached)
{
    float size = fabsf(r.score) + fabsf(r.largest) + fabsf(reached) + 32.0f;
    return reached - size * 0x1p-20f;
}

/*
 * Accumulates the softmax denominator and lists the best tokens in the same pass; requires that
 * there is no repetition penalty. Returns false if the list overflows.
 */
__device__ __forceinline__ bool log_sum_exp_and_list(cta_storage &s, logits_row &r, uint32_t key)
{
    float slope = ft_sampling_exponent_scale(1.0f);
    float threshold = key == 0 ? -FLT_MAX : logit_threshold(r, value_of(key));
    u64 sum = 0;
    if (threadIdx.x == 0)
        s.n_listed = 0;
    __syncthreads();
    for_each_token(r, [&](uint32_t token, float logit) {
        sum += ft_sampling_fixed_prob(ft_sampling_exponent(logit, r.largest, slope));
        if (logit < threshold)
            return;
        uint32_t at = atomicAdd(&s.n_listed, 1u);
        if (at < LIST)
            s.list[at] = ft_beam_candidate(logit, token);
    });
    r.log_total = ft_beam_log_total(block_sum(s, sum)); /* all threads have listed theirs */
    if (s.n_listed > LIST)
        return false;
    for (uint32_t i = threadIdx.x; i < s.n_listed; i += THREADS)
        s.list[i] =
            candidate_of(r, ft_beam_candidate_index(s.list[i]), ft_beam_candidate_score(s.list[i]));
    __syncthreads();
    return true;
}

/* Slow path: the n-th largest candidate itself is the bound. */
__device__ __noinline__ void list_by_radix_select(cta_storage &s, const logits_row r, int n)
{
    uint64_t bound = 0;
    for (uint64_t bit = (uint64_t) 1 << 63; bit > 0; bit >>= 1) {
        u64 count = 0;
        for_each_token(r, [&](uint32_t token, float logit) {
            count += candidate_of(r, token, logit) >= (bound | bit);
        });
        if (block_sum(s, count) >= (u64) n)
            bound |= bit;
    }
    list_above(s, r, bound);
}

/* Writes the n best of the list in order, followed by zeros; listed candidates may be zero too. */
__device__ __forceinline__ void write_candidates(const cta_storage &s, int n,
                                                 ft_cuda_beam_candidate_list *out)
{
    uint32_t n_listed = s.n_listed;
    for (int i = (int) threadIdx.x; i < n; i += THREADS)
        out->candidate[i] = 0;
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < n_listed; i += THREADS) {
        uint64_t own_key = s.list[i];
        uint32_t rank = own_key == 0 ? (uint32_t) n : 0;
        for (uint32_t j = 0; j < n_listed; j++)
            rank += s.list[j] > own_key;
        if (rank < (uint32_t) n)
            out->candidate[rank] = own_key;
    }
}

/*
 * Lists the best candidates. `key` belongs to a logit which at least n unmarked tokens reach; 0:
 * unknown.
 */
__device__ __forceinline__ void list_candidates(cta_storage &s, logits_row &r, uint32_t key, int n)
{
    bool has_penalty = r.has_bitmaps && ft_beam_has_repetition_penalty(r.beams);
    if (!has_penalty && log_sum_exp_and_list(s, r, key))
        return;
    if (has_penalty)
        r.log_total = log_sum_exp(s, r);
    float bound = key == 0 ? -INFINITY : extend_score(r, value_of(key), false);
    list_above(s, r, (uint64_t) key_of(bound) << 32);
    if (s.n_listed > LIST)
        list_by_radix_select(s, r, n);
}

/* A list of one candidate, or of none. */
__device__ __forceinline__ void write_single_candidate(int n, uint64_t candidate,
                                                       ft_cuda_beam_candidate_list *out)
{
    for (int i = (int) threadIdx.x; i < n; i += THREADS)
        out->candidate[i] = i == 0 ? candidate : 0;
}

__device__ __forceinline__ void process_row(cta_storage &s, logits_row &r,
                                            ft_cuda_beam_candidate_list *out)
{
    const ft_beam_params &b = *r.beams;
    int n = ft_beam_max_candidates(&b);
    uint32_t own_key;
    build_bitmaps(r);
    bool is_finite = find_max(s, r, &own_key);
    if (threadIdx.x == 0)
        out->failed = !is_finite;
    if (!is_finite || r.largest == -INFINITY) {
        write_single_candidate(n, 0, out);
        return;
    }
    if (b.forced >= 0) {
        bool exists = (uint32_t) b.forced < r.vocab_size;
        uint32_t index = (uint32_t) r.beam_id * r.vocab_size + (uint32_t) b.forced;
        write_single_candidate(n, exists ? ft_beam_candidate(r.score, index) : 0, out);
        return;
    }
    list_candidates(s, r, nth_largest_key(own_key, n), n);
    write_candidates(s, n, out);
}

/* ---- The kernel ----------------------------------------------------------------------------- */

/* grid = groups x beams. */
static __global__ void __launch_bounds__(THREADS, 1)
    candidates_kernel(const ft_cuda_beam_params args)
{
    __shared__ cta_storage s;
    ft_pdl_wait();
    ft_pdl_launch_dependents();
    const uint32_t *from = (const uint32_t *) &args.beams[blockIdx.x / args.widest];
    if (threadIdx.x < sizeof(ft_beam_params) / 4)
        ((uint32_t *) &s.beams)[threadIdx.x] = from[threadIdx.x];
    if (threadIdx.x == 0)
        s.memory = args.memory;
    __syncthreads();
    int32_t beam_id = (int32_t) (blockIdx.x % args.widest);
    if (s.beams.slot < 0 || beam_id >= s.beams.width)
        return;
    logits_row r = {};
    r.beams = &s.beams;
    r.memory = &s.memory;
    r.beam_id = beam_id;
    r.score = ft_beam_input_score(&s.beams, &s.memory, beam_id);
    if (r.score == -INFINITY)
        return;
    size_t slot = (size_t) (s.beams.slot + beam_id), vocab_size = args.memory.vocabulary;
    uint32_t *marks = (uint32_t *) ((char *) args.scratch + candidate_lists_bytes(args.num_slots));
    r.vocab_size = (uint32_t) vocab_size;
    r.logits = args.logits + (size_t) ft_beam_row(&s.beams, beam_id) * vocab_size;
    r.unaligned_prefix = min(r.vocab_size, (uint32_t) (-(intptr_t) r.logits / 4 & 3));
    r.seen = marks + slot * 2 * bitmap_words(vocab_size);
    r.banned = r.seen + bitmap_words(vocab_size);
    process_row(s, r, (ft_cuda_beam_candidate_list *) args.scratch + slot);
}

size_t ft_cuda_beam_scratch(size_t num_slots, size_t vocabulary)
{
    return candidate_lists_bytes(num_slots) +
           num_slots * 2 * bitmap_words(vocabulary) * sizeof(uint32_t);
}

int ft_cuda_beam_candidates(const ft_cuda_device_props *props, void *stream,
                            const ft_cuda_beam_params *args)
{
    static_assert(sizeof(ft_beam_params) % 4 == 0 && sizeof(ft_beam_params) / 4 <= THREADS,
                  "each thread copies at most one word");
    size_t blocks = args->groups * args->widest;
    if (blocks == 0)
        return 0;
    return ft_launch(candidates_kernel, dim3((unsigned) blocks), dim3(THREADS), 0, stream,
                     props->has_pdl, 1, *args);
}

int ft_cuda_beam_step(const ft_cuda_device_props *props, void *stream,
                      const ft_cuda_beam_params *args)
{
    int status = ft_cuda_beam_candidates(props, stream, args);
    return status != 0 ? status : ft_cuda_beam_merge(props, stream, args);
}
