/*
 * batch_parallel.c - see batch_parallel.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cpu/batch_parallel.h"

#include "kernels/beam_search.h"
#include "runtime/error.h"
#include "runtime/mem.h"

#include <stdlib.h>
#include <string.h>

/* Enough sequences per thread that one more or less makes no difference to the load balance. */
enum { MIN_SEQUENCES = 4 };

/*
 * A synchronization after an operation costs about 2 us, the time it takes to read this many bytes
 * of cached weights.
 */
enum { SYNC_COST_BYTES = 32 << 10 };

struct ft_batch_shards {
    size_t threads;
    ft_batch_shard *shard; /* [threads] */
    size_t *offset;        /* [values], SIZE_MAX: shared by all shards */
    char *arena;

    /* Arrays of ft_batch whose indices start at 0 in each shard, concatenated over the shards. */
    int32_t *start;         /* [sequences + threads] */
    int32_t *seq_id;        /* [tokens] */
    int32_t *selected_rows; /* [selected] */
    ft_beam_params *beams;  /* [sequences] */
};

/* ---- Whether sharding pays ------------------------------------------------------------------ */

/* Bytes of the matrices of all GEMMs. */
static double gemm_weight_bytes(const ft_plan *plan)
{
    double bytes = 0.0;
    for (int i = 0; i < plan->nop; i++)
        if (ft_op_is_gemm(plan->op[i].kind))
            bytes += (double) ft_weight_bytes(&plan->weight[plan->op[i].weight[0]]);
    return bytes;
}

static bool is_read(const ft_plan *plan, int value)
{
    for (int i = 0; i < plan->nop; i++)
        for (int j = 0; j < FT_MAX_IN; j++)
            if (plan->op[i].in[j] == value)
                return true;
    return false;
}

static bool is_written(const ft_plan *plan, int value)
{
    for (int i = 0; i < plan->nop; i++) {
        const ft_op *op = &plan->op[i];
        if (op->out == value || op->quantized == value || op->second == value)
            return true;
    }
    return false;
}

/* Whether an input, such as images, is in the arena of the full batch instead of in the batch. */
static bool has_arena_inputs(const ft_plan *plan)
{
    for (int i = 0; i < plan->nvalue; i++)
        if (is_read(plan, i) && !is_written(plan, i) && plan->value[i].input == FT_BATCH_NONE)
            return true;
    return false;
}

/* Texts may run side by side where no row depends on the number of rows beside it. */
static bool is_profitable(const ft_plan *plan, const ft_limits *limits)
{
    return limits->threads > 1 && plan->batch_invariant && !has_arena_inputs(plan) &&
           gemm_weight_bytes(plan) <= (double) plan->nop * SYNC_COST_BYTES;
}

/* ---- Memory -------------------------------------------------------------------------------- */

/*
 * Whether a value is needed only during the run. Sampled tokens, for example, are read afterwards.
 */
static bool is_intermediate(const ft_plan *plan, int value)
{
    if (!is_read(plan, value))
        return false;
    for (int i = 0; i < plan->noutput; i++)
        if (plan->output[i].value == value)
            return false;
    return !plan->value[value].state && !plan->value[value].keep &&
           plan->value[value].input == FT_BATCH_NONE;
}

/* Bytes of the state values before `offset`; the layout never reuses their memory. */
static size_t state_bytes(const ft_plan *plan, const ft_limits *limits, size_t offset)
{
    size_t bytes = 0;
    for (int i = 0; i < plan->nvalue; i++) {
        const ft_value *v = &plan->value[i];
        size_t row = (size_t) v->cols * ft_dtype_size(v->dtype);
        if (v->state && v->offset < offset)
            bytes += ft_round_up(ft_limits_rows(limits, v->rows) * row, 64);
    }
    return bytes;
}

/* The layout of the plan without its state values; returns the bytes of one arena. */
static size_t plan_layout(ft_batch_shards *s, const ft_plan *plan, const ft_limits *limits)
{
    for (int i = 0; i < plan->nvalue; i++) {
        size_t offset = plan->value[i].offset;
        s->offset[i] = SIZE_MAX;
        if (is_intermediate(plan, i))
            s->offset[i] = offset - state_bytes(plan, limits, offset);
    }
    return plan->arena - state_bytes(plan, limits, plan->arena);
}

static bool allocate(ft_batch_shards *s, const ft_plan *plan, const ft_limits *limits)
{
    s->shard = ft_calloc(s->threads, sizeof *s->shard);
    s->offset = ft_calloc((size_t) plan->nvalue, sizeof *s->offset);
    s->start = ft_calloc(limits->sequences + s->threads, sizeof *s->start);
    s->seq_id = ft_calloc(limits->tokens, sizeof *s->seq_id);
    s->selected_rows = ft_calloc(limits->selected, sizeof *s->selected_rows);
    s->beams = ft_calloc(limits->sequences, sizeof *s->beams);
    if (s->shard == NULL || s->offset == NULL || s->start == NULL || s->seq_id == NULL ||
        s->selected_rows == NULL || s->beams == NULL)
        return false;
    size_t bytes = ft_round_up(plan_layout(s, plan, limits), 64), total;
    if (ft_checked_mul(bytes, s->threads, &total) && total < ft_memory_available())
        s->arena = ft_calloc_aligned(total);
    for (size_t i = 0; s->arena != NULL && i < s->threads; i++)
        s->shard[i].arena = s->arena + i * bytes;
    return s->arena != NULL;
}

ft_status ft_batch_shards_open(ft_batch_shards **out, const ft_plan *plan, const ft_limits *limits,
                               ft_error *err)
{
    *out = NULL;
    if (!is_profitable(plan, limits))
        return FT_OK;
    ft_batch_shards *s = ft_calloc(1, sizeof *s);
    if (s != NULL) {
        s->threads = (size_t) limits->threads;
        if (allocate(s, plan, limits)) {
            *out = s;
            return FT_OK;
        }
    }
    ft_batch_shards_close(s);
    return ft_fail(err, FT_ENOMEM, "no memory for batch shards of %d threads with %zu tokens each",
                   limits->threads, limits->tokens);
}

void ft_batch_shards_close(ft_batch_shards *s)
{
    if (s == NULL)
        return;
    free(s->shard);
    free(s->offset);
    free(s->start);
    free(s->seq_id);
    free(s->selected_rows);
    free(s->beams);
    free(s->arena);
    free(s);
}

size_t ft_batch_shards_offset(const ft_batch_shards *s, int value)
{
    return s->offset[value];
}

const ft_batch_shard *ft_batch_shards_get(const ft_batch_shards *s, size_t index)
{
    return &s->shard[index];
}

/* ---- Splitting ------------------------------------------------------------------------------ */

/* How many of n ascending numbers are below `limit`. */
static size_t count_below(const int32_t *number, size_t n, size_t limit)
{
    size_t low = 0, high = n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if ((size_t) number[middle] < limit)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static const int32_t *offset_or_null(const int32_t *array, size_t at)
{
    return array == NULL ? NULL : array + at;
}

/*
 * Makes a batch of sequences first .. end - 1, except for the arrays that rebase_rows() fills.
 */
static void slice_batch(ft_batch_shard *shard, const ft_batch *batch, size_t first, size_t end)
{
    size_t row = (size_t) batch->start[first], rows = (size_t) batch->start[end] - row;
    size_t selected = count_below(batch->selected_rows, batch->selected, row);
    shard->first[FT_TOKENS] = row;
    shard->first[FT_SEQUENCES] = first;
    shard->first[FT_SELECTED] = selected;
    ft_batch *b = &shard->batch;
    *b = *batch;
    b->tokens = rows;
    b->sequences = end - first;
    for (int i = 0; i < FT_NUM_BATCH_INPUTS; i++)
        b->input[i] = offset_or_null(batch->input[i], row);
    b->selected = count_below(batch->selected_rows, batch->selected, row + rows) - selected;
    b->n_past = offset_or_null(batch->n_past, first);
    b->n_tokens = offset_or_null(batch->n_tokens, first);
    b->slot = offset_or_null(batch->slot, first);
    b->pages = offset_or_null(batch->pages, first * batch->max_pages);
    b->cross_kv = offset_or_null(batch->cross_kv, first);
    b->cross_kv_pages = offset_or_null(batch->cross_kv_pages, first * batch->max_cross_kv_pages);
    b->sampling = batch->sampling == NULL ? NULL : batch->sampling + selected;
}

static void rebase_rows(ft_batch_shards *s, ft_batch_shard *shard, const ft_batch *batch,
                        size_t index)
{
    ft_batch *b = &shard->batch;
    size_t row = shard->first[FT_TOKENS], first = shard->first[FT_SEQUENCES];
    size_t selected = shard->first[FT_SELECTED];
    int32_t *start = s->start + first + index, *seq_id = s->seq_id + row;
    int32_t *selected_rows = s->selected_rows + selected;
    b->longest = 0;
    for (size_t i = 0; i <= b->sequences; i++)
        start[i] = batch->start[first + i] - (int32_t) row;
    for (size_t i = 0; i < b->sequences; i++) {
        size_t length = (size_t) (start[i + 1] - start[i]);
        b->longest = b->longest < length ? length : b->longest;
    }
    for (size_t i = 0; i < b->tokens; i++)
        seq_id[i] = batch->seq_id[row + i] - (int32_t) first;
    for (size_t i = 0; i < b->selected; i++)
        selected_rows[i] = batch->selected_rows[selected + i] - (int32_t) row;
    b->start = start;
    b->seq_id = seq_id;
    b->selected_rows = selected_rows;
}

/*
 * Beam groups whose first row lies in this shard, starting with group `done`. Returns the first
 * group that is not in it.
 */
static size_t take_beam_groups(ft_batch_shards *s, ft_batch_shard *shard, const ft_batch *batch,
                               size_t done)
{
    ft_batch *b = &shard->batch;
    size_t selected = shard->first[FT_SELECTED], end = done;
    while (end < batch->groups && (size_t) batch->beams[end].row < selected + b->selected) {
        s->beams[end] = batch->beams[end];
        s->beams[end++].row -= (int32_t) selected;
    }
    b->beams = end > done ? s->beams + done : NULL;
    b->groups = end - done;
    return end;
}

/*
 * Sequences go to the threads in order, and each thread gets the range whose row count is nearest
 * to its even share. The beams of one search stay together.
 */
size_t ft_batch_shards_split(ft_batch_shards *s, const ft_batch *batch)
{
    size_t beam_width = batch->beam_width > 1 ? batch->beam_width : 1,
           searches = batch->sequences / beam_width;
    size_t first = 0, beams = 0, count = 0;
    if (searches < MIN_SEQUENCES * s->threads)
        return 0;
    for (size_t i = 1; i <= s->threads; i++) {
        size_t end = count_below(batch->start, batch->sequences, batch->tokens * i / s->threads);
        end = i == s->threads ? batch->sequences : end / beam_width * beam_width;
        if (end <= first)
            continue;
        ft_batch_shard *shard = &s->shard[count];
        slice_batch(shard, batch, first, end);
        rebase_rows(s, shard, batch, count++);
        beams = take_beam_groups(s, shard, batch, beams);
        first = end;
    }
    return count;
}
