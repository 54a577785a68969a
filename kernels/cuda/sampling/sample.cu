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
#define SMEM_STATE_BYTES ((sizeof(ft_sample_shared) + 15) / 16 * 16)

static __host__ __device__ __forceinline__ size_t ban_bitmap_bytes(size_t slice)
{
    return (slice + 127) / 128 * 16;
}

/* ---- Steps ---------------------------------------------------------------------------------- */

/*
 * Starts to load the sampling parameters and the row. The last warp requests the parameters first;
 * behind the row's traffic it would wait until the end of the row.
 */
__device__ __forceinline__ void load_params_and_row(ft_sample_shared &s, const ft_logits_row &row,
                                                    const ft_sampling_params *sampling,
                                                    bool prefetch_row)
{
    static_assert(sizeof(ft_sampling_params) % 4 == 0 && sizeof(ft_sampling_params) / 4 <= 32,
                  "one warp copies it");
    uint32_t word = threadIdx.x - (FT_SAMPLE_THREADS - 32), bits = 0;
    bool copies_params =
        word < sizeof(ft_sampling_params) / 4; /* not in other warps: there the index is negative */
    if (copies_params)
        bits = ((const uint32_t *) sampling)[word];
    if (prefetch_row)
        ft_prefetch_row(row);
    if (copies_params)
        ((uint32_t *) &s.sampling)[word] = bits;
}

/* Applies the sampling parameters that affect the row's logits. */
__device__ __forceinline__ void prepare_adjustments(const ft_sample_shared &s, ft_logits_row &row,
                                                    const ft_cuda_token_history &m)
{
    if (s.sampling.slot < 0)
        return;
    row.seen = m.seen + (size_t) s.sampling.slot * row.vocabulary + row.first;
    row.has_penalties = ft_sampling_has_penalties(&s.sampling);
    row.has_bans = s.sampling.n_banned > 0 || s.sampling.no_repeat_ngram > 0;
    if (row.has_bans)
        ft_mark_banned_tokens(row, s.sampling, m.history + (size_t) s.sampling.slot * m.context);
}

/* The smallest id with the largest value (greedy sampling). */
__device__ __forceinline__ int32_t argmax(ft_sample_shared &s, const ft_logits_row &row,
                                          const ft_logits_range &local, float largest)
{
    if (local.max_logit == largest) {
        uint32_t at = local.max_at;
        while (row.values[at] != largest)
            at++;
#pragma unroll 1
        for (uint32_t block = 0; block < row.blocks; block++)
            atomicMin(ft_cluster_map_peer(&s.first, block), (int32_t) (row.first + at));
    }
    ft_cluster_sync(row.blocks);
    return s.first;
}

/* The softmax denominator of the raw logits at temperature 1. */
__device__ __forceinline__ ft_u64 sum_exp_logits(ft_sample_shared &s, const ft_logits_row &row,
                                                 float largest)
{
    float slope = ft_sampling_exponent_scale(1.0f);
    ft_u64 sum = 0;
    if (row.has_penalties || row.has_bans)
        for (uint32_t at = threadIdx.x; at < row.count; at += FT_SAMPLE_THREADS)
            sum += ft_sampling_fixed_prob(ft_sampling_exponent(row.logits[at], largest, slope));
    else
        ft_for_each_token(row, [&](int32_t, float value) {
            sum += ft_sampling_fixed_prob(ft_sampling_exponent(value, largest, slope));
        });
    return ft_row_sum_u64(s, row, sum);
}

/* Masks all tokens after `last` in the order. */
__device__ __forceinline__ void mask_after(const ft_logits_row &row, ft_ranked_token last)
{
    auto keep_or_mask = [&](uint32_t at, float value) {
        int32_t id = (int32_t) (row.first + at);
        bool kept = value > last.value || (value == last.value && id <= last.id);
        return kept ? value : -INFINITY;
    };
    ft_for_each_x4(row, [&](uint32_t at, float4 v) {
        *(float4 *) (row.values + at) =
            make_float4(keep_or_mask(at, v.x), keep_or_mask(at + 1, v.y), keep_or_mask(at + 2, v.z),
                        keep_or_mask(at + 3, v.w));
    });
}

/* The cumulative weight of tokens whose exponent is at least `threshold`. */
__device__ __forceinline__ ft_u64 sum_weights_above(ft_sample_shared &s, const ft_weight_bins &b,
                                                    const ft_logits_row &row, float threshold)
{
    ft_u64 sum = 0;
    ft_for_each_token(row, [&](int32_t, float value) {
        float y = ft_sampling_exponent(value, b.largest, b.slope);
        if (y >= threshold)
            sum += ft_sampling_fixed_prob(y);
    });
    return ft_row_sum_u64(s, row, sum);
}

/* Bins as fine as the range of logits allows, excluding logits without weight. */
__device__ __forceinline__ ft_weight_bins make_bins(const ft_sampling_params &sampling,
                                                    const ft_logits_range &e)
{
    ft_weight_bins b = {};
    b.largest = e.max_logit;
    b.slope = ft_sampling_exponent_scale(sampling.temperature);
    float range = fminf(b.largest - e.min_logit, -FT_SAMPLING_MIN_EXPONENT / b.slope);
    b.scale = range > 0.0f ? fminf((FT_SAMPLE_BINS - 1) / range, 0x1p120f) : 0.0f;
    b.limit = b.largest - 1.01f * range;
    return b;
}

/* Cuts in the sorted order, each applied to what the previous one has kept. */
typedef enum cut_kind { TOP_K, TOP_P, SAMPLE_CUT } cut_kind;

/*
 * One loop for all cuts, although no two are alike: the code that finds one is long, and is in the
 * instruction cache the second time.
 */
__device__ __forceinline__ int32_t sample_token(ft_sample_shared &s, const ft_logits_row &row,
                                                const ft_logits_range &e)
{
    const ft_sampling_params &sampling = s.sampling;
    ft_weight_bins b = make_bins(sampling, e);
    cut_kind first = ft_sampling_has_top_p(&sampling) ? TOP_P : SAMPLE_CUT, cut_kind = first;
    if (sampling.top_k > 0 && (uint32_t) sampling.top_k < row.vocabulary)
        cut_kind = TOP_K;
    ft_u64 kept = 0;
    for (bool bins_filled = false;;) {
        if (!bins_filled) {
            b.counts = cut_kind == TOP_K;
            ft_fill_initial_bins(s, b, row);
            kept = b.total;
            bins_filled = true;
        }
        ft_u64 target = (ft_u64) sampling.top_k - 1;
        if (cut_kind == TOP_P)
            target = ft_sampling_top_p_threshold(sampling.top_p, kept) - 1;
        if (cut_kind == SAMPLE_CUT && sampling.min_p > 0.0f)
            kept = min(kept,
                       sum_weights_above(s, b, row, ft_sampling_min_p_threshold(sampling.min_p)));
        if (cut_kind == SAMPLE_CUT)
            target = ft_sampling_draw(s.random, kept);
        ft_ranked_token found = {};
        if (target < kept)
            found = ft_find_token(s, b, row, target);
        if (cut_kind == SAMPLE_CUT)
            return found.id;
        if (cut_kind == TOP_P) {
            kept = found.sum;
            cut_kind = SAMPLE_CUT;
            continue;
        }
        if (target < kept) { /* otherwise there are no more than k tokens */
            mask_after(row, found);
            b.limit = found.value;
        }
        ft_clear_bins(s);
        __syncthreads();
        bins_filled = false;
        cut_kind = first;
    }
}

/* Writes one word of a mailbox entry and the number of its pass at once. */
__device__ __forceinline__ void post_word(void *entry, uint32_t word, uint32_t run)
{
    asm volatile("st.volatile.global.v2.u32 [%0], {%1, %2};" ::"l"(entry), "r"(word), "r"(run)
                 : "memory");
}

/*
 * Writes to pinned host memory: the host has the token before this kernel has ended, and before the
 * next pass.
 */
__device__ __forceinline__ void post_token(const ft_cuda_token_mailbox &to, size_t row,
                                           int32_t token, float logprob)
{
    uint32_t run = *to.run;
    ft_cuda_mailbox_entry *own = to.row + run % 2 * to.capacity + row;
    post_word(&own->token, (uint32_t) token, run);
    post_word(&own->logprob, __float_as_uint(logprob), run);
}

/* One thread per row writes the result and appends the token to the history of its sequence. */
__device__ __forceinline__ void store_result(const ft_cuda_sample_params &args,
                                             const ft_sampling_params &sampling, size_t row,
                                             int32_t token, float logprob)
{
    const ft_cuda_token_history &m = args.memory;
    if (args.mailbox.row != NULL)
        post_token(args.mailbox, row, token, logprob);
    args.token[row] = token;
    if (args.logprob != NULL)
        args.logprob[row] = logprob;
    if (sampling.slot < 0)
        return;
    size_t slot = (size_t) sampling.slot;
    m.last[slot] = token == FT_NO_TOKEN ? 0 : token;
    if (token == FT_NO_TOKEN)
        return;
    if ((size_t) sampling.n_tokens < m.context)
        m.history[slot * m.context + (size_t) sampling.n_tokens] = token;
    atomicAdd(&m.seen[slot * m.vocabulary + (size_t) token], 1u); /* fire and forget */
}

/* ---- Kernels -------------------------------------------------------------------------------- */

/*
 * Where a row is stored: in the shared memory of one CTA or of a cluster, or in scratch with one
 * CTA.
 */
typedef enum row_storage { IN_CTA, IN_CLUSTER, IN_SCRATCH } row_storage;

/* The slice of this CTA. */
template <row_storage storage>
__device__ __forceinline__ ft_logits_row row_slice(const ft_cuda_sample_params &args, char *memory,
                                                   uint32_t slice)
{
    size_t vocabulary = args.memory.vocabulary;
    ft_logits_row row = {};
    row.vocabulary = (uint32_t) vocabulary;
    row.blocks = storage == IN_CLUSTER ? ft_cluster_size() : 1;
    row.first = storage == IN_CLUSTER ? min(ft_cluster_rank() * slice, row.vocabulary) : 0;
    row.count = min(slice, row.vocabulary - row.first);
    row.logits = args.logits + blockIdx.x / row.blocks * vocabulary + row.first;
    row.aligned =
        vocabulary % 4 == 0 && ((uintptr_t) args.logits | (uintptr_t) args.memory.seen) % 16 == 0;
    row.banned = (uint32_t *) (memory + SMEM_STATE_BYTES);
    row.values = storage != IN_SCRATCH
                     ? (float *) (memory + SMEM_STATE_BYTES + ban_bitmap_bytes(slice))
                     : (float *) args.scratch + blockIdx.x * (size_t) slice;
    return row;
}

/*
 * grid = rows x CTAs per row, in clusters. A CTA has `slice` tokens of a row, a multiple of four.
 */
template <row_storage storage>
static __global__ void __launch_bounds__(FT_SAMPLE_THREADS, 1)
    sample_kernel(const ft_cuda_sample_params args, uint32_t slice)
{
    extern __shared__ __align__(16) char memory[];
    ft_sample_shared &s = *(ft_sample_shared *) memory;
    ft_logits_row row = row_slice<storage>(args, memory, slice);
    size_t index = blockIdx.x / row.blocks;
    if (threadIdx.x == 0)
        s.first = INT32_MAX;
    ft_clear_bins(s);
    ft_pdl_wait();
    ft_pdl_launch_dependents();
    bool is_prefetched = storage != IN_SCRATCH && row.aligned;
    load_params_and_row(s, row, &args.sampling[index], is_prefetched);
    ft_cluster_sync(row.blocks);              /* all CTAs of the cluster have started */
    if (threadIdx.x == FT_SAMPLE_THREADS - 1) /* while the row is in flight */
        s.random = ft_philox_draw(s.sampling.seed, s.sampling.step);
    prepare_adjustments(s, row, args.memory);
    ft_logits_range local = ft_load_row(row, s.sampling, is_prefetched),
                    e = ft_reduce_range(s, row, local);
    int32_t token = FT_NO_TOKEN;
    float logprob = NAN;
    if (s.sampling.slot >= 0 && !e.nan && e.raw < INFINITY && e.max_logit > -INFINITY) {
        ft_u64 total = args.logprob != NULL ? sum_exp_logits(s, row, e.raw) : 0;
        token = s.sampling.temperature > 0.0f && e.max_logit < INFINITY
                    ? sample_token(s, row, e)
                    : argmax(s, row, local, e.max_logit);
        if (row.first == 0 && threadIdx.x == 0 && args.logprob != NULL)
            logprob = ft_sampling_logprob(row.logits[token], e.raw, total);
    }
    if (row.first == 0 && threadIdx.x == 0)
        store_result(args, s.sampling, index, token, logprob);
}

/* ---- Launch --------------------------------------------------------------------------------- */

static size_t slice_size(size_t vocabulary, unsigned blocks)
{
    return ((vocabulary + blocks - 1) / blocks + 3) / 4 * 4;
}

static size_t smem_base_bytes(size_t slice)
{
    return SMEM_STATE_BYTES + ban_bitmap_bytes(slice);
}

static bool fits_smem(const ft_cuda_device_props *props, size_t slice)
{
    return smem_base_bytes(slice) + slice * sizeof(float) <= props->smem_bytes;
}

/*
 * The fewest CTAs that hold a row. Top-p 0.9 on an H200: a row of 32,000 tokens took 14.9 us with 8
 * CTAs and 14.2 with one. A row of 128,256 took 24 with 8 and 28 with 4, but 16 of them took 45
 * with 8, because large clusters do not all run at once. If even the fewest CTAs would not, scratch
 * is better: 64 such rows took 87 with 4 CTAs and 76 in scratch.
 */
unsigned ft_cuda_sample_ctas_per_row(const ft_cuda_device_props *props, size_t rows,
                                     size_t vocabulary)
{
    unsigned max_ctas = props->has_pdl ? FT_SAMPLE_MAX_CLUSTER : 1, blocks = 1;
    while (blocks < max_ctas && !fits_smem(props, slice_size(vocabulary, blocks)))
        blocks *= 2;
    bool is_one_wave = rows * blocks <= (size_t) props->sm_count;
    return fits_smem(props, slice_size(vocabulary, blocks)) && is_one_wave ? blocks : 1;
}

size_t ft_cuda_sample_scratch(const ft_cuda_device_props *props, size_t rows, size_t vocabulary)
{
    unsigned blocks = ft_cuda_sample_ctas_per_row(props, rows, vocabulary);
    size_t slice = slice_size(vocabulary, blocks);
    return fits_smem(props, slice) ? 0 : rows * slice * sizeof(float);
}

int ft_cuda_sample_rows_with(unsigned blocks, const ft_cuda_device_props *props, void *stream,
                             const ft_cuda_sample_params *args)
{
    size_t slice = slice_size(args->memory.vocabulary, blocks);
    bool in_smem = fits_smem(props, slice);
    size_t bytes = smem_base_bytes(slice) + (in_smem ? slice * sizeof(float) : 0);
    auto kernel = !in_smem     ? sample_kernel<IN_SCRATCH>
                  : blocks > 1 ? sample_kernel<IN_CLUSTER>
                               : sample_kernel<IN_CTA>;
    if (bytes > props->smem_bytes || (blocks > 1 && !in_smem))
        return cudaErrorInvalidValue;
    int status = (int) cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                            (int) bytes);
    if (status != 0 || args->rows == 0)
        return status;
    return ft_launch(kernel, dim3((unsigned) args->rows * blocks), dim3(FT_SAMPLE_THREADS), bytes,
                     stream, props->has_pdl, blocks, *args, (uint32_t) slice);
}

int ft_cuda_sample_rows(const ft_cuda_device_props *props, void *stream,
                        const ft_cuda_sample_params *args)
{
    unsigned blocks = ft_cuda_sample_ctas_per_row(props, args->rows, args->memory.vocabulary);
    return ft_cuda_sample_rows_with(blocks, props, stream, args);
}
