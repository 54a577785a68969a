/*
 * generation.c - calls that generate text: continuations and translations.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/serving/serving.h"

#include "runtime/mem.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_STOP = 64 };

/* ---- Prompts ------------------------------------------------------------------------------- */

static ft_status read_text(ft_serving_buffer *ids, ft_serving_call *call, const json_t *text,
                           ft_error *err)
{
    if (text == NULL)
        return FT_OK;
    FT_TRY(ft_serving_sequence_begin(call, text, err));
    return ft_serving_encode_text(ids, call->instance->shared->tokenizers.source, call->said.data,
                                  call->said.bytes, err);
}

static ft_status copy_ids(ft_serving_buffer *ids, const ft_tensor *from, ft_error *err)
{
    for (size_t i = 0; from->data != NULL && i < ft_tensor_numel(from); i++) {
        int64_t id = from->dtype == FT_I32 ? ((const int32_t *) from->data)[i]
                                           : ((const int64_t *) from->data)[i];
        int32_t narrow = id == (int32_t) id ? (int32_t) id : -1; /* which the engine refuses */
        FT_TRY(ft_serving_append(ids, &narrow, sizeof narrow, err));
    }
    return FT_OK;
}

static ft_status read_prompt(ft_serving_buffer *ids, int32_t *first, ft_serving_call *call,
                             ft_error *err)
{
    const ft_tensor *given = &call->input[FT_IN_IDS];
    const json_t *texts = call->settings.text_input,
                 *text = json_is_array(texts) ? json_array_get(texts, 0) : texts;
    if ((text == NULL) == (given->data == NULL))
        return ft_fail(err, FT_EARG, "found %s, expected either text_input or input_ids",
                       text != NULL ? "both" : "none");
    FT_TRY(call->instance->shared->signature.translates
               ? ft_serving_read_source(ids, first, call, text, err)
               : read_text(ids, call, text, err));
    FT_TRY(copy_ids(ids, given, err));
    size_t tokens = ids->bytes / sizeof(int32_t), context = call->instance->context;
    return tokens < context
               ? FT_OK
               : ft_fail(err, FT_EARG, "found %zu tokens, expected less than %zu", tokens, context);
}

/* ---- Responses ----------------------------------------------------------------------------- */

/* Send what has been generated since the last response. */
static ft_status send(ft_serving_call *call, bool final, ft_error *err)
{
    const int64_t one = 1, tokens = (int64_t) (call->ids.bytes / sizeof(int32_t)),
                  logprobs = (int64_t) (call->logprobs.bytes / sizeof(float));
    const char *reason = call->reason == FT_FINISH_NONE ? "" : ft_finish_reason_name(call->reason);
    ft_serving_buffer text = { 0 }, name = { 0 };
    ft_status status = ft_serving_append_text(&text, call->text.data, call->text.bytes, err);
    if (status == FT_OK)
        status = ft_serving_append_text(&name, reason, strlen(reason), err);
    const ft_serving_output outputs[] = {
        { "text_output", FT_U8, 1, &one, text.data, text.bytes },
        { "finish_reason", FT_U8, 1, &one, name.data, name.bytes },
        { "output_ids", FT_I32, 1, &tokens, call->ids.data, call->ids.bytes },
        { "logprobs", FT_F32, 1, &logprobs, call->logprobs.data, call->logprobs.bytes },
        { "score", FT_F32, 1, &one, &call->score, sizeof call->score },
    };
    if (status == FT_OK)
        status = call->server->send(call, outputs, FT_COUNT(outputs), final, err);
    call->text.bytes = call->ids.bytes = call->logprobs.bytes = 0;
    free(text.data);
    free(name.data);
    return status;
}

static ft_status respond(ft_serving_call *call, ft_error *err)
{
    return call->settings.stream ? call->server->send(call, NULL, 0, true, err)
                                 : send(call, true, err);
}

/* ---- Callbacks of the engine --------------------------------------------------------------- */

static ft_status add_token(ft_serving_call *call, const ft_token *token, ft_error *err)
{
    call->reason = token->reason;
    call->score += token->logprob;
    FT_TRY(ft_serving_append(&call->text, token->text, token->text_bytes, err));
    FT_TRY(ft_serving_append(&call->said, token->text, token->text_bytes, err));
    FT_TRY(ft_serving_append(&call->ids, &token->id, sizeof token->id, err));
    FT_TRY(ft_serving_append(&call->logprobs, &token->logprob, sizeof token->logprob, err));
    return call->settings.stream ? send(call, false, err) : FT_OK;
}

static bool on_token(void *user, const ft_token *token)
{
    ft_serving_call *call = user;
    ft_error failure;
    call->computed = ft_serving_now();
    ft_serving_sweep(call->instance);
    return token->id < 0 ||
           (!call->server->is_cancelled(call) && add_token(call, token, &failure) == FT_OK);
}

static ft_status add_hypothesis(ft_serving_call *call, const ft_hypothesis *found, ft_error *err)
{
    ft_detokenizer *detokenizer;
    const char *text;
    size_t bytes;
    ft_status status =
        ft_serving_append(&call->ids, found->ids, found->tokens * sizeof *found->ids, err);
    if (status != FT_OK || call->instance->shared->tokenizers.target == NULL)
        return status;
    FT_TRY(ft_detokenizer_open(&detokenizer, call->instance->shared->tokenizers.target, true, err));
    for (size_t i = 0; i <= found->tokens && status == FT_OK; i++) {
        status = i < found->tokens
                     ? ft_detokenizer_push(detokenizer, found->ids[i], &text, &bytes, err)
                     : ft_detokenizer_finish(detokenizer, &text, &bytes, err);
        if (status == FT_OK)
            status = ft_serving_append(&call->text, text, bytes, err);
    }
    ft_detokenizer_close(detokenizer);
    return status;
}

static bool on_hypothesis(void *user, const ft_hypothesis *found)
{
    ft_serving_call *call = user;
    ft_error failure;
    call->computed = ft_serving_now();
    call->reason = found->reason;
    call->score = found->score;
    return add_hypothesis(call, found, &failure) == FT_OK;
}

static void on_end(void *user, uint64_t id, ft_status status, const ft_error *failure)
{
    ft_serving_call *call = user;
    (void) id;
    ft_serving_sweep(call->instance);
    ft_serving_call_leave(call, status, failure);
}

/* -------------------------------------------------------------------------------------------- */

/* The settings refer to texts that the engine copies. */
static ft_status set_stop(ft_request *r, const char **strings, const json_t *stop, ft_error *err)
{
    if (json_array_size(stop) > MAX_STOP)
        return ft_fail(err, FT_EARG, "stop: found %zu texts, expected at most %d",
                       json_array_size(stop), MAX_STOP);
    if (json_is_string(stop))
        strings[0] = json_string_value(stop);
    for (size_t i = 0; i < json_array_size(stop); i++)
        strings[i] = json_string_value(json_array_get(stop, i));
    r->stop_strings = strings[0] != NULL ? strings : NULL;
    return FT_OK;
}

/* A translation starts with its first token, which a beam search forces. */
static ft_status submit(ft_serving_call *call, const ft_serving_buffer *ids, int32_t first,
                        ft_error *err)
{
    static const int32_t no_stop_ids;
    const char *stop[MAX_STOP + 1] = { NULL };
    const int32_t begin[] = { call->instance->shared->cpu->config.decoder_start_id, first };
    ft_serving_settings *s = &call->settings;
    ft_request *r = &s->sampling;
    const size_t tokens = ids->bytes / sizeof(int32_t);
    FT_TRY(set_stop(r, stop, s->stop, err));
    r->stop_ids = s->ignore_eos ? &no_stop_ids : NULL;
    r->prompt = (const int32_t *) (const void *) ids->data;
    r->prompt_tokens = tokens;
    if (call->instance->shared->signature.translates) {
        r->source = r->prompt;
        r->source_tokens = tokens;
        r->prompt = s->search.beams == 0 ? begin : NULL;
        r->prompt_tokens = s->search.beams != 0 ? 0 : first >= 0 ? 2 : 1;
    }
    s->search.forced_bos = &first;
    s->search.no_length_normalization =
        json_object_get(call->values, "length_penalty") != NULL && s->search.length_penalty == 0.0;
    ft_engine_request request = { .generate = r,
                                  .beams = s->search.beams != 0 ? &s->search : NULL,
                                  .on_token = on_token,
                                  .on_hypothesis = on_hypothesis,
                                  .on_end = on_end,
                                  .user = call };
    return ft_serving_call_submit(call, &request, 0, err);
}

ft_status ft_serving_generate(ft_serving_call *call, ft_error *err)
{
    const ft_serving_settings *s = &call->settings;
    ft_serving_buffer ids = { 0 };
    int32_t first = -1;
    call->respond = respond;
    if (s->stream && (!call->instance->shared->decoupled || s->search.beams != 0))
        return ft_fail(err, FT_EARG, "stream: found true, expected false, as %s has one response",
                       s->search.beams != 0 ? "a beam search" : "a model that is not decoupled");
    FT_TRY(ft_serving_call_set_rows(call, 1, err));
    ft_status status = read_prompt(&ids, &first, call, err);
    if (status == FT_OK)
        status = submit(call, &ids, first, err);
    free(ids.data);
    return status;
}
