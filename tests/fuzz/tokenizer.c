/*
 * tokenizer.c - fuzz the reader of tokenizer.json, and the encoder.
 *
 * The first byte chooses: from 0x80 on, the rest is a tokenizer.json, which then encodes a text;
 * below, the rest is a text, and the low bits are the normalizer's steps.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/mem.h"
#include "runtime/tokenizer.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool kept)
{
    if (!kept)
        abort();
}

/* However much room there is, the count and the ids are the same. */
static void encode(const ft_tokenizer *tokenizer, const char *text, size_t bytes)
{
    ft_error err;
    size_t count, again;
    ft_status rc = ft_tokenizer_encode(tokenizer, text, bytes, NULL, 0, &count, &err);
    require(rc == FT_OK || (rc == FT_EFORMAT && count == 0));
    if (rc != FT_OK)
        return;
    int32_t *ids = ft_array(count, sizeof *ids);
    require(ids != NULL);
    require(ft_tokenizer_encode(tokenizer, text, bytes, ids, count, &again, &err) == FT_OK);
    require(again == count);
    for (size_t i = 0; i < count; i++)
        require(ids[i] >= 0);
    free(ids);
}

static void parse_and_encode(const char *json, size_t bytes)
{
    static const char text[] = "[MASK] un\u00e9able \u5b57\t\u302e\u302f <x> ing.";
    ft_tokenizer *tokenizer;
    ft_error err;
    ft_status rc = ft_tokenizer_parse(&tokenizer, "fuzz", json, bytes, &err);
    require((rc == FT_OK) == (tokenizer != NULL));
    if (rc == FT_OK)
        encode(tokenizer, text, sizeof text - 1);
    ft_tokenizer_close(tokenizer);
}

static void add_tokens(ft_tokenizer *t)
{
    static const struct {
        const char *content;
        ft_added_token token;
    } raw[] =
        {
            {"[M]", {.id = 20}                                },
            {" ",   {.id = 21, .rstrip = true}                },
            {"<x>", {.id = 22, .lstrip = true, .rstrip = true}},
    },
      normalized[] = {
          {"un", {.id = 23, .single_word = true}},
          {"\u00e9", {.id = 24, .lstrip = true}},
      };
    for (size_t i = 0; i < FT_COUNT(raw); i++)
        require(ft_added_tokens_add(&t->raw, raw[i].content, strlen(raw[i].content),
                                    raw[i].token) == FT_OK);
    for (size_t i = 0; i < FT_COUNT(normalized); i++)
        require(ft_added_tokens_add(&t->normalized, normalized[i].content,
                                    strlen(normalized[i].content), normalized[i].token) == FT_OK);
}

static ft_tokenizer *fixed_tokenizer(unsigned steps)
{
    static const char *const vocabulary[] = { "[UNK]", "a",        "##a",    "ab",
                                              "##ba",  "e",        "##e",    "\u5b57",
                                              "!",     "##\u0301", "\u302e", "##\u302f" };
    ft_tokenizer *t = calloc(1, sizeof *t);
    require(t != NULL);
    for (size_t i = 0; i < FT_COUNT(vocabulary); i++)
        require(ft_trie_add(&t->model.trie, vocabulary[i], strlen(vocabulary[i]), (int32_t) i) ==
                FT_OK);
    t->model.has_rest = ft_trie_follow(&t->model.trie, "##", 2, &t->model.rest);
    t->model.max_word_chars = 20;
    t->normalizer = (ft_bert_normalizer){ .clean_text = steps & 1,
                                          .handle_chinese_chars = steps & 2,
                                          .strip_accents = steps & 4,
                                          .lowercase = steps & 8 };
    add_tokens(t);
    return t;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    const char *rest = (const char *) data + 1;
    if (data[0] >= 0x80) {
        parse_and_encode(rest, size - 1);
    } else {
        ft_tokenizer *tokenizer = fixed_tokenizer(data[0]);
        encode(tokenizer, rest, size - 1);
        ft_tokenizer_close(tokenizer);
    }
    return 0;
}
