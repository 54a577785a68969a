/*
 * tokens.c - evaluate a decoder: each token of a row, from the second one on, is predicted from
 * those before it; of an encoder-decoder, each label from the source and the previous labels.
 *
 * With a baseline, both models run the same batches alternately, so memory for the logits of one
 * batch is enough.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/threads/team.h"
#include "runtime/error.h"
#include "runtime/mem.h"
#include "runtime/scores/token_scores.h"
#include "runtime/tools/eval/eval.h"
#include "runtime/cli/progress.h"

#include <stdlib.h>

/* A model and its scorer. */
typedef struct model_reader {
    ft_session *session; /* NULL: no baseline */
    ft_scorer *scorer;
    ft_token_logits scored;
} model_reader;

typedef struct job {
    ft_eval_result *out;
    ft_eval_samples samples;
    model_reader this, other;
    ft_prediction_score *prediction; /* [tokens of a batch] */
    ft_progress_line line;
} job;

/* Tokens per pass.  Source-target pairs are not split, so it may exceed --chunk. */
static size_t run_tokens(const ft_eval *eval, const ft_dataset *data)
{
    size_t requested = eval->chunk > 0 ? (size_t) eval->chunk : 512;
    size_t chunk = ft_min_size(requested, ft_dataset_tokens(data));
    size_t min_chunk = data->target_ids != NULL ? ft_dataset_max_length(data) : 1;
    return chunk > min_chunk ? chunk : min_chunk;
}

static ft_status open_reader(model_reader *out, const ft_eval *eval, const ft_model *model,
                             const ft_dataset *data, ft_error *err)
{
    size_t num_slots = ft_min_size(data->rows, 64);
    size_t chunk = run_tokens(eval, data), context = ft_dataset_max_context(data);
    /* A continued row, the rows of a pass, and a partial page for each of them. */
    size_t cache = 2 * context + chunk + (num_slots + 1) * FT_PAGE_TOKENS;
    const ft_session_options options = {
        .threads = eval->threads,
        .max_tokens = (int64_t) chunk,
        .max_sequences = (int64_t) num_slots,
        .context = (int64_t) context,
        .cache_tokens = (int64_t) cache,
        .all_logits = true,
    };
    if (model == NULL)
        return FT_OK;
    FT_TRY(ft_session_open(&out->session, model, &options, err));
    return ft_scorer_open(&out->scorer, out->session, data, err);
}

static void close_reader(model_reader *r)
{
    ft_scorer_close(r->scorer);
    ft_session_close(r->session);
}

static void score_range(const void *of, int thread, size_t first, size_t end)
{
    const job *j = of;
    const ft_token_logits *a = &j->this.scored, *b = &j->other.scored;
    bool compares = j->other.scorer != NULL;
    (void) thread;
    for (size_t i = first; i < end; i++)
        if (a->next[i] >= 0)
            j->prediction[i] = ft_score_prediction(a->logits + i * a->vocabulary,
                                                   compares ? b->logits + i * b->vocabulary : NULL,
                                                   a->vocabulary, a->next[i]);
}

/* Predictions are scored in parallel and added in order. */
static ft_status score_run(job *j, ft_error *err)
{
    const ft_token_logits *a = &j->this.scored;
    ft_parallel_for(j->this.session->limits.threads, a->count, score_range, j);
    for (size_t i = 0; i < a->count; i++)
        if (a->next[i] >= 0)
            FT_TRY(ft_eval_result_add(j->out, a->row[i], a->next[i], &j->prediction[i], err));
    return FT_OK;
}

static ft_status score_all(job *j, ft_error *err)
{
    j->prediction = ft_calloc(j->this.session->limits.tokens, sizeof *j->prediction);
    if (j->prediction == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for the scores of a batch");
    bool pairs = j->samples.data.target_ids != NULL;
    size_t total = pairs ? ft_dataset_target_tokens(&j->samples.data)
                         : ft_dataset_source_tokens(&j->samples.data);
    ft_progress_begin(&j->line, "evaluating", "tokens", false);
    for (size_t done = 0;; done += j->this.scored.count) {
        ft_progress_update(&j->line, done, total);
        FT_TRY(ft_scorer_run(j->this.scorer, &j->this.scored, err));
        if (j->other.scorer != NULL)
            FT_TRY(ft_scorer_run(j->other.scorer, &j->other.scored, err));
        if (j->this.scored.count == 0)
            return FT_OK;
        FT_TRY(score_run(j, err));
    }
}

/* Source-target pairs of an encoder-decoder: labels are required, and rows are not split. */
static ft_status read_pairs(job *j, const ft_eval *eval, const ft_model *model, ft_error *err)
{
    if (eval->context > 0)
        return ft_fail(err, FT_EARG,
                       "%s: --ctx applies to decoders, but this is an encoder-decoder, whose "
                       "pairs are not split",
                       model->path);
    FT_TRY(ft_eval_samples_read(&j->samples, eval, model, err));
    if (j->samples.data.target_labels != NULL)
        return FT_OK;
    return ft_fail(err, FT_EFORMAT,
                   "%s: no labels: for the encoder-decoder %s the data must contain labels "
                   "[%zu, T], the target tokens of each row of input_ids, padded with -100, and of "
                   "the shape of decoder_input_ids, if given",
                   eval->data, model->path, j->samples.data.rows);
}

static ft_status read_data(job *j, const ft_eval *eval, const ft_model *model, ft_error *err)
{
    if (ft_config_is_encoder_decoder(&model->config))
        return read_pairs(j, eval, model, err);
    if (eval->context > model->config.positions)
        return ft_fail(err, FT_ELIMIT,
                       "%s: a context of %lld tokens, but the model has %d positions", model->path,
                       (long long) eval->context, model->config.positions);
    return eval->context > 0 ? ft_dataset_read_chunked(&j->samples.data, eval->data, model,
                                                       (size_t) eval->context, err)
                             : ft_eval_samples_read(&j->samples, eval, model, err);
}

static ft_status work(job *j, const ft_eval *eval, const ft_model *model, const ft_model *other,
                      ft_error *err)
{
    if (other != NULL && other->config.vocabulary != model->config.vocabulary)
        return ft_fail(err, FT_ESHAPE, "%s: %d tokens in the vocabulary, but %s has %d",
                       other->path, other->config.vocabulary, model->path,
                       model->config.vocabulary);
    FT_TRY(read_data(j, eval, model, err));
    FT_TRY(ft_eval_result_init(j->out, j->samples.data.rows, other != NULL, err));
    j->out->tokens =
        ft_dataset_source_tokens(&j->samples.data) + ft_dataset_target_tokens(&j->samples.data);
    FT_TRY(open_reader(&j->this, eval, model, &j->samples.data, err));
    FT_TRY(open_reader(&j->other, eval, other, &j->samples.data, err));
    FT_TRY(score_all(j, err));
    if (j->out->count > 0)
        return FT_OK;
    return ft_fail(err, FT_EFORMAT, "%s: %s: there is nothing to predict", eval->data,
                   j->samples.data.target_labels != NULL ? "labels are all padding"
                                                         : "no row has two tokens");
}

ft_status ft_eval_tokens(ft_eval_result *out, const ft_eval *eval, const ft_model *model,
                         const ft_model *other, ft_error *err)
{
    job j = { .out = out };
    ft_status status = work(&j, eval, model, other, err);
    ft_progress_end(&j.line);
    close_reader(&j.this);
    close_reader(&j.other);
    ft_eval_samples_fini(&j.samples);
    free(j.prediction);
    return status;
}
