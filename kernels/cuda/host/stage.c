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
static size_t rounded_steps(size_t sequences, size_t limit)
{
    return sequences <= 8 ? rounded_sequences(sequences, limit)
                          : ft_min_size(ft_round_up(sequences, 8), limit);
}

static void round_up_bucket(ft_cuda_bucket *b, const ft_limits *limits)
{
    if (b->step) {
        b->tokens = b->sequences =
            rounded_steps(b->sequences, ft_min_size(limits->sequences, limits->tokens));
    } else {
        b->tokens = rounded_tokens(b->tokens, limits->tokens);
        b->sequences = rounded_sequences(b->sequences, limits->sequences);
    }
    if (b->selected > 0)
        b->selected = b->step ? rounded_steps(b->selected, limits->selected)
                              : rounded_sequences(b->selected, limits->selected);
    if (b->groups > 0) {
        b->groups = rounded_steps(b->groups, limits->sequences);
        b->widest = rounded_sequences(b->widest, FT_MAX_BEAMS);
    }
    if (b->context > 0)
        b->context = rounded_sequences(ft_round_up(b->context, 256), limits->context);
    if (b->memory > 0)
        b->memory = rounded_sequences(ft_round_up(b->memory, 128), limits->memory);
}

/* Tokens of the longest source that the memory holds. */
static size_t longest_source(const ft_batch *batch)
{
    int32_t most = 0;
    for (size_t i = 0; batch->memory != NULL && i < batch->sequences; i++)
        most = batch->memory[i] > most ? batch->memory[i] : most;
    return (size_t) most;
}

/* The width of the widest search. */
static size_t widest_of(const ft_batch *batch)
{
    int32_t most = 0;
    for (size_t i = 0; batch->beams != NULL && i < batch->groups; i++)
        most = batch->beams[i].width > most ? batch->beams[i].width : most;
    return (size_t) most;
}

ft_cuda_bucket ft_cuda_bucket_of(const ft_exec *exec, const ft_batch *batch)
{
    ft_cuda_bucket b = {
        .tokens = batch->tokens,
        .sequences = batch->sequences,
        .context = batch->context,
        .selected = batch->selected,
        .memory = longest_source(batch),
        .lanes = batch->lanes,
        .step = batch->step,
        .chooses = batch->choice != NULL,
        .groups = batch->beams != NULL ? batch->groups : 0,
        .widest = widest_of(batch),
        .source = batch->source,
    };
    if (!exec->counting)
        round_up_bucket(&b, &exec->limits);
    b.blocks = ft_cuda_most_blocks(b.tokens, b.sequences);
    return b;
}

/* ---- Inputs ------------------------------------------------------------------------------- */

static size_t blocks_of(const ft_batch *batch, size_t sequence)
{
    size_t length = (size_t) (batch->start[sequence + 1] - batch->start[sequence]);
    return (length + FT_CUDA_QUERIES - 1) / FT_CUDA_QUERIES;
}

/* Blocks of queries, those of the longest sequences first: they take longest. */
static void write_blocks(ft_cuda_queries *out, size_t room, const ft_batch *batch)
{
    size_t count = 0;
    size_t most = (batch->longest + FT_CUDA_QUERIES - 1) / FT_CUDA_QUERIES;
    for (size_t blocks = most; blocks > 0; blocks--)
        for (size_t i = 0; i < batch->sequences; i++)
            for (size_t block = 0; block < blocks && blocks_of(batch, i) == blocks; block++)
                out[count++] = (ft_cuda_queries){
                    .first = batch->start[i],
                    .length = batch->start[i + 1] - batch->start[i],
                    .query = (int32_t) (block * FT_CUDA_QUERIES),
                    .sequence = (int32_t) i,
                };
    assert(count <= room);
    memset(out + count, 0, (room - count) * sizeof *out);
}

/* Numbers of a run, then one for what its bucket has more; NULL: its plan asks for none. */
static void stage_numbers(const ft_exec *exec, size_t at, const int32_t *numbers, size_t count,
                          size_t room, int32_t rest)
{
    int32_t *to = (int32_t *) (void *) (exec->staging + at);
    if (numbers == NULL)
        count = 0;
    else
        memcpy(to, numbers, count * sizeof *to);
    for (size_t i = count; i < room; i++)
        to[i] = rest;
}

static void stage_memory(const ft_exec *exec, const ft_batch *batch, const ft_cuda_bucket *bucket,
                         const ft_cuda_inputs_at *at)
{
    size_t stride = exec->limits.memory / FT_PAGE;
    int32_t *last = (int32_t *) (void *) (exec->staging + at->memory_last);
    assert(batch->memory_pages == NULL || batch->most_memory_pages == stride);
    for (size_t i = 0; i < bucket->sequences; i++)
        last[i] = batch->memory != NULL && i < batch->sequences ? batch->memory[i] - 1 : 0;
    stage_numbers(exec, at->memory_pages, batch->memory_pages, batch->sequences * stride,
                  bucket->sequences * stride, 0);
}

/* Rows beyond the run have no owner; choices and searches beyond it have no seat. */
static void stage_cache(const ft_exec *exec, const ft_batch *batch, const ft_cuda_bucket *bucket,
                        const ft_cuda_inputs_at *at)
{
    size_t n = batch->sequences, room = bucket->sequences, stride = batch->most_pages;
    assert(batch->pages == NULL || stride == exec->limits.context / FT_PAGE);
    stage_numbers(exec, at->owner, batch->owner, batch->tokens, bucket->tokens, -1);
    stage_numbers(exec, at->past, batch->past, n, room, 0);
    stage_numbers(exec, at->reach, batch->reach, n, room, 0);
    stage_numbers(exec, at->seat, batch->seat, n, room, -1);
    stage_numbers(exec, at->pages, batch->pages, n * stride, room * stride, 0);
    stage_numbers(exec, at->select, batch->select, batch->selected, bucket->selected, 0);
    ft_choice *choice = (ft_choice *) (void *) (exec->staging + at->choice);
    for (size_t i = 0; batch->choice != NULL && i < bucket->selected; i++)
        choice[i] = i < batch->selected ? batch->choice[i] : (ft_choice){ .seat = -1 };
    ft_beams *beams = (ft_beams *) (void *) (exec->staging + at->beams);
    for (size_t i = 0; i < bucket->groups; i++)
        beams[i] = i < batch->groups ? batch->beams[i] : (ft_beams){ .seat = -1 };
    stage_memory(exec, batch, bucket, at);
}

/*
 * Put the inputs of a run into the pinned buffer, in the order of its bucket.  Those of the other
 * part of an encoder-decoder may have more rows: nobody reads them now.
 */
size_t ft_cuda_stage(ft_exec *exec, const ft_batch *batch, const ft_cuda_bucket *bucket)
{
    ft_cuda_inputs_at at = ft_cuda_lay_inputs(exec, bucket);
    for (int i = 0; i < exec->ninputs; i++)
        stage_numbers(exec, at.value[i], exec->column[i],
                      ft_min_size(exec->rows[i], bucket->tokens), bucket->tokens, 0);
    stage_numbers(exec, at.start, batch->start, batch->sequences + 1, bucket->sequences + 1,
                  batch->start[batch->sequences]);
    write_blocks((ft_cuda_queries *) (void *) (exec->staging + at.blocks), bucket->blocks, batch);
    if (exec->has_cache)
        stage_cache(exec, batch, bucket, &at);
    return at.bytes;
}
