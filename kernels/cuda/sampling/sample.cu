/*
 * sample.cu - samples the next tokens of many sequences: one CTA or cluster per row.
 *
 * The arithmetic is that of kernels/sampling.h: token weights are integers, so the sampled token
 * does not depend on the order in which threads add, and equals the CPU's.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/sampling/select_kth.cuh"

/* Shared memory holds the variables, the ban bitmap, and the slice's values if they fit. */
#define SHARED_BYTES ((sizeof(ft_choose_shared) + 15) / 16 * 16)

static __host__ __device__ __forceinline__ size_t ban_bytes(size_t slice)
{
    return (slice + 127) / 128 * 16;
}

/* ---- Steps ---------------------------------------------------------------------------------- */

/*
 * Starts to load the sampling parameters and the row. The last warp requests the parameters first;
 * behind the row's traffic it would wait until the end of the row.
 */
__device__ __forceinline__ void send_for_all(ft_choose_shared &s, const ft_choose_row &row,
                                             const ft_choice *choice, bool sends_row)
{
    static_assert(sizeof(ft_choice) % 4 == 0 && sizeof(ft_choice) / 4 <= 32, "one warp copies it");
    uint32_t word = threadIdx.x - (FT_CHOOSE_THREADS - 32), bits = 0;
    bool mine = word < sizeof(ft_choice) / 4; /* not in other warps: there the index is negative */
    if (mine)
        bits = ((const uint32_t *) choice)[word];
    if (sends_row)
        ft_send_for(row);
    if (mine)
        ((uint32_t *) &s.choice)[word] = bits;
}

/* Applies the sampling parameters that affect the row's logits. */
__device__ __forceinline__ void prepare_row(const ft_choose_shared &s, ft_choose_row &row,
                                            const ft_cuda_memory &m)
{
    if (s.choice.seat < 0)
        return;
    row.seen = m.seen + (size_t) s.choice.seat * row.vocabulary + row.first;
    row.penalizes = ft_choice_penalizes(&s.choice);
    row.has_bans = s.choice.bans > 0 || s.choice.ngram > 0;
    if (row.has_bans)
        ft_mark_bans(row, s.choice, m.history + (size_t) s.choice.seat * m.context);
}

/* The smallest id with the largest value (greedy sampling). */
__device__ __forceinline__ int32_t find_first(ft_choose_shared &s, const ft_choose_row &row,
                                              const ft_extremes &local, float largest)
{
    if (local.max_logit == largest) {
        uint32_t at = local.max_at;
        while (row.values[at] != largest)
            at++;
#pragma unroll 1
        for (uint32_t block = 0; block < row.blocks; block++)
            atomicMin(ft_cluster_peer(&s.first, block), (int32_t) (row.first + at));
    }
    ft_cluster_join(row.blocks);
    return s.first;
}

/* The softmax denominator of the raw logits at temperature 1. */
__device__ __forceinline__ ft_wide weigh_logits(ft_choose_shared &s, const ft_choose_row &row,
                                                float largest)
{
    float slope = ft_choice_slope(1.0f);
    ft_wide sum = 0;
    if (row.penalizes || row.has_bans)
        for (uint32_t at = threadIdx.x; at < row.count; at += FT_CHOOSE_THREADS)
            sum += ft_choice_mass(ft_choice_exponent(row.logits[at], largest, slope));
    else
        ft_each(row, [&](int32_t, float value) {
            sum += ft_choice_mass(ft_choice_exponent(value, largest, slope));
        });
    return ft_sum_row(s, row, sum);
}

/* Masks all tokens after `last` in the order. */
__device__ __forceinline__ void drop_after(const ft_choose_row &row, ft_ranked_token last)
{
    auto keep = [&](uint32_t at, float value) {
        int32_t id = (int32_t) (row.first + at);
        bool kept = value > last.value || (value == last.value && id <= last.id);
        return kept ? value : -INFINITY;
    };
    ft_each_four(row, [&](uint32_t at, float4 v) {
        *(float4 *) (row.values + at) =
            make_float4(keep(at, v.x), keep(at + 1, v.y), keep(at + 2, v.z), keep(at + 3, v.w));
    });
}

/* The cumulative weight of tokens whose exponent is at least `least`. */
__device__ __forceinline__ ft_wide mass_above(ft_choose_shared &s, const ft_bins &b,
                                              const ft_choose_row &row, float least)
{
    ft_wide sum = 0;
    ft_each(row, [&](int32_t, float value) {
        float y = ft_choice_exponent(value, b.largest, b.slope);
        if (y >= least)
            sum += ft_choice_mass(y);
    });
    return ft_sum_row(s, row, sum);
}

/* Bins as fine as the range of logits allows, excluding logits without weight. */
__device__ __forceinline__ ft_bins make_bins(const ft_choice &choice, const ft_extremes &e)
{
    ft_bins b = {};
    b.largest = e.max_logit;
    b.slope = ft_choice_slope(choice.temperature);
    float range = fminf(b.largest - e.min_logit, -FT_CHOICE_FLOOR / b.slope);
    b.scale = range > 0.0f ? fminf((FT_CHOOSE_BINS - 1) / range, 0x1p120f) : 0.0f;
    b.limit = b.largest - 1.01f * range;
    return b;
}

/* Cuts in the sorted order, each applied to what the previous one has kept. */
typedef enum border { TOP_K, TOP_P, DRAWN } border;

/*
 * One loop for all cuts, although no two are alike: the code that finds one is long, and is in the
 * instruction cache the second time.
 */
__device__ __forceinline__ int32_t draw(ft_choose_shared &s, const ft_choose_row &row,
                                        const ft_extremes &e)
{
    const ft_choice &choice = s.choice;
    ft_bins b = make_bins(choice, e);
    border first = ft_choice_has_top_p(&choice) ? TOP_P : DRAWN, border = first;
    if (choice.top_k > 0 && (uint32_t) choice.top_k < row.vocabulary)
        border = TOP_K;
    ft_wide kept = 0;
    for (bool filled = false;;) {
        if (!filled) {
            b.counts = border == TOP_K;
            ft_begin_bins(s, b, row);
            kept = b.total;
            filled = true;
        }
        ft_wide place = (ft_wide) choice.top_k - 1;
        if (border == TOP_P)
            place = ft_choice_share(choice.top_p, kept) - 1;
        if (border == DRAWN && choice.min_p > 0.0f)
            kept = min(kept, mass_above(s, b, row, ft_choice_least(choice.min_p)));
        if (border == DRAWN)
            place = ft_choice_place(s.random, kept);
        ft_ranked_token found = {};
        if (place < kept)
            found = ft_find_token(s, b, row, place);
        if (border == DRAWN)
            return found.id;
        if (border == TOP_P) {
            kept = found.sum;
            border = DRAWN;
            continue;
        }
        if (place < kept) { /* otherwise there are no more than k tokens */
            drop_after(row, found);
            b.limit = found.value;
        }
        ft_clear_bins(s);
        __syncthreads();
        filled = false;
        border = first;
    }
}

/* Writes one word of a mailbox entry and the number of its pass at once. */
__device__ __forceinline__ void answer_half(void *half, uint32_t word, uint32_t run)
{
    asm volatile("st.volatile.global.v2.u32 [%0], {%1, %2};" ::"l"(half), "r"(word), "r"(run)
                 : "memory");
}

/*
 * Writes to pinned host memory: the host has the token before this kernel has ended, and before the
 * next pass.
 */
__device__ __forceinline__ void answer(const ft_cuda_answers &to, size_t row, int32_t token,
                                       float logprob)
{
    uint32_t run = *to.run;
    ft_cuda_answer *own = to.row + run % 2 * to.most + row;
    answer_half(&own->token, (uint32_t) token, run);
    answer_half(&own->logprob, __float_as_uint(logprob), run);
}

/* One thread per row writes the result and appends the token to the history of its sequence. */
__device__ __forceinline__ void finish(const ft_cuda_choices &args, const ft_choice &choice,
                                       size_t row, int32_t token, float logprob)
{
    const ft_cuda_memory &m = args.memory;
    if (args.answers.row != NULL)
        answer(args.answers, row, token, logprob);
    args.token[row] = token;
    if (args.logprob != NULL)
        args.logprob[row] = logprob;
    if (choice.seat < 0)
        return;
    size_t seat = (size_t) choice.seat;
    m.last[seat] = token == FT_NO_TOKEN ? 0 : token;
    if (token == FT_NO_TOKEN)
        return;
    if ((size_t) choice.known < m.context)
        m.history[seat * m.context + (size_t) choice.known] = token;
    atomicAdd(&m.seen[seat * m.vocabulary + (size_t) token], 1u); /* fire and forget */
}

/* ---- Kernels -------------------------------------------------------------------------------- */

/*
 * Where a row is stored: in the shared memory of one CTA or of a cluster, or in scratch with one
 * CTA.
 */
typedef enum form { ALONE, CLUSTER, SCRATCH } form;

/* The slice of this CTA. */
template <form kernel_form>
__device__ __forceinline__ ft_choose_row find_row(const ft_cuda_choices &args, char *memory,
                                                  uint32_t slice)
{
    size_t vocabulary = args.memory.vocabulary;
    ft_choose_row row = {};
    row.vocabulary = (uint32_t) vocabulary;
    row.blocks = kernel_form == CLUSTER ? ft_cluster_blocks() : 1;
    row.first = kernel_form == CLUSTER ? min(ft_cluster_rank() * slice, row.vocabulary) : 0;
    row.count = min(slice, row.vocabulary - row.first);
    row.logits = args.logits + blockIdx.x / row.blocks * vocabulary + row.first;
    row.aligned =
        vocabulary % 4 == 0 && ((uintptr_t) args.logits | (uintptr_t) args.memory.seen) % 16 == 0;
    row.banned = (uint32_t *) (memory + SHARED_BYTES);
    row.values = kernel_form != SCRATCH ? (float *) (memory + SHARED_BYTES + ban_bytes(slice))
                                        : (float *) args.scratch + blockIdx.x * (size_t) slice;
    return row;
}

/*
 * grid = rows x CTAs per row, in clusters. A CTA has `slice` tokens of a row, a multiple of four.
 */
template <form kernel_form>
static __global__ void __launch_bounds__(FT_CHOOSE_THREADS, 1)
    choose_kernel(const ft_cuda_choices args, uint32_t slice)
{
    extern __shared__ __align__(16) char memory[];
    ft_choose_shared &s = *(ft_choose_shared *) memory;
    ft_choose_row row = find_row<kernel_form>(args, memory, slice);
    size_t index = blockIdx.x / row.blocks;
    if (threadIdx.x == 0)
        s.first = INT32_MAX;
    ft_clear_bins(s);
    ft_wait_for_predecessor();
    ft_let_successor_begin();
    bool sent = kernel_form != SCRATCH && row.aligned;
    send_for_all(s, row, &args.choice[index], sent);
    ft_cluster_join(row.blocks);              /* all CTAs of the cluster have started */
    if (threadIdx.x == FT_CHOOSE_THREADS - 1) /* while the row is in flight */
        s.random = ft_philox_draw(s.choice.seed, s.choice.step);
    prepare_row(s, row, args.memory);
    ft_extremes local = ft_take_row(row, s.choice, sent), e = ft_join_extremes(s, row, local);
    int32_t token = FT_NO_TOKEN;
    float logprob = NAN;
    if (s.choice.seat >= 0 && !e.nan && e.raw < INFINITY && e.max_logit > -INFINITY) {
        ft_wide total = args.logprob != NULL ? weigh_logits(s, row, e.raw) : 0;
        token = s.choice.temperature > 0.0f && e.max_logit < INFINITY
                    ? draw(s, row, e)
                    : find_first(s, row, local, e.max_logit);
        if (row.first == 0 && threadIdx.x == 0 && args.logprob != NULL)
            logprob = ft_choice_logprob(row.logits[token], e.raw, total);
    }
    if (row.first == 0 && threadIdx.x == 0)
        finish(args, s.choice, index, token, logprob);
}

/* ---- Launch --------------------------------------------------------------------------------- */

static size_t slice_of(size_t vocabulary, unsigned blocks)
{
    return ((vocabulary + blocks - 1) / blocks + 3) / 4 * 4;
}

static size_t fixed_bytes(size_t slice)
{
    return SHARED_BYTES + ban_bytes(slice);
}

static bool fits(const ft_cuda_chip *chip, size_t slice)
{
    return fixed_bytes(slice) + slice * sizeof(float) <= chip->shared;
}

/*
 * The fewest CTAs that hold a row. Top-p 0.9 on an H200: a row of 32,000 tokens took 14.9 us with 8
 * CTAs and 14.2 with one. A row of 128,256 took 24 with 8 and 28 with 4, but 16 of them took 45
 * with 8, because large clusters do not all run at once. If even the fewest CTAs would not, scratch
 * is better: 64 such rows took 87 with 4 CTAs and 76 in scratch.
 */
unsigned ft_cuda_choose_blocks(const ft_cuda_chip *chip, size_t rows, size_t vocabulary)
{
    unsigned most = chip->overlaps ? FT_CHOOSE_BLOCKS : 1, blocks = 1;
    while (blocks < most && !fits(chip, slice_of(vocabulary, blocks)))
        blocks *= 2;
    bool at_once = rows * blocks <= (size_t) chip->multiprocessors;
    return fits(chip, slice_of(vocabulary, blocks)) && at_once ? blocks : 1;
}

size_t ft_cuda_choose_scratch(const ft_cuda_chip *chip, size_t rows, size_t vocabulary)
{
    unsigned blocks = ft_cuda_choose_blocks(chip, rows, vocabulary);
    size_t slice = slice_of(vocabulary, blocks);
    return fits(chip, slice) ? 0 : rows * slice * sizeof(float);
}

int ft_cuda_choose_rows_by(unsigned blocks, const ft_cuda_chip *chip, void *stream,
                           const ft_cuda_choices *args)
{
    size_t slice = slice_of(args->memory.vocabulary, blocks);
    bool in_shared = fits(chip, slice);
    size_t bytes = fixed_bytes(slice) + (in_shared ? slice * sizeof(float) : 0);
    auto kernel = !in_shared   ? choose_kernel<SCRATCH>
                  : blocks > 1 ? choose_kernel<CLUSTER>
                               : choose_kernel<ALONE>;
    if (bytes > chip->shared || (blocks > 1 && !in_shared))
        return cudaErrorInvalidValue;
    int status = (int) cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                            (int) bytes);
    if (status != 0 || args->rows == 0)
        return status;
    return ft_launch(kernel, dim3((unsigned) args->rows * blocks), dim3(FT_CHOOSE_THREADS), bytes,
                     stream, chip->overlaps, blocks, *args, (uint32_t) slice);
}

int ft_cuda_choose_rows(const ft_cuda_chip *chip, void *stream, const ft_cuda_choices *args)
{
    unsigned blocks = ft_cuda_choose_blocks(chip, args->rows, args->memory.vocabulary);
    return ft_cuda_choose_rows_by(blocks, chip, stream, args);
}
