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
enum { LEAST_TEXTS = 4 };

/*
 * A synchronization after an operation costs about 2 us, the time it takes to read this many bytes
 * of cached weights.
 */
enum { BYTES_OF_A_MEETING = 32 << 10 };

struct ft_shares {
    const ft_plan *plan;
    size_t threads;
    ft_share *share; /* [threads] */
    size_t *offset;  /* [values], SIZE_MAX: shared by all shards */
    int *input;      /* [inputs]: values that are copied into each shard */
    size_t inputs;
    char *arena;

    /* Arrays of ft_batch whose indices start at 0 in each shard, concatenated over the shards. */
    int32_t *start;  /* [sequences + threads] */
    int32_t *owner;  /* [tokens] */
    int32_t *select; /* [selected] */
    ft_beams *beams; /* [sequences] */
};

/* ---- Whether sharding pays ------------------------------------------------------------------ */

/* Bytes of the weight matrices of all linear layers. */
static double bytes_of_products(const ft_plan *plan)
{
    double bytes = 0.0;
    for (int i = 0; i < plan->nop; i++)
        if (plan->op[i].kind == FT_OP_LINEAR)
            bytes += (double) ft_weight_bytes(&plan->weight[plan->op[i].weight[0]]);
    return bytes;
}

static bool pays(const ft_plan *plan, const ft_limits *limits)
{
    return limits->threads > 1 && plan->steady &&
           bytes_of_products(plan) <= (double) plan->nop * BYTES_OF_A_MEETING;
}

/* ---- Memory -------------------------------------------------------------------------------- */

static bool is_read(const ft_plan *plan, int value)
{
    for (int i = 0; i < plan->nop; i++)
        for (int j = 0; j < FT_MAX_IN; j++)
            if (plan->op[i].in[j] == value)
                return true;
    return false;
}

/*
 * Whether a value is needed only during the run. Sampled tokens, for example, are read afterwards.
 */
static bool goes(const ft_plan *plan, int value)
{
    if (!is_read(plan, value))
        return false;
    for (int i = 0; i < plan->noutput; i++)
        if (plan->output[i].value == value)
            return false;
    return !plan->value[value].state && !plan->value[value].keep;
}

/* Called for values that are read: an input is one that no operation writes. */
static bool is_input(const ft_plan *plan, int value)
{
    for (int i = 0; i < plan->nop; i++) {
        const ft_op *op = &plan->op[i];
        if (op->out == value || op->codes == value || op->second == value)
            return false;
    }
    return true;
}

/* Bytes of the state values before `offset`; the layout never reuses their memory. */
static size_t bytes_of_states(const ft_plan *plan, const ft_limits *limits, size_t offset)
{
    size_t bytes = 0;
    for (int i = 0; i < plan->nvalue; i++) {
        const ft_value *v = &plan->value[i];
        size_t row = (size_t) v->cols * ft_dtype_size(v->dtype);
        if (v->state && v->offset < offset)
            bytes += ft_round_up(ft_rows_within(limits, v->rows) * row, 64);
    }
    return bytes;
}

/* The layout of the plan without its state values; returns the bytes of one arena. */
static size_t lay_out(ft_shares *s, const ft_plan *plan, const ft_limits *limits)
{
    for (int i = 0; i < plan->nvalue; i++) {
        size_t offset = plan->value[i].offset;
        s->offset[i] = SIZE_MAX;
        if (!goes(plan, i))
            continue;
        s->offset[i] = offset - bytes_of_states(plan, limits, offset);
        if (is_input(plan, i))
            s->input[s->inputs++] = i;
    }
    return plan->arena - bytes_of_states(plan, limits, plan->arena);
}

static bool allocate(ft_shares *s, const ft_plan *plan, const ft_limits *limits)
{
    s->share = ft_array(s->threads, sizeof *s->share);
    s->offset = ft_array((size_t) plan->nvalue, sizeof *s->offset);
    s->input = ft_array((size_t) plan->nvalue, sizeof *s->input);
    s->start = ft_array(limits->sequences + s->threads, sizeof *s->start);
    s->owner = ft_array(limits->tokens, sizeof *s->owner);
    s->select = ft_array(limits->selected, sizeof *s->select);
    s->beams = ft_array(limits->sequences, sizeof *s->beams);
    if (s->share == NULL || s->offset == NULL || s->input == NULL || s->start == NULL ||
        s->owner == NULL || s->select == NULL || s->beams == NULL)
        return false;
    size_t bytes = ft_round_up(lay_out(s, plan, limits), 64), all;
    if (ft_mul(bytes, s->threads, &all) && all < ft_memory_free())
        s->arena = ft_alloc(all);
    for (size_t i = 0; s->arena != NULL && i < s->threads; i++)
        s->share[i].arena = s->arena + i * bytes;
    return s->arena != NULL;
}

ft_status ft_shares_open(ft_shares **out, const ft_plan *plan, const ft_limits *limits,
                         ft_error *err)
{
    *out = NULL;
    if (!pays(plan, limits))
        return FT_OK;
    ft_shares *s = ft_array(1, sizeof *s);
    if (s != NULL) {
        s->plan = plan;
        s->threads = (size_t) limits->threads;
        if (allocate(s, plan, limits)) {
            *out = s;
            return FT_OK;
        }
    }
    ft_shares_close(s);
    return ft_fail(err, FT_ENOMEM, "no memory for batch shards of %d threads with %zu tokens each",
                   limits->threads, limits->tokens);
}

void ft_shares_close(ft_shares *s)
{
    if (s == NULL)
        return;
    free(s->share);
    free(s->offset);
    free(s->input);
    free(s->start);
    free(s->owner);
    free(s->select);
    free(s->beams);
    free(s->arena);
    free(s);
}

size_t ft_shares_offset(const ft_shares *s, int value)
{
    return s->offset[value];
}

const ft_share *ft_shares_get(const ft_shares *s, size_t index)
{
    return &s->share[index];
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

static const int32_t *from(const int32_t *array, size_t at)
{
    return array == NULL ? NULL : array + at;
}

/*
 * Makes a batch of sequences first .. end - 1, except for the arrays that rebase_rows() fills.
 */
static void cut(ft_share *share, const ft_batch *run, size_t first, size_t end)
{
    size_t row = (size_t) run->start[first], rows = (size_t) run->start[end] - row;
    size_t chosen = count_below(run->select, run->selected, row);
    share->first[FT_TOKENS] = row;
    share->first[FT_SEQUENCES] = first;
    share->first[FT_SELECTED] = chosen;
    ft_batch *b = &share->batch;
    *b = *run;
    b->tokens = rows;
    b->sequences = end - first;
    b->selected = count_below(run->select, run->selected, row + rows) - chosen;
    b->past = from(run->past, first);
    b->reach = from(run->reach, first);
    b->seat = from(run->seat, first);
    b->pages = from(run->pages, first * run->most_pages);
    b->memory = from(run->memory, first);
    b->memory_pages = from(run->memory_pages, first * run->most_memory_pages);
    b->choice = run->choice == NULL ? NULL : run->choice + chosen;
}

static void count_rows(ft_shares *s, ft_share *share, const ft_batch *run, size_t index)
{
    ft_batch *b = &share->batch;
    size_t row = share->first[FT_TOKENS], first = share->first[FT_SEQUENCES];
    size_t chosen = share->first[FT_SELECTED];
    int32_t *start = s->start + first + index, *owner = s->owner + row;
    int32_t *select = s->select + chosen;
    b->longest = 0;
    for (size_t i = 0; i <= b->sequences; i++)
        start[i] = run->start[first + i] - (int32_t) row;
    for (size_t i = 0; i < b->sequences; i++) {
        size_t length = (size_t) (start[i + 1] - start[i]);
        b->longest = b->longest < length ? length : b->longest;
    }
    for (size_t i = 0; i < b->tokens; i++)
        owner[i] = run->owner[row + i] - (int32_t) first;
    for (size_t i = 0; i < b->selected; i++)
        select[i] = run->select[chosen + i] - (int32_t) row;
    b->start = start;
    b->owner = owner;
    b->select = select;
}

/*
 * Beam groups whose first row lies in this shard, starting with group `done`. Returns the first
 * group that is not in it.
 */
static size_t take_beams(ft_shares *s, ft_share *share, const ft_batch *run, size_t done)
{
    ft_batch *b = &share->batch;
    size_t chosen = share->first[FT_SELECTED], end = done;
    while (end < run->groups && (size_t) run->beams[end].row < chosen + b->selected) {
        s->beams[end] = run->beams[end];
        s->beams[end++].row -= (int32_t) chosen;
    }
    b->beams = end > done ? s->beams + done : NULL;
    b->groups = end - done;
    return end;
}

/* Copied before any shard runs: a later value may reuse the memory of an input. */
static void copy_inputs(const ft_shares *s, ft_share *share, const char *arena)
{
    for (size_t i = 0; i < s->inputs; i++) {
        const ft_value *v = &s->plan->value[s->input[i]];
        size_t row = (size_t) v->cols * ft_dtype_size(v->dtype);
        memcpy(share->arena + s->offset[s->input[i]],
               arena + v->offset + share->first[v->rows] * row,
               ft_batch_rows(&share->batch, v->rows) * row);
    }
}

/*
 * Sequences go to the threads in order, and each thread gets the range whose row count is nearest
 * to its even share. The beams of one search stay together.
 */
size_t ft_shares_cut(ft_shares *s, const ft_batch *run, const char *arena)
{
    size_t lanes = run->lanes > 1 ? run->lanes : 1, texts = run->sequences / lanes;
    size_t first = 0, beams = 0, count = 0;
    if (texts < LEAST_TEXTS * s->threads)
        return 0;
    for (size_t i = 1; i <= s->threads; i++) {
        size_t end = count_below(run->start, run->sequences, run->tokens * i / s->threads);
        end = i == s->threads ? run->sequences : end / lanes * lanes;
        if (end <= first)
            continue;
        ft_share *share = &s->share[count];
        cut(share, run, first, end);
        count_rows(s, share, run, count++);
        beams = take_beams(s, share, run, beams);
        copy_inputs(s, share, arena);
        first = end;
    }
    return count;
}
