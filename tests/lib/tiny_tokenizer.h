/*
 * tiny_tokenizer.h - a tokenizer.json of 15 tokens, whole or edited, for tests.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_TESTS_LIB_TINY_TOKENIZER_H
#define FT_TESTS_LIB_TINY_TOKENIZER_H

#include "runtime/mem.h"
#include "runtime/tokenizer.h"
#include "tests/tap/tap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Written with ' for ", which no test needs. */
static const char tiny_json[] =
    "{'version': '1.0', 'truncation': null, 'padding': null,"
    " 'added_tokens': [{'id': 4, 'content': '[MASK]', 'single_word': false,"
    " 'lstrip': false, 'rstrip': false, 'normalized': false, 'special': true}],"
    " 'normalizer': {'type': 'BertNormalizer', 'clean_text': true,"
    " 'handle_chinese_chars': true, 'strip_accents': null, 'lowercase': true},"
    " 'pre_tokenizer': {'type': 'BertPreTokenizer'},"
    " 'post_processor': {'type': 'BertProcessing', 'sep': ['[SEP]', 3],"
    " 'cls': ['[CLS]', 2]},"
    " 'model': {'type': 'WordPiece', 'unk_token': '[UNK]',"
    " 'continuing_subword_prefix': '##', 'max_input_chars_per_word': 100,"
    " 'vocab': {'[PAD]': 0, '[UNK]': 1, '[CLS]': 2, '[SEP]': 3, '[MASK]': 4,"
    " 'un': 5, '##able': 6, 'able': 7, '##a': 8, '##b': 9, 'e': 10, '[': 11,"
    " '\\u5b57': 12, 'mask': 13, 'a': 14}}}";

/* The text with the first `old` replaced by `new`, and with real quotes; the caller frees it. */
static inline char *tiny_edited(const char *old, const char *new)
{
    const char *at = strstr(tiny_json, old);
    if (at == NULL)
        bail_out("nothing to edit: %s", old);
    size_t bytes = sizeof tiny_json + strlen(new);
    char *out = malloc(bytes);
    if (out == NULL)
        bail_out("no memory");
    snprintf(out, bytes, "%.*s%s%s", (int) (at - tiny_json), tiny_json, new, at + strlen(old));
    for (char *quote = out; (quote = strchr(quote, '\'')) != NULL;)
        *quote = '"';
    return out;
}

static inline ft_tokenizer *tiny_open(const char *old, const char *new)
{
    ft_tokenizer *tokenizer;
    ft_error err;
    char *json = tiny_edited(old, new);
    if (ft_tokenizer_parse(&tokenizer, "tiny", json, strlen(json), &err) != FT_OK)
        bail_out("%s", err.text);
    free(json);
    return tokenizer;
}

/* With one more added token; `flags` names those that are true. */
static inline ft_tokenizer *tiny_open_added(int id, const char *content, const char *flags)
{
    static const char *const name[] = { "single_word", "lstrip", "rstrip", "normalized",
                                        "special" };
    char token[512];
    int used = snprintf(token, sizeof token, "[{'id': %d, 'content': '%s'", id, content);
    for (size_t i = 0; i < FT_COUNT(name); i++)
        used += snprintf(token + used, sizeof token - (size_t) used, ", '%s': %s", name[i],
                         strstr(flags, name[i]) != NULL ? "true" : "false");
    snprintf(token + used, sizeof token - (size_t) used, "}, {'id': 4");
    return tiny_open("[{'id': 4", token);
}

/* The ids of `text` with blanks between, or the error. */
static inline const char *tiny_ids(const ft_tokenizer *tokenizer, const char *text)
{
    static char out[1024];
    static ft_error err;
    int32_t id[64];
    size_t count, used = 0;
    if (ft_tokenizer_encode(tokenizer, text, strlen(text), id, FT_COUNT(id), &count, &err) != FT_OK)
        return err.text;
    out[0] = '\0';
    for (size_t i = 0; i < count && i < FT_COUNT(id); i++)
        used += (size_t) snprintf(out + used, sizeof out - used, "%s%d", i > 0 ? " " : "", id[i]);
    return out;
}

#endif
