/*
 * token_scores.c - logits of every token of a dataset, one forward pass at a time.
 *
 * Rows are read in order.  Only the last row of a pass may be incomplete; it continues as the first
 * row of the next pass.  Pairs of encoder-decoders are never split, and use teacher forcing.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/scores/token_scores.h"

#include "runtime/error.h"
#include "runtime/mem.h"
#include "runtime/graph/plan.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct ft_scorer {
    ft_session *session;
    const ft_dataset *data;
    int32_t *ids;           /* tokens of all rows, packed */
    size_t *start;          /* [rows + 1] */
    size_t current, cached; /* the current row, and its tokens in the KV cache */
    int logits_value;
    bool pairs;         /* source-target pairs: `ids` and `start` are unused */
    size_t count, *row; /* of the pass */
    int32_t *next;
    float *logits;
    size_t vocabulary;
};

/* ---- Opening ------------------------------------------------------------------------------ */

static ft_status allocate(ft_scorer *s, ft_error *err)
{
    size_t tokens = s->session->limits.tokens, elements;
    s->ids = ft_calloc(s->pairs ? 0 : ft_dataset_tokens(s->data), sizeof *s->ids);
    s->start = ft_calloc(s->data->rows + 1, sizeof *s->start);
    s->row = ft_calloc(tokens, sizeof *s->row);
    s->next = ft_calloc(tokens, sizeof *s->next);
    if (ft_checked_mul(tokens, s->vocabulary, &elements))
        s->logits = ft_calloc(elements, sizeof *s->logits);
    if (s->ids == NULL || s->start == NULL || s->row == NULL || s->next == NULL ||
        s->logits == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for %zu tokens of %zu logits", tokens,
                       s->vocabulary);
    return FT_OK;
}

static void pack(ft_scorer *s)
{
    const ft_dataset *data = s->data;
    size_t tokens = 0;
    for (size_t i = 0; i < data->rows * data->cols; i++) {
        if (data->mask[i] != 0)
            s->ids[tokens++] = data->ids[i];
        s->start[i / data->cols + 1] = tokens;
    }
}

static ft_status check(const ft_scorer *s, ft_error *err)
{
    const ft_session *session = s->session;
    for (size_t row = 0; row < s->data->rows; row++) {
        size_t tokens = s->start[row + 1] - s->start[row];
        if (tokens > session->context)
            return ft_fail(err, FT_ELIMIT, "row %zu: %zu tokens, but the context has %zu", row,
                           tokens, session->context);
        if (ft_pages_for_tokens(tokens) > session->limits.pages)
            return ft_fail(err, FT_ELIMIT, "row %zu: %zu tokens, but the cache has %zu", row,
                           tokens, session->limits.pages * FT_PAGE_TOKENS);
    }
    return FT_OK;
}

/* A label can be scored only if the decoder input at its position is not padding. */
static ft_status check_pairs(const ft_scorer *s, ft_error *err)
{
    const ft_dataset *d = s->data;
    for (size_t i = 0; i < d->rows * d->target_cols; i++)
        if (d->target_labels[i] >= 0 && d->target_mask[i] == 0)
            return ft_fail(err, FT_EFORMAT,
                           "labels[%zu][%zu] is %d, but the decoder input at this position is "
                           "padding",
                           i / d->target_cols, i % d->target_cols, d->target_labels[i]);
    return FT_OK;
}

ft_status ft_scorer_open(ft_scorer **out, ft_session *session, const ft_dataset *data,
                         ft_error *err)
{
    *out = NULL;
    assert(session->all_logits);
    ft_scorer *s = ft_calloc(1, sizeof *s);
    if (s == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory to score");
    s->session = session;
    s->data = data;
    s->pairs = data->target_labels != NULL;
    s->vocabulary = (size_t) session->model->config.vocabulary;
    for (int i = 0; i < session->plan.noutput; i++)
        if (strcmp(session->plan.output[i].name, "logits") == 0)
            s->logits_value = session->plan.output[i].value;
    ft_status status = allocate(s, err);
    if (status == FT_OK && s->pairs) {
        status = check_pairs(s, err);
    } else if (status == FT_OK) {
        pack(s);
        status = check(s, err);
    }
    if (status != FT_OK) {
        ft_scorer_close(s);
        return status;
    }
    ft_page_table_clear(&session->chunks->pages);
    *out = s;
    return FT_OK;
}

void ft_scorer_close(ft_scorer *scorer)
{
    if (scorer == NULL)
        return;
    free(scorer->ids);
    free(scorer->start);
    free(scorer->row);
    free(scorer->next);
    free(scorer->logits);
    free(scorer);
}

/* ---- Running ------------------------------------------------------------------------------ */

static void record_rows(ft_scorer *s, size_t first, size_t count)
{
    for (size_t i = first; i < first + count; i++) {
        s->row[s->count] = s->current;
        s->next[s->count++] = i + 1 < s->start[s->current + 1] ? s->ids[i + 1] : -1;
    }
}

/* Add as much of the current row as fits; false: the row waits for the next pass. */
static bool add_chunk(ft_scorer *s)
{
    ft_chunk_batch *chunks = s->session->chunks;
    size_t first = s->start[s->current] + s->cached, row_left = s->start[s->current + 1] - first;
    size_t count = ft_min_size(row_left, s->session->limits.tokens - s->count);
    size_t slot =
        s->current % s->session->limits.sequences; /* consecutive rows use different slots */
    size_t tokens = s->cached + row_left;
    if (count == 0 || chunks->batch.sequences == s->session->limits.sequences ||
        !ft_page_table_reserve(&chunks->pages, slot, tokens))
        return false;
    ft_chunk_batch_add(chunks, &(ft_prefill_chunk){ .slot = slot,
                                                    .n_past = s->cached,
                                                    .n_tokens = tokens,
                                                    .ids = s->ids + first,
                                                    .count = count,
                                                    .logits = FT_LOGITS_ALL });
    record_rows(s, first, count);
    s->cached += count;
    return true;
}

/* Pages of completed rows are released after the pass. */
static void add_rows(ft_scorer *s)
{
    ft_chunk_batch_clear(s->session->chunks);
    s->count = 0;
    while (s->current < s->data->rows && add_chunk(s)) {
        if (s->cached < s->start[s->current + 1] - s->start[s->current])
            return;
        s->current++;
        s->cached = 0;
    }
}

static void release_ended(ft_scorer *s)
{
    for (size_t i = 0; i < s->count; i++)
        if (s->row[i] != s->current)
            ft_page_table_release(&s->session->chunks->pages,
                                  s->row[i] % s->session->limits.sequences);
}

/* Record the target tokens of the next rows, as many as fit, in packing order. */
static size_t record_pairs(ft_scorer *s)
{
    const ft_dataset *d = s->data;
    const ft_limits *limits = &s->session->limits;
    size_t rows = ft_dataset_batch_rows(d, s->current, limits->tokens, limits->sequences);
    size_t first = s->current * d->target_cols;
    s->count = 0;
    for (size_t i = first; i < first + rows * d->target_cols; i++)
        if (d->target_mask[i] != 0) {
            s->row[s->count] = i / d->target_cols;
            s->next[s->count++] = d->target_labels[i];
        }
    return rows;
}

static ft_status run_pairs(ft_scorer *s, ft_error *err)
{
    size_t first = s->current, rows = record_pairs(s);
    if (rows == 0)
        return FT_OK;
    s->current += rows;
    FT_TRY(ft_dataset_set_inputs(s->data, first, rows, s->session, err));
    return ft_session_run(s->session, err);
}

static ft_status run_rows(ft_scorer *s, ft_error *err)
{
    add_rows(s);
    if (s->count == 0)
        return FT_OK;
    FT_TRY(ft_session_run_chunks(s->session, err));
    release_ended(s);
    return FT_OK;
}

ft_status ft_scorer_run(ft_scorer *scorer, ft_token_logits *out, ft_error *err)
{
    FT_TRY(scorer->pairs ? run_pairs(scorer, err) : run_rows(scorer, err));
    *out = (ft_token_logits){ scorer->count, scorer->row, scorer->next, scorer->logits,
                              scorer->vocabulary };
    return scorer->count > 0 ? ft_session_read_f32(scorer->session, scorer->logits_value,
                                                   scorer->logits, scorer->count, err)
                             : FT_OK;
}
