/*
 * word_list.c - a word-level tokenizer: a vocabulary of whole words.
 *
 * It generates an equivalent tokenizer.json.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/text/word_list.h"

#include "runtime/error.h"
#include "runtime/base/json_build.h"
#include "runtime/base/json_reader.h"
#include "runtime/text/tokenizer.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

static const char file_name[] = "vocab.json";
static const char metaspace[] = "\xe2\x96\x81"; /* U+2581 */

static ft_status check_words(const ft_json_reader *words)
{
    const char *word;
    json_t *id;
    json_object_foreach(words->json, word, id)
    {
        if (!json_is_integer(id))
            return ft_json_fail(words, FT_EFORMAT, "\"%.64s\" has no integer", word);
        if (strstr(word, metaspace) != NULL)
            return ft_json_fail(words, FT_EUNSUPPORTED,
                                "has subword pieces (\"%.64s\"), which need a tokenizer.json: "
                                "use token ids instead",
                                word);
    }
    return FT_OK;
}

/* The word of an id, or NULL. */
static const char *word_of(json_t *words, int32_t id)
{
    const char *word;
    json_t *value;
    json_object_foreach(words, word, value)
    {
        if (json_integer_value(value) == id)
            return word;
    }
    return NULL;
}

static bool contains(int32_t id, const int32_t *ids, size_t count)
{
    while (count > 0 && ids[count - 1] != id)
        count--;
    return count > 0;
}

static json_t *added_tokens(json_t *words, const int32_t *special, size_t n_special)
{
    json_t *list = json_array();
    for (size_t i = 0; i < n_special; i++) {
        const char *word = word_of(words, special[i]);
        if (word != NULL && !contains(special[i], special, i))
            ft_json_append(&list, json_pack("{si ss sb sb sb sb sb}", "id", special[i], "content",
                                            word, "single_word", 0, "lstrip", 0, "rstrip", 0,
                                            "normalized", 0, "special", 1));
    }
    return list;
}

/* The text, followed by the EOS token. */
static json_t *post_processor(const char *end, int32_t id)
{
    return json_pack("{ss s[{s{sssi}}{s{sssi}}] s[] s{s{ss s[i] s[s]}}}", "type",
                     "TemplateProcessing", "single", "Sequence", "id", "A", "type_id", 0,
                     "SpecialToken", "id", end, "type_id", 0, "pair", "special_tokens", end, "id",
                     end, "ids", id, "tokens", end);
}

static json_t *make_tokenizer_json(json_t *words, int32_t end, const int32_t *special,
                                   size_t n_special)
{
    return json_pack("{ss so sn s{ss s{ss} ss sb} so sn s{ss ss sO}}", "version", "1.0",
                     "added_tokens", added_tokens(words, special, n_special), "normalizer",
                     "pre_tokenizer", "type", "Split", "pattern", "Regex", "\\s+", "behavior",
                     "Removed", "invert", 0, "post_processor",
                     post_processor(word_of(words, end), end), "decoder", "model", "type",
                     "WordLevel", "unk_token", "<unk>", "vocab", words);
}

static ft_status parse(ft_tokenizer **out, json_t *tokenizer, ft_error *err)
{
    size_t bytes;
    char *text = ft_json_dump(tokenizer, JSON_COMPACT, &bytes);
    if (text == NULL)
        return ft_fail(err, FT_ENOMEM, "%s: no memory for a tokenizer", file_name);
    ft_status status = ft_tokenizer_parse(out, file_name, text, bytes, err);
    free(text);
    return status;
}

ft_status ft_word_level_tokenizer_open(ft_tokenizer **out, const char *json, size_t bytes,
                                       int32_t end, const int32_t *special, size_t n_special,
                                       ft_error *err)
{
    ft_json_reader words = { .file = file_name, .err = err };
    json_t *tokenizer = NULL;
    *out = NULL;
    FT_TRY(ft_json_load(&words, JSON_OBJECT, json, bytes, FT_TOKENIZER_MAX_FILE));
    ft_status status = check_words(&words);
    if (status == FT_OK && word_of(words.json, end) == NULL)
        status = ft_json_fail(&words, FT_EFORMAT, "has no word of the EOS id %d", end);
    if (status == FT_OK) {
        tokenizer = make_tokenizer_json(words.json, end, special, n_special);
        status = parse(out, tokenizer, err);
    }
    json_decref(tokenizer);
    json_decref(words.json);
    return status;
}
