/*
 * stage.c - before a run: the shape that it is rounded up to, and its inputs in the pinned buffer.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/beam_search.h"
#include "kernels/cuda/host/exec.h"
#include "runtime/mem.h"

#include <assert.h>
#include <string.h>

/* ---- Shapes ------------------------------------------------------------------------------- */

/* Up to the next of sixteen steps between powers of two, and at least of 16 rows. */
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

/* Single rows are dear where each costs a pass over the cache: powers of two up to 8, then eights.
 */
static size_t rounded_decode_rows(size_t sequences, size_t limit)
{
    return sequences <= 8 ? rounded_sequences(sequences, limit)
                          : ft_min_size(ft_round_up(sequences, 8), limit);
}

static void round_up_bucket(ft_cuda_bucket *b, const ft_limits *limits)
{
    if (b->step) {
        b->tokens = b->sequences =
            rounded_decode_rows(b->sequences, ft_min_size(limits->sequences, limits->tokens));
    } else {
        b->tokens = rounded_tokens(b->tokens, limits->tokens);
        b->sequences = rounded_sequences(b->sequences, limits->sequences);
    }
    if (b->selected > 0)
        b->selected = b->step ? rounded_decode_rows(b->selected, limits->selected)
                              : rounded_sequences(b->selected, limits->selected);
    if (b->groups > 0) {
        b->groups = rounded_decode_rows(b->groups, limits->sequences);
        b->widest = rounded_sequences(b->widest, FT_MAX_BEAMS);
    }
    if (b->context > 0)
        b->context = rounded_sequences(ft_round_up(b->context, 256), limits->context);
    if (b->cross_kv > 0)
        b->cross_kv = rounded_sequences(ft_round_up(b->cross_kv, 128), limits->cross_kv);
}

/* Tokens of the longest source that the memory holds. */
static size_t longest_source(const ft_batch *batch)
{
    int32_t max_value = 0;
    for (size_t i = 0; batch->cross_kv != NULL && i < batch->sequences; i++)
        max_value = batch->cross_kv[i] > max_value ? batch->cross_kv[i] : max_value;
    return (size_t) max_value;
}

/* The width of the widest search. */
static size_t max_beams_of(const ft_batch *batch)
{
    int32_t max_value = 0;
    for (size_t i = 0; batch->beams != NULL && i < batch->groups; i++)
        max_value = batch->beams[i].width > max_value ? batch->beams[i].width : max_value;
    return (size_t) max_value;
}

ft_cuda_bucket ft_cuda_bucket_of(const ft_exec *exec, const ft_batch *batch)
{
    ft_cuda_bucket b = {
        .tokens = batch->tokens,
        .sequences = batch->sequences,
        .context = batch->context,
        .selected = batch->selected,
        .cross_kv = longest_source(batch),
        .lanes = batch->lanes,
        .step = batch->step,
        .samples = batch->choice != NULL,
        .groups = batch->beams != NULL ? batch->groups : 0,
        .widest = max_beams_of(batch),
        .source = batch->source,
    };
    if (!exec->counting)
        round_up_bucket(&b, &exec->limits);
    b.blocks = ft_cuda_max_query_tiles(b.tokens, b.sequences);
    return b;
}

/* ---- Inputs ------------------------------------------------------------------------------- */

static size_t query_tiles_of(const ft_batch *batch, size_t sequence)
{
    size_t length = (size_t) (batch->start[sequence + 1] - batch->start[sequence]);
    return (length + FT_CUDA_QUERY_TILE - 1) / FT_CUDA_QUERY_TILE;
}

/* Blocks of queries, those of the longest sequences first: they take longest. */
static void write_query_tiles(ft_cuda_query_tile *out, size_t capacity, const ft_batch *batch)
{
    size_t count = 0;
    size_t max_value = (batch->longest + FT_CUDA_QUERY_TILE - 1) / FT_CUDA_QUERY_TILE;
    for (size_t blocks = max_value; blocks > 0; blocks--)
        for (size_t i = 0; i < batch->sequences; i++)
            for (size_t block = 0; block < blocks && query_tiles_of(batch, i) == blocks; block++)
                out[count++] = (ft_cuda_query_tile){
                    .first = batch->start[i],
                    .length = batch->start[i + 1] - batch->start[i],
                    .query = (int32_t) (block * FT_CUDA_QUERY_TILE),
                    .sequence = (int32_t) i,
                };
    assert(count <= capacity);
    memset(out + count, 0, (capacity - count) * sizeof *out);
}

/* Numbers of a run, then one for what its bucket has more; NULL: its plan asks for none. */
static void stage_ints(const ft_exec *exec, size_t at, const int32_t *numbers, size_t count,
                       size_t capacity, int32_t rest)
{
    int32_t *to = (int32_t *) (void *) (exec->staging + at);
    if (numbers == NULL)
        count = 0;
    else
        memcpy(to, numbers, count * sizeof *to);
    for (size_t i = count; i < capacity; i++)
        to[i] = rest;
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

/* Rows beyond the run have no owner; choices and searches beyond it have no seat. */
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
    ft_sampling_params *choice = (ft_sampling_params *) (void *) (exec->staging + at->choice);
    for (size_t i = 0; batch->choice != NULL && i < bucket->selected; i++)
        choice[i] = i < batch->selected ? batch->choice[i] : (ft_sampling_params){ .slot = -1 };
    ft_beam_params *beams = (ft_beam_params *) (void *) (exec->staging + at->beams);
    for (size_t i = 0; i < bucket->groups; i++)
        beams[i] = i < batch->groups ? batch->beams[i] : (ft_beam_params){ .slot = -1 };
    stage_cross_kv(exec, batch, bucket, at);
}

/*
 * Put the inputs of a run into the pinned buffer, in the order of its bucket.  Those of the other
 * part of an encoder-decoder may have more rows: nobody reads them now.
 */
size_t ft_cuda_stage(ft_exec *exec, const ft_batch *batch, const ft_cuda_bucket *bucket)
{
    ft_cuda_input_offsets at = ft_cuda_layout_inputs(exec, bucket);
    for (int i = 0; i < exec->ninputs; i++)
        stage_ints(exec, at.value[i], exec->column[i], ft_min_size(exec->rows[i], bucket->tokens),
                   bucket->tokens, 0);
    stage_ints(exec, at.start, batch->start, batch->sequences + 1, bucket->sequences + 1,
               batch->start[batch->sequences]);
    write_query_tiles((ft_cuda_query_tile *) (void *) (exec->staging + at.blocks), bucket->blocks,
                      batch);
    if (exec->has_cache)
        stage_kv_cache(exec, batch, bucket, &at);
    return at.bytes;
}
