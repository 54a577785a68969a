/*
 * generate.c - generate a text for the source or prompt of each pair, as ft-run does.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/tools/eval/generate.h"

#include "runtime/cli/progress.h"
#include "runtime/data/model_pairs.h"
#include "runtime/error.h"
#include "runtime/generate/session_sizes.h"
#include "runtime/mem.h"
#include "runtime/model/session.h"

#include <stdlib.h>

typedef struct {
    const ft_eval *eval;
    const ft_model *model;
    ft_generated_texts *out;
    ft_model_pairs pairs;
    ft_request *request; /* [out->count] */
    int32_t begin[2];    /* encoder-decoders: the first tokens of the decoder */
    size_t num_begin;
    size_t num_finished;
    ft_progress_line line;
    ft_error *err;    /* of the callback that failed */
    ft_status status; /* of the callbacks */
} job;

/* ---- Requests ------------------------------------------------------------------------------- */

static void set_begin(job *j)
{
    if (!ft_config_is_encoder_decoder(&j->model->config))
        return;
    j->begin[j->num_begin++] = j->model->config.decoder_start_id;
    int32_t first = ft_translator_first_token(&j->pairs.translator, j->model);
    if (first >= 0)
        j->begin[j->num_begin++] = first;
}

/* Beam search has its own prefix of the decoder. */
static ft_request make_request(const job *j, const ft_encoding *row)
{
    const ft_request request = { .max_new_tokens = j->eval->max_new_tokens };
    ft_request r = request;
    if (j->num_begin == 0 && j->eval->beams == 0) {
        r.prompt = row->ids;
        r.prompt_tokens = row->count;
        return r;
    }
    r.source = row->ids;
    r.source_tokens = row->count;
    if (j->eval->beams == 0) {
        r.prompt = j->begin;
        r.prompt_tokens = j->num_begin;
    }
    return r;
}

static ft_status make_requests(job *j, ft_error *err)
{
    const ft_encoded_examples *sources = &j->pairs.sources;
    j->request = ft_calloc(sources->count, sizeof *j->request);
    j->out->text = ft_calloc(sources->count, sizeof *j->out->text);
    if (j->request == NULL || j->out->text == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for %zu texts", sources->count);
    j->out->count = sources->count;
    set_begin(j);
    for (size_t i = 0; i < sources->count; i++) {
        j->request[i] = make_request(j, sources->row[i]);
        j->out->source_tokens += sources->row[i]->count;
    }
    return FT_OK;
}

/* ---- Texts ---------------------------------------------------------------------------------- */

static void add_finished(job *j)
{
    ft_progress_update(&j->line, ++j->num_finished, j->out->count);
}

static bool add_text(job *j, size_t index, const char *text, size_t bytes)
{
    if (bytes > 0 && !ft_strbuf_append(&j->out->text[index], text, bytes))
        j->status = ft_fail(j->err, FT_ENOMEM, "no memory for text %zu", index + 1);
    return j->status == FT_OK;
}

static bool on_token(void *user, const ft_token *token)
{
    job *j = user;
    if (token->reason != FT_FINISH_NONE)
        add_finished(j);
    return add_text(j, token->request, token->text, token->text_bytes);
}

static ft_status decode(ft_strbuf *out, const ft_tokenizer *tokenizer, const ft_hypothesis *found,
                        ft_error *err)
{
    size_t bytes;
    FT_TRY(ft_tokenizer_decode(tokenizer, found->ids, found->tokens, true, NULL, 0, &bytes, err));
    if (!ft_strbuf_reserve(out, bytes))
        return ft_fail(err, FT_ENOMEM, "no memory for a text of %zu bytes", bytes);
    FT_TRY(ft_tokenizer_decode(tokenizer, found->ids, found->tokens, true, out->data, bytes,
                               &out->bytes, err));
    return FT_OK;
}

static bool on_hypothesis(void *user, const ft_hypothesis *found)
{
    job *j = user;
    add_finished(j);
    if (found->tokens > 0)
        j->status =
            decode(&j->out->text[found->request], j->pairs.translator.target, found, j->err);
    return j->status == FT_OK;
}

/* ---- Generating ----------------------------------------------------------------------------- */

static ft_status open_session(ft_session **out, const job *j, ft_error *err)
{
    const ft_eval *e = j->eval;
    const ft_generation_limits limits = { .batch = e->batch, .chunk = e->chunk };
    ft_session_options options = { .threads = e->threads };
    if (e->beams > 0)
        ft_session_sizes_for_beam_search(&options, j->model, j->request, j->out->count,
                                         (size_t) e->beams, &limits);
    else
        FT_TRY(ft_session_sizes_for_generation(&options, j->model, j->request, j->out->count,
                                               &limits, err));
    return ft_session_open(out, j->model, &options, err);
}

static ft_status search(job *j, ft_session *session, ft_error *err)
{
    const int32_t first = ft_translator_first_token(&j->pairs.translator, j->model);
    const ft_beam_search_options options = { .beams = j->eval->beams, .forced_bos = &first };
    return ft_beam_search(session, j->request, j->out->count, &options, on_hypothesis, j, err);
}

static ft_status generate(job *j, ft_session *session, ft_error *err)
{
    const ft_generate_options options = { .chunk = j->eval->chunk,
                                          .tokenizer = j->pairs.translator.target };
    return ft_generate(session, j->request, j->out->count, &options, on_token, j, err);
}

/* Callbacks write their error elsewhere, as a cancelled generation may overwrite `err`. */
static ft_status run(job *j, ft_error *err)
{
    ft_error callback_err;
    ft_session *session = NULL;
    j->err = &callback_err;
    FT_TRY(open_session(&session, j, err));
    ft_progress_begin(&j->line, "generating", "texts", false);
    ft_status status = j->eval->beams > 0 ? search(j, session, err) : generate(j, session, err);
    ft_progress_end(&j->line);
    ft_session_close(session);
    if (j->status == FT_OK)
        return status;
    return ft_fail(err, j->status, "%s", callback_err.text);
}

ft_status ft_eval_generate_texts(ft_generated_texts *out, const ft_eval *eval,
                                 const ft_model *model, const ft_examples *pairs, ft_error *err)
{
    job j = { .eval = eval, .model = model, .out = out };
    *out = (ft_generated_texts){ .count = 0 };
    ft_status status = ft_model_pairs_encode_sources(&j.pairs, pairs, &eval->texts, model, err);
    if (status == FT_OK)
        status = make_requests(&j, err);
    if (status == FT_OK)
        status = run(&j, err);
    free(j.request);
    ft_model_pairs_fini(&j.pairs);
    return status;
}

void ft_generated_texts_fini(ft_generated_texts *texts)
{
    for (size_t i = 0; i < texts->count; i++)
        ft_strbuf_fini(&texts->text[i]);
    free(texts->text);
    *texts = (ft_generated_texts){ .count = 0 };
}
