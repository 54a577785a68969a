/*
 * arguments-t.c - public calls with invalid arguments: NULL and enum values out of range.
 *
 * The model is a tiny classifier: 20 tokens, 10 positions, 2 types, 3 labels, hidden 8.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/ft.h"
#include "tests/lib/models/calibrated.h"
#include "tests/lib/models/tiny_tokenizer.h"
#include "tests/tap/tap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static ft_error err;

/* Checks that a call returned FT_EARG with this message. */
static void refused(ft_status found, const char *text)
{
    ok(found == FT_EARG && err.code == FT_EARG && strcmp(err.text, text) == 0,
       "an invalid argument is refused with the message: %s", text);
    if (found != FT_EARG || strcmp(err.text, text) != 0)
        diag("found %s \"%s\"", ft_status_name(found), found == FT_OK ? "" : err.text);
    memset(&err, 0, sizeof err);
}

/* An enum with a value out of range. */
#define NO_SUCH(type) ((type) 77)

static void test_names(void)
{
    is_str(ft_status_name(NO_SUCH(ft_status)), "unknown",
           "ft_status_name() returns a name for an invalid status");
    is_str(ft_status_name((ft_status) -1), "unknown",
           "ft_status_name() returns a name for a negative status");
    ok(ft_dtype_name(NO_SUCH(ft_dtype)) == NULL,
       "ft_dtype_name() returns NULL for an invalid dtype");
    is_int((long) ft_dtype_size(NO_SUCH(ft_dtype)), 0,
           "ft_dtype_size() returns 0 for an invalid dtype");
    is_str(ft_finish_reason_name(NO_SUCH(ft_finish_reason)), "unknown",
           "ft_finish_reason_name() returns a name for an invalid reason");
    ok(ft_version()[0] != '\0', "ft_version() returns a version");
}

static void test_tensors(void)
{
    const ft_tensor dims = { FT_F32, FT_ROW, FT_MAX_DIMS + 1, { 1 }, NULL };
    const ft_tensor negative = { FT_F32, FT_ROW, -1, { 1 }, NULL };
    is_int((long) ft_tensor_numel(NULL), 0, "ft_tensor_numel() returns 0 for NULL");
    is_int((long) ft_tensor_bytes(NULL), 0, "ft_tensor_bytes() returns 0 for NULL");
    is_int((long) ft_tensor_numel(&dims), 0,
           "ft_tensor_numel() returns 0 for a tensor with 9 dimensions");
    is_int((long) ft_tensor_bytes(&negative), 0,
           "ft_tensor_bytes() returns 0 for a tensor with -1 dimensions");
    is_int((long) ft_devices(NULL, 5), (long) ft_devices(NULL, 0),
           "ft_devices() counts the devices without an output array");
}

static void test_models(const char *path, const ft_model *model)
{
    ft_model *out;
    refused(ft_model_open(NULL, path, NULL, &err), "ft_model_open: out is NULL");
    refused(ft_model_open(&out, NULL, NULL, &err), "ft_model_open: path is NULL");
    ok(out == NULL, "ft_model_open() sets the model to NULL when it refuses an argument");
    refused(ft_model_open(&out, path, &(ft_model_options){ .kv = NO_SUCH(ft_kv_dtype) }, &err),
            "options: kv is 77, expected 0 to 2");
    refused(ft_model_open(&out, path, &(ft_model_options){ .kv = (ft_kv_dtype) -1 }, &err),
            "options: kv is -1, expected 0 to 2");
    refused(ft_model_open(&out, path, &(ft_model_options){ .verify = NO_SUCH(ft_verify) }, &err),
            "options: verify is 77, expected 0 to 2");
    ok(ft_model_get_info(NULL).family == NULL,
       "ft_model_get_info() returns no family for a NULL model");
    ok(ft_model_label(NULL, 0) == NULL, "ft_model_label() returns NULL for a NULL model");
    ok(ft_model_label(model, INT32_MIN) == NULL,
       "ft_model_label() returns NULL for a negative index");
    refused(ft_model_write_plan(NULL, stdout, &err), "ft_model_write_plan: model is NULL");
    refused(ft_model_write_plan(model, NULL, &err), "ft_model_write_plan: file is NULL");
    ft_model_close(NULL);
}

static void test_inputs(ft_session *session)
{
    int32_t ids[2] = { 5, 6 };
    const ft_tensor fine = { FT_I32, FT_ROW, 2, { 1, 2 }, ids };
    ft_tensor t = fine;
    refused(ft_session_set(NULL, "input_ids", &fine, &err), "ft_session_set: session is NULL");
    refused(ft_session_set(session, NULL, &fine, &err), "ft_session_set: name is NULL");
    refused(ft_session_set(session, "input_ids", NULL, &err), "ft_session_set: tensor is NULL");
    t.data = NULL;
    refused(ft_session_set(session, "input_ids", &t, &err), "input_ids: has no data");
    t = fine;
    t.dtype = NO_SUCH(ft_dtype);
    refused(ft_session_set(session, "input_ids", &t, &err),
            "input_ids: dtype is 77, which is not an ft_dtype");
    t = fine;
    t.layout = NO_SUCH(ft_layout);
    refused(ft_session_set(session, "input_ids", &t, &err),
            "input_ids: layout is 77, expected 0 (FT_ROW)");
    t = fine;
    t.ndim = FT_MAX_DIMS + 1;
    refused(ft_session_set(session, "input_ids", &t, &err),
            "input_ids: ndim is 9, expected 0 to 8");
    t.ndim = -1;
    refused(ft_session_set(session, "input_ids", &t, &err),
            "input_ids: ndim is -1, expected 0 to 8");
}

static void test_sessions(const ft_model *model, ft_session *session)
{
    ft_session *out;
    ft_tensor result = { .data = NULL };
    refused(ft_session_open(NULL, model, NULL, &err), "ft_session_open: out is NULL");
    refused(ft_session_open(&out, NULL, NULL, &err), "ft_session_open: model is NULL");
    ok(out == NULL, "ft_session_open() sets the session to NULL when it refuses an argument");
    test_inputs(session);
    refused(ft_session_run(NULL, &err), "ft_session_run: session is NULL");
    refused(ft_session_get(NULL, "logits", &result, &err), "ft_session_get: session is NULL");
    refused(ft_session_get(session, NULL, &result, &err), "ft_session_get: name is NULL");
    refused(ft_session_get(session, "logits", NULL, &err), "ft_session_get: out is NULL");
    ft_session_close(NULL);
}

static bool take_token(void *user, const ft_token *token)
{
    (void) user, (void) token;
    return true;
}

static bool take_found(void *user, const ft_hypothesis *found)
{
    (void) user, (void) found;
    return true;
}

static void test_texts(ft_session *session)
{
    const ft_request request = { .prompt = NULL };
    refused(ft_generate(NULL, &request, 1, NULL, take_token, NULL, &err),
            "ft_generate: session is NULL");
    refused(ft_generate(session, NULL, 2, NULL, take_token, NULL, &err),
            "ft_generate: requests is NULL, but count is 2");
    refused(ft_generate(session, &request, 1, NULL, NULL, NULL, &err),
            "ft_generate: on_token is NULL");
    refused(ft_beam_search(NULL, &request, 1, NULL, take_found, NULL, &err),
            "ft_beam_search: session is NULL");
    refused(ft_beam_search(session, NULL, 2, NULL, take_found, NULL, &err),
            "ft_beam_search: requests is NULL, but count is 2");
    refused(ft_beam_search(session, &request, 1, NULL, NULL, NULL, &err),
            "ft_beam_search: on_hypothesis is NULL");
}

static void test_engines(const ft_model *model)
{
    ft_engine *engine;
    refused(ft_engine_open(NULL, model, NULL, &err), "ft_engine_open: out is NULL");
    refused(ft_engine_open(&engine, NULL, NULL, &err), "ft_engine_open: model is NULL");
    refused(ft_engine_submit(NULL, NULL, NULL, &err), "ft_engine_submit: engine is NULL");
    refused(ft_engine_drain(NULL, &err), "ft_engine_drain: engine is NULL");
    refused(ft_engine_get_stats(NULL, NULL, &err), "ft_engine_get_stats: engine is NULL");
    ft_engine_cancel(NULL, 1);
}

typedef ft_status (*encoder)(const ft_tokenizer *, const char *, size_t, int32_t *, size_t,
                             size_t *, ft_error *);

static void test_encoding(const ft_tokenizer *tokenizer, encoder encode, const char *name,
                          long empty)
{
    char text[96];
    int32_t ids[4];
    size_t count = 9;
    is_int(encode(tokenizer, NULL, 0, ids, 4, &count, &err), FT_OK, "%s: an empty text may be NULL",
           name);
    is_int((long) count, empty, "%s: an empty text encodes to its special tokens alone", name);
    is_int(encode(tokenizer, "a", 1, NULL, 0, &count, &err), FT_OK,
           "%s: the output array may be NULL when its capacity is 0", name);
    snprintf(text, sizeof text, "%s: text is NULL, but bytes is 3", name);
    refused(encode(tokenizer, NULL, 3, ids, 4, &count, &err), text);
    snprintf(text, sizeof text, "%s: ids is NULL, but capacity is 4", name);
    refused(encode(tokenizer, "a", 1, NULL, 4, &count, &err), text);
    snprintf(text, sizeof text, "%s: count is NULL", name);
    refused(encode(tokenizer, "a", 1, ids, 4, NULL, &err), text);
    snprintf(text, sizeof text, "%s: tokenizer is NULL", name);
    refused(encode(NULL, "a", 1, ids, 4, &count, &err), text);
}

static void test_decoding(const ft_tokenizer *tokenizer)
{
    const int32_t ids[] = { 5, INT32_MIN, INT32_MAX };
    char text[8];
    size_t bytes = 9;
    is_int(ft_tokenizer_decode(tokenizer, NULL, 0, false, NULL, 0, &bytes, &err), FT_OK,
           "ft_tokenizer_decode() accepts NULL ids when their count is 0");
    is_int((long) bytes, 0, "ft_tokenizer_decode() decodes no ids to an empty text");
    is_int(ft_tokenizer_decode(tokenizer, ids, 3, false, text, 8, &bytes, &err), FT_OK,
           "ft_tokenizer_decode() accepts ids outside the vocabulary");
    refused(ft_tokenizer_decode(tokenizer, NULL, 1, false, text, 8, &bytes, &err),
            "ft_tokenizer_decode: ids is NULL, but count is 1");
    refused(ft_tokenizer_decode(tokenizer, ids, 1, false, NULL, 8, &bytes, &err),
            "ft_tokenizer_decode: text is NULL, but capacity is 8");
    refused(ft_tokenizer_decode(tokenizer, ids, 1, false, text, 8, NULL, &err),
            "ft_tokenizer_decode: bytes is NULL");
    refused(ft_tokenizer_decode(NULL, ids, 1, false, text, 8, &bytes, &err),
            "ft_tokenizer_decode: tokenizer is NULL");
}

static void test_decoders(const ft_tokenizer *tokenizer)
{
    ft_detokenizer *decoder;
    const char *text;
    size_t bytes;
    refused(ft_detokenizer_open(NULL, tokenizer, false, &err), "ft_detokenizer_open: out is NULL");
    refused(ft_detokenizer_open(&decoder, NULL, false, &err),
            "ft_detokenizer_open: tokenizer is NULL");
    ok(decoder == NULL,
       "ft_detokenizer_open() sets the detokenizer to NULL when it refuses an argument");
    if (ft_detokenizer_open(&decoder, tokenizer, false, &err) != FT_OK)
        bail_out("%s", err.text);
    refused(ft_detokenizer_push(NULL, 5, &text, &bytes, &err),
            "ft_detokenizer_push: decoder is NULL");
    refused(ft_detokenizer_push(decoder, 5, NULL, &bytes, &err),
            "ft_detokenizer_push: text is NULL");
    refused(ft_detokenizer_push(decoder, 5, &text, NULL, &err),
            "ft_detokenizer_push: bytes is NULL");
    refused(ft_detokenizer_finish(NULL, &text, &bytes, &err),
            "ft_detokenizer_finish: decoder is NULL");
    refused(ft_detokenizer_finish(decoder, NULL, &bytes, &err),
            "ft_detokenizer_finish: text is NULL");
    refused(ft_detokenizer_finish(decoder, &text, NULL, &err),
            "ft_detokenizer_finish: bytes is NULL");
    ft_detokenizer_close(decoder);
    ft_detokenizer_close(NULL);
}

static void test_tokenizers(const ft_model *model)
{
    ft_tokenizer *out, *tokenizer = tiny_open("1.0", "1.0");
    refused(ft_tokenizer_open(NULL, "tokenizer.json", &err), "ft_tokenizer_open: out is NULL");
    refused(ft_tokenizer_open(&out, NULL, &err), "ft_tokenizer_open: path is NULL");
    refused(ft_tokenizer_open_model(NULL, model, &err), "ft_tokenizer_open_model: out is NULL");
    refused(ft_tokenizer_open_model(&out, NULL, &err), "ft_tokenizer_open_model: model is NULL");
    ok(out == NULL,
       "ft_tokenizer_open_model() sets the tokenizer to NULL when it refuses an argument");
    test_encoding(tokenizer, ft_tokenizer_encode, "ft_tokenizer_encode", 2);
    test_encoding(tokenizer, ft_tokenizer_encode_no_special, "ft_tokenizer_encode_no_special", 0);
    test_decoding(tokenizer);
    test_decoders(tokenizer);
    is_int((long) ft_tokenizer_vocab_size(NULL), 0,
           "ft_tokenizer_vocab_size() returns 0 for a NULL tokenizer");
    is_int(ft_tokenizer_token_to_id(NULL, "a"), -1,
           "ft_tokenizer_token_to_id() returns -1 for a NULL tokenizer");
    is_int(ft_tokenizer_token_to_id(tokenizer, NULL), -1,
           "ft_tokenizer_token_to_id() returns -1 for a NULL token");
    ok(!ft_tokenizer_is_special(NULL, 0),
       "ft_tokenizer_is_special() returns false for a NULL tokenizer");
    ok(!ft_tokenizer_is_special(tokenizer, INT32_MIN),
       "ft_tokenizer_is_special() returns false for an id outside the vocabulary");
    is_int(ft_tokenizer_end_id(NULL), -1, "ft_tokenizer_end_id() returns -1 for a NULL tokenizer");
    ft_tokenizer_close(tokenizer);
    ft_tokenizer_close(NULL);
}

static void test_chats(const ft_model *model)
{
    const ft_chat_message user = { "user", "a" }, mute = { "user", NULL }, no_role = { NULL, "a" };
    const char *source = getenv("FT_SRCDIR");
    char text[8], path[1024];
    size_t bytes;
    ft_chat_template *chat;
    ft_encoding *encoded;
    refused(ft_chat_template_open_model(NULL, model, &err),
            "ft_chat_template_open_model: out is NULL");
    refused(ft_chat_template_open_model(&chat, NULL, &err),
            "ft_chat_template_open_model: model is NULL");
    ok(ft_chat_template_open_model(&chat, model, &err) == FT_EUNSUPPORTED && chat == NULL,
       "a model without a chat template is refused");
    refused(ft_chat_template_open(&chat, NULL, NULL, NULL, &err),
            "ft_chat_template_open: path is NULL");
    snprintf(path, sizeof path, "%s/tests/data/chat.jinja", source == NULL ? "." : source);
    if (ft_chat_template_open(&chat, path, NULL, NULL, &err) != FT_OK)
        bail_out("%s", err.text);
    refused(ft_chat_render(chat, NULL, 2, NULL, text, NULL, 8, &bytes, &err),
            "ft_chat_render: messages is NULL, but count is 2");
    refused(ft_chat_render(chat, NULL, 0, NULL, text, NULL, 8, &bytes, &err),
            "found no messages, expected at least one");
    refused(ft_chat_render(chat, &mute, 1, NULL, text, NULL, 8, &bytes, &err),
            "message 0: its content is NULL");
    refused(ft_chat_render(chat, &no_role, 1, NULL, text, NULL, 8, &bytes, &err),
            "message 0: its role is NULL");
    refused(ft_chat_render(chat, &user, 1, NULL, NULL, NULL, 8, &bytes, &err),
            "ft_chat_render: text is NULL, but capacity is 8");
    refused(ft_chat_render(chat, &user, 1, NULL, text, NULL, 8, NULL, &err),
            "ft_chat_render: bytes is NULL");
    refused(ft_chat_render(NULL, &user, 1, NULL, text, NULL, 8, &bytes, &err),
            "ft_chat_render: chat is NULL");
    refused(ft_chat_encode(chat, NULL, &user, 1, NULL, &encoded, &err),
            "ft_chat_encode: tokenizer is NULL");
    refused(ft_chat_encode(chat, NULL, &user, 1, NULL, NULL, &err), "ft_chat_encode: out is NULL");
    ok(ft_chat_template_name(NULL) == NULL,
       "ft_chat_template_name() returns NULL for a NULL template");
    ft_chat_template_close(chat);
    ft_chat_template_close(NULL);
}

int main(void)
{
    tiny t;
    calibrated files;
    tiny_make_classifier(&t);
    calibrated_make(&files, &t);
    ft_model *model = calibrated_open(files.real, NULL);
    ft_session *session = calibrated_session(model, &(ft_session_options){ .threads = 1 });
    test_names();
    test_tensors();
    test_models(files.real, model);
    test_sessions(model, session);
    test_texts(session);
    test_engines(model);
    test_tokenizers(model);
    test_chats(model);
    ft_session_close(session);
    ft_model_close(model);
    tiny_remove(&t);
    return done_testing();
}
