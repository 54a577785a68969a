/*
 * tokenizer.c - open and close tokenizers, and look up tokens.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/text/tokenizer.h"

#include "runtime/error.h"
#include "runtime/mem.h"
#include "runtime/text/tokenizer_json.h"
#include "runtime/base/read_file.h"
#include "runtime/base/utf8.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Bytes of a byte order mark at the start of a file. */
static size_t count_bom(const char *json, size_t bytes)
{
    return bytes >= 3 && memcmp(json, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
}

ft_status ft_tokenizer_parse(ft_tokenizer **out, const char *name, const char *json, size_t bytes,
                             ft_error *err)
{
    const size_t bom = count_bom(json, bytes);
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
                       : ft_tokenizer_read_json(tokenizer, name, json + bom, bytes - bom, err);
    if (rc != FT_OK) {
        ft_tokenizer_close(tokenizer);
        return rc;
    }
    *out = tokenizer;
    return FT_OK;
}

ft_status ft_tokenizer_open(ft_tokenizer **out, const char *path, ft_error *err)
{
    char *json = NULL;
    size_t bytes = 0;
    FT_REQUIRE(out, err);
    *out = NULL;
    FT_REQUIRE(path, err);
    ft_status rc = ft_file_read(&json, &bytes, path, FT_TOKENIZER_MAX_FILE, err);
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
    free(tokenizer);
}

int32_t ft_tokenizer_end_id(const ft_tokenizer *tokenizer)
{
    if (tokenizer == NULL)
        return -1;
    const ft_template *template = &tokenizer->post_processor.single;
    const ft_template_piece *last = &template->piece[template->count - 1];
    return last->kind == FT_TEMPLATE_SPECIAL ? last->id : -1;
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

const char *ft_tokenizer_id_to_token(const ft_tokenizer *tokenizer, int32_t id, size_t *bytes)
{
    const ft_vocabulary *vocabulary = tokenizer != NULL ? &tokenizer->model.vocabulary : NULL;
    const ft_vocabulary_token *token =
        vocabulary != NULL && bytes != NULL ? ft_vocabulary_at(vocabulary, id) : NULL;
    if (token == NULL)
        return NULL;
    *bytes = token->bytes;
    return ft_vocabulary_token_text(vocabulary, token);
}

bool ft_tokenizer_is_special(const ft_tokenizer *tokenizer, int32_t id)
{
    const ft_vocabulary_token *token =
        tokenizer != NULL ? ft_vocabulary_at(&tokenizer->model.vocabulary, id) : NULL;
    return token != NULL && token->special;
}
