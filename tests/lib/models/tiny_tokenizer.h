/*
 * tiny_tokenizer.h - a WordPiece tokenizer.json of 15 tokens and a BPE one of 16, unchanged or
 * edited, for tests.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_TESTS_LIB_MODELS_TINY_TOKENIZER_H
#define FT_TESTS_LIB_MODELS_TINY_TOKENIZER_H

#include "runtime/mem.h"
#include "runtime/text/tokenizer.h"
#include "tests/tap/tap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Written with ' in place of ", because no test needs '. */
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

/* Byte-level BPE: U+0120 is a space.  "<s>" is special. */
static const char tiny_bpe_json[] =
    "{'version': '1.0', 'truncation': null, 'padding': null,"
    " 'added_tokens': [{'id': 15, 'content': '<s>', 'single_word': false,"
    " 'lstrip': false, 'rstrip': false, 'normalized': false, 'special': true}],"
    " 'normalizer': {'type': 'NFC'},"
    " 'pre_tokenizer': {'type': 'ByteLevel', 'add_prefix_space': false, 'trim_offsets': true,"
    " 'use_regex': true},"
    " 'post_processor': null,"
    " 'decoder': {'type': 'ByteLevel', 'add_prefix_space': true, 'trim_offsets': true,"
    " 'use_regex': true},"
    " 'model': {'type': 'BPE', 'dropout': null, 'unk_token': null,"
    " 'continuing_subword_prefix': null, 'end_of_word_suffix': null, 'fuse_unk': false,"
    " 'byte_fallback': false, 'ignore_merges': false,"
    " 'vocab': {'a': 0, 'b': 1, 'c': 2, '\\u0120': 3, '\\u00e2': 4, '\\u0124': 5, '\\u00ac': 6,"
    " 'ab': 7, 'abc': 8, '\\u0120a': 9, 'bc': 10, 'aa': 11, '?': 12, '\\u00c3': 13, 'aaaa': 14},"
    " 'merges': ['a b', ['ab', 'c'], '\\u0120 a', ['b', 'c'], ['a', 'a'], ['aa', 'aa']]}}";

/* `json` with the first `old` replaced by `new`, and with real quotes; the caller frees it. */
static inline char *edited(const char *json, const char *old, const char *new)
{
    const char *at = strstr(json, old);
    if (at == NULL)
        bail_out("nothing to edit: %s", old);
    size_t bytes = strlen(json) + 1 + strlen(new);
    char *out = malloc(bytes);
    if (out == NULL)
        bail_out("out of memory");
    snprintf(out, bytes, "%.*s%s%s", (int) (at - json), json, new, at + strlen(old));
    for (char *quote = out; (quote = strchr(quote, '\'')) != NULL;)
        *quote = '"';
    return out;
}

static inline ft_tokenizer *open_edited(const char *whole, const char *old, const char *new)
{
    ft_tokenizer *tokenizer;
    ft_error err;
    char *json = edited(whole, old, new);
    if (ft_tokenizer_parse(&tokenizer, "tiny", json, strlen(json), &err) != FT_OK)
        bail_out("%s", err.text);
    free(json);
    return tokenizer;
}

static inline ft_tokenizer *tiny_open(const char *old, const char *new)
{
    return open_edited(tiny_json, old, new);
}

static inline ft_tokenizer *tiny_bpe_open(const char *old, const char *new)
{
    return open_edited(tiny_bpe_json, old, new);
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

/* The ids of `text` separated by spaces, or the error. */
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

/* One check: the ids of the text.  Closes the tokenizer. */
static inline void is_ids(ft_tokenizer *tokenizer, const char *text, const char *expected,
                          const char *sentence)
{
    is_str(tiny_ids(tokenizer, text), expected, "%s", sentence);
    ft_tokenizer_close(tokenizer);
}

/* An edit that makes the file invalid, and a part of the expected message. */
typedef struct bad_edit {
    const char *old, *new, *says;
} bad_edit;

/* One check for each edit of `whole`. */
static inline void are_refused(const char *whole, const bad_edit *edits, size_t count,
                               ft_status status)
{
    for (size_t i = 0; i < count; i++) {
        ft_error err = { 0 };
        ft_tokenizer *t;
        char *json = edited(whole, edits[i].old, edits[i].new);
        ft_status rc = ft_tokenizer_parse(&t, "t.json", json, strlen(json), &err);
        if (!ok(rc == status && t == NULL && strstr(err.text, edits[i].says) != NULL,
                "a tokenizer.json is refused with the error: %s", edits[i].says))
            diag("found %s \"%s\"", ft_status_name(rc), err.text);
        free(json);
    }
}

#endif
