/*
 * tokenizer.c - the pipeline: added tokens, normalizer, added tokens again, pre-tokenizer, model.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/text/tokenizer.h"

#include "runtime/error.h"
#include "runtime/mem.h"
#include "runtime/text/tokenizer_json.h"
#include "runtime/base/utf8.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

ft_status ft_tokenizer_parse(ft_tokenizer **out, const char *name, const char *json, size_t bytes,
                             ft_error *err)
{
    *out = NULL;
    if (bytes > FT_TOKENIZER_MAX_FILE)
        return ft_fail(err, FT_ELIMIT, "%s: %zu bytes, expected at most %d", name, bytes,
                       FT_TOKENIZER_MAX_FILE);
    ft_tokenizer *tokenizer = calloc(1, sizeof *tokenizer);
    if (tokenizer == NULL)
        return ft_fail(err, FT_ENOMEM, "%s: no memory", name);
    tokenizer->name = ft_strdup(name);
    ft_status rc = tokenizer->name == NULL
                       ? ft_fail(err, FT_ENOMEM, "%s: no memory", name)
                       : ft_tokenizer_read_json(tokenizer, name, json, bytes, err);
    if (rc != FT_OK) {
        ft_tokenizer_close(tokenizer);
        return rc;
    }
    *out = tokenizer;
    return FT_OK;
}

/* Read a file, at most one byte more than the limit; the caller frees *data. */
static ft_status read_file(const char *path, char **data, size_t *bytes, ft_error *err)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        return ft_fail_errno(err, "%s", path);
    ft_status rc = FT_OK;
    size_t capacity = 0, got = 0;
    *data = NULL;
    do {
        capacity = capacity == 0 ? 1 << 16 : capacity * 2;
        if (capacity > FT_TOKENIZER_MAX_FILE)
            capacity = FT_TOKENIZER_MAX_FILE + 1;
        char *grown = realloc(*data, capacity);
        if (grown == NULL) {
            rc = ft_fail(err, FT_ENOMEM, "%s: no memory", path);
            break;
        }
        *data = grown;
        got += fread(*data + got, 1, capacity - got, file);
        if (ferror(file))
            rc = ft_fail_errno(err, "%s", path);
    } while (rc == FT_OK && got == capacity && capacity <= FT_TOKENIZER_MAX_FILE);
    fclose(file);
    *bytes = got;
    return rc;
}

ft_status ft_tokenizer_open(ft_tokenizer **out, const char *path, ft_error *err)
{
    char *json = NULL;
    size_t bytes = 0;
    FT_REQUIRE(out, err);
    *out = NULL;
    FT_REQUIRE(path, err);
    ft_status rc = read_file(path, &json, &bytes, err);
    if (rc == FT_OK)
        rc = ft_tokenizer_parse(out, path, json, bytes, err);
    free(json);
    return rc;
}

void ft_tokenizer_close(ft_tokenizer *tokenizer)
{
    if (tokenizer == NULL)
        return;
    ft_added_tokens_fini(&tokenizer->raw);
    ft_added_tokens_fini(&tokenizer->normalized);
    ft_normalizer_fini(&tokenizer->normalizer);
    ft_pretokenizer_fini(&tokenizer->pretokenizer);
    ft_token_model_fini(&tokenizer->model);
    ft_decoder_config_fini(&tokenizer->decoder_config);
    free(tokenizer->name);
    free(tokenizer->prefix_ids.id);
    free(tokenizer->suffix_ids.id);
    free(tokenizer);
}

int32_t ft_tokenizer_end_id(const ft_tokenizer *tokenizer)
{
    if (tokenizer == NULL)
        return -1;
    const ft_special_ids *after = &tokenizer->suffix_ids;
    return after->count == 0 ? -1 : after->id[after->count - 1];
}

size_t ft_tokenizer_vocab_size(const ft_tokenizer *tokenizer)
{
    return tokenizer != NULL ? tokenizer->model.vocabulary.count : 0;
}

int32_t ft_tokenizer_token_to_id(const ft_tokenizer *tokenizer, const char *token)
{
    if (tokenizer == NULL || token == NULL)
        return -1;
    const ft_vocabulary_token *found =
        ft_vocabulary_find(&tokenizer->model.vocabulary, token, strlen(token));
    return found == NULL ? -1 : found->id;
}

bool ft_tokenizer_is_special(const ft_tokenizer *tokenizer, int32_t id)
{
    const ft_vocabulary_token *token =
        tokenizer != NULL ? ft_vocabulary_at(&tokenizer->model.vocabulary, id) : NULL;
    return token != NULL && token->special;
}

/* ---- Encoding ----------------------------------------------------------------------------- */

/* The state of encoding one text. */
typedef struct {
    const ft_tokenizer *tokenizer;
    ft_normalizer_buffers normalizer_buffers;
    ft_word_splitter splitter;
    ft_token_model_workspace workspace;
    ft_token_list *tokens;
} encoder_state;

static ft_status on_word(void *user, const char *word, size_t bytes)
{
    encoder_state *e = user;
    return ft_token_model_encode(&e->tokenizer->model, word, bytes, &e->workspace, e->tokens);
}

static ft_status encode_words(encoder_state *e, const char *text, size_t bytes, bool first)
{
    return bytes == 0 ? FT_OK : ft_word_splitter_run(&e->splitter, text, bytes, first);
}

/* Encode the text between added tokens that are matched in the original text. */
static ft_status encode_plain(encoder_state *e, const char *text, size_t bytes, bool first)
{
    if (bytes == 0)
        return FT_OK;
    FT_TRY(ft_normalizer_run(&e->tokenizer->normalizer, &text, &bytes, &e->normalizer_buffers));
    if (bytes == 0)
        return FT_OK;
    ft_added_token_matcher search = { .set = &e->tokenizer->normalized,
                                      .text = text,
                                      .bytes = bytes };
    const char *plain;
    size_t plain_bytes;
    int32_t id;
    while (ft_added_token_matcher_next(&search, &plain, &plain_bytes, &id)) {
        FT_TRY(encode_words(e, plain, plain_bytes, first && plain == text));
        ft_token_list_append(e->tokens, id, 0, 0);
    }
    return encode_words(e, plain, plain_bytes, first && plain == text);
}

static ft_status encode_text(encoder_state *e, const char *text, size_t bytes)
{
    ft_added_token_matcher search = { .set = &e->tokenizer->raw, .text = text, .bytes = bytes };
    const char *plain;
    size_t plain_bytes;
    int32_t id;
    FT_TRY(ft_word_splitter_init(&e->splitter, bytes));
    while (ft_added_token_matcher_next(&search, &plain, &plain_bytes, &id)) {
        FT_TRY(encode_plain(e, plain, plain_bytes, plain == text));
        ft_token_list_append(e->tokens, id, 0, 0);
    }
    return encode_plain(e, plain, plain_bytes, plain == text);
}

static ft_status check_text(const char *text, size_t bytes, ft_error *err)
{
    if (bytes > FT_TOKENIZER_MAX_TEXT)
        return ft_fail(err, FT_ELIMIT, "text: %zu bytes, expected at most %d", bytes,
                       FT_TOKENIZER_MAX_TEXT);
    size_t valid = ft_utf8_valid_prefix(text, bytes);
    if (valid < bytes)
        return ft_fail(err, FT_EFORMAT, "text: byte %zu is 0x%02x, expected valid UTF-8", valid,
                       (unsigned) (unsigned char) text[valid]);
    return FT_OK;
}

/* Report which part of the tokenizer exceeded its limit. */
static ft_status fail_limit(const encoder_state *e, size_t bytes, ft_error *err)
{
    const char *name = e->tokenizer->name;
    bool normalizer = e->normalizer_buffers.to.overflowed;
    if (!normalizer && !e->splitter.overflowed)
        return ft_fail(err, FT_ELIMIT,
                       "%s: pre_tokenizer: its patterns take too long in a text of %zu bytes", name,
                       bytes);
    return ft_fail(err, FT_ELIMIT, "%s: %s: adds more than %zu bytes to a text of %zu", name,
                   normalizer ? "normalizer" : "pre_tokenizer", ft_strbuf_growth_limit(bytes),
                   bytes);
}

/* Append the tokens of a text. */
static ft_status encode(const ft_tokenizer *t, const char *text, size_t bytes,
                        ft_token_list *tokens, ft_error *err)
{
    if (bytes == 0)
        text = "";
    FT_TRY(check_text(text, bytes, err));
    encoder_state e = { .tokenizer = t,
                        .normalizer_buffers = { .growth_left = ft_strbuf_growth_limit(bytes) },
                        .tokens = tokens };
    e.splitter =
        (ft_word_splitter){ .pretokenizer = &t->pretokenizer, .on_word = on_word, .user = &e };
    ft_status rc = encode_text(&e, text, bytes);
    if (rc == FT_ELIMIT)
        fail_limit(&e, bytes, err);
    ft_normalizer_buffers_fini(&e.normalizer_buffers);
    ft_word_splitter_fini(&e.splitter);
    ft_token_model_workspace_fini(&e.workspace);
    if (rc == FT_ENOMEM || tokens->out_of_memory)
        return ft_fail(err, FT_ENOMEM, "text: no memory for %zu bytes", bytes);
    return rc;
}

static void append_special_ids(const ft_special_ids *special, ft_token_list *tokens)
{
    for (size_t i = 0; i < special->count; i++)
        ft_token_list_append(tokens, special->id[i], 0, 0);
}

/* Copy the ids to the caller's array, as far as they fit. */
static void copy_ids(const ft_token_list *tokens, int32_t *ids, size_t capacity, size_t *count)
{
    size_t fits = ft_min_size(tokens->count, capacity);
    if (fits > 0)
        memcpy(ids, tokens->id, fits * sizeof *ids);
    *count = tokens->count;
}

ft_status ft_tokenizer_encode(const ft_tokenizer *tokenizer, const char *text, size_t bytes,
                              int32_t *ids, size_t capacity, size_t *count, ft_error *err)
{
    ft_token_list tokens = { 0 };
    FT_REQUIRE(count, err);
    *count = 0;
    FT_REQUIRE(tokenizer, err);
    FT_REQUIRE_ARRAY(text, bytes, err);
    FT_REQUIRE_ARRAY(ids, capacity, err);
    append_special_ids(&tokenizer->prefix_ids, &tokens);
    ft_status rc = encode(tokenizer, text, bytes, &tokens, err);
    append_special_ids(&tokenizer->suffix_ids, &tokens);
    if (rc == FT_OK && tokens.out_of_memory)
        rc = ft_fail(err, FT_ENOMEM, "text: no memory for %zu tokens", tokens.count);
    if (rc == FT_OK)
        copy_ids(&tokens, ids, capacity, count);
    ft_token_list_fini(&tokens);
    return rc;
}

ft_status ft_tokenizer_encode_no_special(const ft_tokenizer *tokenizer, const char *text,
                                         size_t bytes, int32_t *ids, size_t capacity, size_t *count,
                                         ft_error *err)
{
    ft_token_list tokens = { 0 };
    FT_REQUIRE(count, err);
    *count = 0;
    FT_REQUIRE(tokenizer, err);
    FT_REQUIRE_ARRAY(text, bytes, err);
    FT_REQUIRE_ARRAY(ids, capacity, err);
    ft_status rc = encode(tokenizer, text, bytes, &tokens, err);
    if (rc == FT_OK)
        copy_ids(&tokens, ids, capacity, count);
    ft_token_list_fini(&tokens);
    return rc;
}
