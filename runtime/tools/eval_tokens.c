/*
 * eval_tokens.c - judge a decoder: each token of a row, from the second one on, is predicted by
 * those before it.
 *
 * Of two models, each run of one is compared with the same run of the other, so that logits need
 * the memory of one run only.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/error.h"
#include "runtime/mem.h"
#include "runtime/score.h"
#include "runtime/tools/eval.h"

#include <stdlib.h>

/* A model that reads the data. */
typedef struct reader {
    ft_session *session; /* NULL: there is no other model */
    ft_scorer *scorer;
    ft_scored scored;
} reader;

typedef struct job {
    ft_judgement *out;
    ft_dataset data;
    reader this, other;
    ft_verdict *verdict; /* [tokens of a run] */
} job;

static ft_status open_reader(reader *out, const ft_eval *eval, const ft_model *model,
                             const ft_dataset *data, ft_error *err)
{
    size_t seats = ft_min_size(data->rows, 64);
    size_t chunk =
        ft_min_size(eval->chunk > 0 ? (size_t) eval->chunk : 512, ft_dataset_tokens(data));
    /* A row that goes on, rows of a run, and pages that each of them has begun. */
    size_t cache = 2 * data->cols + chunk + (seats + 1) * FT_PAGE;
    const ft_session_options options = {
        .threads = eval->threads,
        .max_tokens = (int64_t) chunk,
        .max_sequences = (int64_t) seats,
        .context = (int64_t) data->cols,
        .cache_tokens = (int64_t) cache,
        .every_logits = true,
    };
    if (model == NULL)
        return FT_OK;
    FT_TRY(ft_session_open(&out->session, model, &options, err));
    return ft_scorer_open(&out->scorer, out->session, data, err);
}

static void close_reader(reader *r)
{
    ft_scorer_close(r->scorer);
    ft_session_close(r->session);
}

/* Each prediction is judged by one thread, all are added in their order. */
static ft_status judge_run(job *j, ft_error *err)
{
    const ft_scored *a = &j->this.scored, *b = &j->other.scored;
    bool compares = j->other.scorer != NULL;
    int threads = j->this.session->limits.threads;
#pragma omp parallel for num_threads(threads) schedule(static)
    for (size_t i = 0; i < a->count; i++)
        if (a->next[i] >= 0)
            j->verdict[i] = ft_judge(a->logits + i * a->vocabulary,
                                     compares ? b->logits + i * b->vocabulary : NULL, a->vocabulary,
                                     a->next[i]);
    for (size_t i = 0; i < a->count; i++)
        if (a->next[i] >= 0)
            FT_TRY(ft_judgement_add(j->out, a->row[i], a->next[i], &j->verdict[i], err));
    return FT_OK;
}

static ft_status judge_all(job *j, ft_error *err)
{
    j->verdict = ft_array(j->this.session->limits.tokens, sizeof *j->verdict);
    if (j->verdict == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory to judge a run");
    for (;;) {
        FT_TRY(ft_scorer_run(j->this.scorer, &j->this.scored, err));
        if (j->other.scorer != NULL)
            FT_TRY(ft_scorer_run(j->other.scorer, &j->other.scored, err));
        if (j->this.scored.count == 0)
            return FT_OK;
        FT_TRY(judge_run(j, err));
    }
}

static ft_status read_data(job *j, const ft_eval *eval, const ft_model *model, ft_error *err)
{
    if (eval->context > model->config.positions)
        return ft_fail(err, FT_ELIMIT,
                       "%s: a context of %lld tokens, but the model has %d positions", model->path,
                       (long long) eval->context, model->config.positions);
    return eval->context > 0
               ? ft_dataset_read_cut(&j->data, eval->data, model, (size_t) eval->context, err)
               : ft_dataset_read(&j->data, eval->data, model, err);
}

static ft_status work(job *j, const ft_eval *eval, const ft_model *model, const ft_model *other,
                      ft_error *err)
{
    if (other != NULL && other->config.vocabulary != model->config.vocabulary)
        return ft_fail(err, FT_ESHAPE, "%s: %d tokens in the vocabulary, but %s has %d",
                       other->path, other->config.vocabulary, model->path,
                       model->config.vocabulary);
    FT_TRY(read_data(j, eval, model, err));
    FT_TRY(ft_judgement_init(j->out, j->data.rows, other != NULL, err));
    j->out->tokens = ft_dataset_tokens(&j->data);
    FT_TRY(open_reader(&j->this, eval, model, &j->data, err));
    FT_TRY(open_reader(&j->other, eval, other, &j->data, err));
    FT_TRY(judge_all(j, err));
    if (j->out->count == 0)
        return ft_fail(err, FT_EFORMAT, "%s: no row has two tokens: nothing is predicted",
                       eval->data);
    return FT_OK;
}

ft_status ft_eval_tokens(ft_judgement *out, const ft_eval *eval, const ft_model *model,
                         const ft_model *other, ft_error *err)
{
    job j = { .out = out };
    ft_status status = work(&j, eval, model, other, err);
    close_reader(&j.this);
    close_reader(&j.other);
    ft_dataset_fini(&j.data);
    free(j.verdict);
    return status;
}
