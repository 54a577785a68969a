/*
 * tokenizer.c - the pipeline: added tokens, normalizer, added tokens again, words, pieces.
 *
 * encode_plain() is all that knows which kind of model this is; a byte-level BPE is one more way
 * to encode the text between added tokens.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/tokenizer.h"

#include "runtime/error.h"
#include "runtime/tokenizer_json.h"
#include "runtime/utf8.h"

#include <stdio.h>
#include <stdlib.h>

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
    ft_status rc = ft_tokenizer_read_json(tokenizer, name, json, bytes, err);
    if (rc != FT_OK) {
        ft_tokenizer_close(tokenizer);
        return rc;
    }
    *out = tokenizer;
    return FT_OK;
}

/* All of a file, at most one byte more than may be; *data is the caller's to free. */
static ft_status read_file(const char *path, char **data, size_t *bytes, ft_error *err)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        return ft_fail_errno(err, "%s", path);
    ft_status rc = FT_OK;
    size_t room = 0, got = 0;
    *data = NULL;
    do {
        room = room == 0 ? 1 << 16 : room * 2;
        if (room > FT_TOKENIZER_MAX_FILE)
            room = FT_TOKENIZER_MAX_FILE + 1;
        char *bigger = realloc(*data, room);
        if (bigger == NULL) {
            rc = ft_fail(err, FT_ENOMEM, "%s: no memory", path);
            break;
        }
        *data = bigger;
        got += fread(*data + got, 1, room - got, file);
        if (ferror(file))
            rc = ft_fail_errno(err, "%s", path);
    } while (rc == FT_OK && got == room && room <= FT_TOKENIZER_MAX_FILE);
    fclose(file);
    *bytes = got;
    return rc;
}

ft_status ft_tokenizer_open(ft_tokenizer **out, const char *path, ft_error *err)
{
    char *json = NULL;
    size_t bytes = 0;
    *out = NULL;
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
    ft_wordpiece_fini(&tokenizer->model);
    free(tokenizer->before.id);
    free(tokenizer->after.id);
    free(tokenizer);
}

int32_t ft_tokenizer_end_id(const ft_tokenizer *tokenizer)
{
    const ft_special_ids *after = &tokenizer->after;
    return after->count == 0 ? -1 : after->id[after->count - 1];
}

/* ------------------------------------------------------------------------------------------ */

static void encode_words(const ft_wordpiece *model, const char *text, size_t bytes,
                         ft_token_ids *ids)
{
    const char *word, *end = text + bytes;
    size_t length;
    while ((length = ft_bert_next_word(&text, end, &word)) > 0)
        ft_wordpiece_encode(model, word, length, ids);
}

/* Text between added tokens; `scratch` holds its normal form. */
static ft_status encode_plain(const ft_tokenizer *t, const char *text, size_t bytes,
                              ft_text *scratch, ft_token_ids *ids)
{
    FT_TRY(ft_bert_normalize(&t->normalizer, text, bytes, scratch));
    ft_added_search search = { .set = &t->normalized,
                               .text = scratch->data,
                               .bytes = scratch->bytes };
    const char *plain;
    size_t plain_bytes;
    int32_t id;
    while (ft_added_search_next(&search, &plain, &plain_bytes, &id)) {
        encode_words(&t->model, plain, plain_bytes, ids);
        ft_token_ids_put(ids, id);
    }
    encode_words(&t->model, plain, plain_bytes, ids);
    return FT_OK;
}

static ft_status encode_text(const ft_tokenizer *t, const char *text, size_t bytes,
                             ft_text *scratch, ft_token_ids *ids)
{
    ft_added_search search = { .set = &t->raw, .text = text, .bytes = bytes };
    const char *plain;
    size_t plain_bytes;
    int32_t id;
    while (ft_added_search_next(&search, &plain, &plain_bytes, &id)) {
        FT_TRY(encode_plain(t, plain, plain_bytes, scratch, ids));
        ft_token_ids_put(ids, id);
    }
    return encode_plain(t, plain, plain_bytes, scratch, ids);
}

static void put_special(const ft_special_ids *special, ft_token_ids *ids)
{
    for (size_t i = 0; i < special->count; i++)
        ft_token_ids_put(ids, special->id[i]);
}

ft_status ft_tokenizer_encode(const ft_tokenizer *tokenizer, const char *text, size_t bytes,
                              int32_t *ids, size_t capacity, size_t *count, ft_error *err)
{
    *count = 0;
    if (bytes > FT_TOKENIZER_MAX_TEXT)
        return ft_fail(err, FT_ELIMIT, "text: %zu bytes, expected at most %d", bytes,
                       FT_TOKENIZER_MAX_TEXT);
    size_t valid = ft_utf8_valid(text, bytes);
    if (valid < bytes)
        return ft_fail(err, FT_EFORMAT, "text: byte %zu is 0x%02x, expected valid UTF-8", valid,
                       (unsigned) (unsigned char) text[valid]);

    ft_text scratch = { 0 };
    ft_token_ids sink = { .id = ids, .capacity = capacity };
    put_special(&tokenizer->before, &sink);
    ft_status rc = encode_text(tokenizer, text, bytes, &scratch, &sink);
    put_special(&tokenizer->after, &sink);
    ft_text_fini(&scratch);
    if (rc != FT_OK)
        return ft_fail(err, rc, "text: no memory for %zu bytes", bytes);
    *count = sink.count;
    return FT_OK;
}
