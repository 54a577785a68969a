/*
 * stage.c - before a forward pass: selects its bucket and writes its inputs to the pinned buffer.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/beam_search.h"
#include "kernels/cuda/host/exec.h"
#include "kernels/kv_cache.h"
#include "runtime/mem.h"

#include <assert.h>
#include <string.h>

/* ---- Buckets ------------------------------------------------------------------------------ */

/* Round up to one of 16 sizes between two powers of two, which are at least 16 rows apart. */
static size_t rounded_tokens(size_t tokens, size_t limit)
{
    size_t step = 16;
    while (32 * step <= tokens)
        step *= 2;
    return ft_min_size(ft_round_up(tokens, step), limit);
}

static size_t rounded_sequences(size_t sequences, size_t limit)
{
    size_t power = 1;
    while (power < sequences)
        power *= 2;
    return ft_min_size(power, limit);
}

/* Finer, because each decoded row reads a whole KV cache: powers of two up to 8, then multiples
 * of 8. */
static size_t rounded_decode_rows(size_t sequences, size_t limit)
{
    return sequences <= 8 ? rounded_sequences(sequences, limit)
                          : ft_min_size(ft_round_up(sequences, 8), limit);
}

static void round_up_bucket(ft_cuda_bucket *b, const ft_limits *limits)
{
    if (b->is_decode) {
        b->tokens = b->sequences =
            rounded_decode_rows(b->sequences, ft_min_size(limits->sequences, limits->tokens));
    } else {
        b->tokens = rounded_tokens(b->tokens, limits->tokens);
        b->sequences = rounded_sequences(b->sequences, limits->sequences);
    }
    if (b->selected > 0)
        b->selected = b->is_decode ? rounded_decode_rows(b->selected, limits->selected)
                                   : rounded_sequences(b->selected, limits->selected);
    if (b->beam_groups > 0) {
        b->beam_groups = rounded_decode_rows(b->beam_groups, limits->sequences);
        b->max_beams = rounded_sequences(b->max_beams, FT_MAX_BEAMS);
    }
    if (b->context > 0)
        b->context = rounded_sequences(ft_round_up(b->context, 256), limits->context);
    if (b->cross_kv > 0)
        b->cross_kv = rounded_sequences(ft_round_up(b->cross_kv, 128), limits->cross_kv);
}

/* Tokens of the longest source in the cross-attention KV. */
static size_t longest_source(const ft_batch *batch)
{
    int32_t max_value = 0;
    for (size_t i = 0; batch->cross_kv != NULL && i < batch->sequences; i++)
        max_value = batch->cross_kv[i] > max_value ? batch->cross_kv[i] : max_value;
    return (size_t) max_value;
}

/* Beams of the widest beam search. */
static size_t max_beams_of(const ft_batch *batch)
{
    int32_t max_value = 0;
    for (size_t i = 0; batch->beams != NULL && i < batch->groups; i++)
        max_value = batch->beams[i].width > max_value ? batch->beams[i].width : max_value;
    return (size_t) max_value;
}

/* Pages of the KV cache that the tokens of a batch see, those of each sequence counted anew. */
static size_t kv_pages_of(const ft_batch *batch)
{
    size_t pages = 0;
    for (size_t i = 0; i < batch->sequences; i++) {
        size_t tokens = (size_t) (batch->start[i + 1] - batch->start[i]);
        pages += tokens > 0 ? ft_pages_for_tokens((size_t) batch->n_past[i] + tokens) : 0;
    }
    return pages;
}

static bool has_few_kv_pages(const ft_exec *exec, const ft_batch *batch)
{
    return exec->has_cache && !batch->source && !batch->decode_step && batch->n_past != NULL &&
           kv_pages_of(batch) <= ft_cuda_prefill_pages(&exec->limits);
}

ft_cuda_bucket ft_cuda_bucket_of(const ft_exec *exec, const ft_batch *batch)
{
    ft_cuda_bucket b = {
        .tokens = batch->tokens,
        .sequences = batch->sequences,
        .context = batch->context,
        .selected = batch->selected,
        .cross_kv = longest_source(batch),
        .n_beams = batch->beam_width,
        .is_decode = batch->decode_step,
        .samples = batch->sampling != NULL,
        .beam_groups = batch->beams != NULL ? batch->groups : 0,
        .max_beams = max_beams_of(batch),
        .is_encoder = batch->source,
        .few_kv_pages = has_few_kv_pages(exec, batch),
    };
    if (!exec->exact_shape)
        round_up_bucket(&b, &exec->limits);
    b.query_tiles = ft_cuda_max_query_tiles(b.tokens, b.sequences);
    return b;
}

/* ---- Inputs ------------------------------------------------------------------------------- */

static size_t query_tiles_of(const ft_batch *batch, size_t sequence)
{
    size_t length = (size_t) (batch->start[sequence + 1] - batch->start[sequence]);
    return (length + FT_CUDA_QUERY_TILE - 1) / FT_CUDA_QUERY_TILE;
}

/* Query tiles of the longest sequences come first, because they take longest. */
static void write_query_tiles(ft_cuda_query_tile *out, size_t capacity, const ft_batch *batch)
{
    size_t count = 0;
    size_t max_tiles = (batch->longest + FT_CUDA_QUERY_TILE - 1) / FT_CUDA_QUERY_TILE;
    for (size_t tiles = max_tiles; tiles > 0; tiles--)
        for (size_t i = 0; i < batch->sequences; i++)
            for (size_t tile = 0; tile < tiles && query_tiles_of(batch, i) == tiles; tile++)
                out[count++] = (ft_cuda_query_tile){
                    .first = batch->start[i],
                    .length = batch->start[i + 1] - batch->start[i],
                    .query = (int32_t) (tile * FT_CUDA_QUERY_TILE),
                    .sequence = (int32_t) i,
                };
    assert(count <= capacity);
    memset(out + count, 0, (capacity - count) * sizeof *out);
}

/* Copy `count` numbers and pad them to `capacity` with `padding`; NULL: padding only. */
static void stage_ints(const ft_exec *exec, size_t at, const int32_t *numbers, size_t count,
                       size_t capacity, int32_t padding)
{
    int32_t *to = (int32_t *) (void *) (exec->staging + at);
    if (numbers == NULL)
        count = 0;
    else
        memcpy(to, numbers, count * sizeof *to);
    for (size_t i = count; i < capacity; i++)
        to[i] = padding;
}

static void stage_cross_kv(const ft_exec *exec, const ft_batch *batch, const ft_cuda_bucket *bucket,
                           const ft_cuda_input_offsets *at)
{
    size_t stride = exec->limits.cross_kv / FT_PAGE_TOKENS;
    int32_t *last = (int32_t *) (void *) (exec->staging + at->cross_kv_last);
    assert(batch->cross_kv_pages == NULL || batch->max_cross_kv_pages == stride);
    for (size_t i = 0; i < bucket->sequences; i++)
        last[i] = batch->cross_kv != NULL && i < batch->sequences ? batch->cross_kv[i] - 1 : 0;
    stage_ints(exec, at->cross_kv_pages, batch->cross_kv_pages, batch->sequences * stride,
               bucket->sequences * stride, 0);
}

/* Padding rows belong to no sequence; padding entries of sampling and beams have no slot. */
static void stage_kv_cache(const ft_exec *exec, const ft_batch *batch, const ft_cuda_bucket *bucket,
                           const ft_cuda_input_offsets *at)
{
    size_t n = batch->sequences, capacity = bucket->sequences, stride = batch->max_pages;
    assert(batch->pages == NULL || stride == exec->limits.context / FT_PAGE_TOKENS);
    stage_ints(exec, at->seq_id, batch->seq_id, batch->tokens, bucket->tokens, -1);
    stage_ints(exec, at->n_past, batch->n_past, n, capacity, 0);
    stage_ints(exec, at->n_tokens, batch->n_tokens, n, capacity, 0);
    stage_ints(exec, at->slot, batch->slot, n, capacity, -1);
    stage_ints(exec, at->pages, batch->pages, n * stride, capacity * stride, 0);
    stage_ints(exec, at->selected_rows, batch->selected_rows, batch->selected, bucket->selected, 0);
    ft_sampling_params *sampling = (ft_sampling_params *) (void *) (exec->staging + at->sampling);
    for (size_t i = 0; batch->sampling != NULL && i < bucket->selected; i++)
        sampling[i] = i < batch->selected ? batch->sampling[i] : (ft_sampling_params){ .slot = -1 };
    ft_beam_params *beams = (ft_beam_params *) (void *) (exec->staging + at->beams);
    for (size_t i = 0; i < bucket->beam_groups; i++)
        beams[i] = i < batch->groups ? batch->beams[i] : (ft_beam_params){ .slot = -1 };
    stage_cross_kv(exec, batch, bucket, at);
}

size_t ft_cuda_stage(ft_exec *exec, const ft_batch *batch, const ft_cuda_bucket *bucket)
{
    ft_cuda_input_offsets at = ft_cuda_layout_inputs(exec, bucket);
    for (int i = 0; i < FT_NUM_BATCH_INPUTS; i++)
        if (exec->reads_input[i])
            stage_ints(exec, at.input[i], batch->input[i], batch->tokens, bucket->tokens, 0);
    stage_ints(exec, at.start, batch->start, batch->sequences + 1, bucket->sequences + 1,
               batch->start[batch->sequences]);
    write_query_tiles((ft_cuda_query_tile *) (void *) (exec->staging + at.query_tiles),
                      bucket->query_tiles, batch);
    if (exec->has_cache)
        stage_kv_cache(exec, batch, bucket, &at);
    return at.bytes;
}
