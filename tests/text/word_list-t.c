/*
 * word_list-t.c - a word-level vocab.json encodes and decodes text.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/text/word_list.h"
#include "tests/tap/tap.h"

#include <string.h>

static const char words[] =
    "{\"<s>\": 0, \"<pad>\": 1, \"</s>\": 2, \"<unk>\": 3, \"one\": 4, \"two\": 5, \",\": 6, "
    "\"#\": 7, \"on\": 8, \"\\\"e\": 9}";
static const int32_t special[] = { 2, 1, 2 };
static ft_error err;

static ft_status open(ft_tokenizer **out, const char *json, int32_t end)
{
    return ft_word_level_tokenizer_open(out, json, strlen(json), end, special, 3, &err);
}

static void test_encode(const ft_tokenizer *tokenizer)
{
    static const struct {
        const char *text, *sentence;
        int32_t id[6];
        size_t count;
    } cases[] = {
        { "one two", "a text encodes to the ids of its words and EOS", { 4, 5, 2 }, 3 },
        { "  two\t, \n one ", "words are separated by any white space", { 5, 6, 4, 2 }, 4 },
        { "onetwo on\"e one,",
          "a word outside the vocabulary becomes the unknown token",
          { 3, 3, 3, 2 },
          4 },
        { "", "an empty text encodes to EOS", { 2 }, 1 },
        { "one </s> two", "EOS may be spelled out in the text", { 4, 2, 5, 2 }, 4 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int32_t ids[6];
        size_t count;
        ok(ft_tokenizer_encode(tokenizer, cases[i].text, strlen(cases[i].text), ids, 6, &count,
                               &err) == FT_OK &&
               count == cases[i].count && memcmp(ids, cases[i].id, count * sizeof *ids) == 0,
           "%s", cases[i].sentence);
    }
}

static void test_decode(const ft_tokenizer *tokenizer)
{
    const int32_t ids[] = { 2, 4, 6, 9, 3, 2, 1 };
    char text[64];
    size_t bytes;
    is_int(ft_tokenizer_decode(tokenizer, ids, 7, true, text, sizeof text - 1, &bytes, &err), FT_OK,
           "the word-level tokenizer decodes ids to text");
    text[bytes] = '\0';
    is_str(text, "one , \"e <unk>",
           "the decoded text has a blank between words and no special tokens");
}

static void refused(const char *json, int32_t end, ft_status status, const char *text)
{
    ft_tokenizer *none;
    ok(open(&none, json, end) == status && none == NULL, "the vocabulary is refused: %s", json);
    has(err.text, text, "the error names the cause: %s", text);
}

int main(void)
{
    ft_tokenizer *tokenizer;
    if (open(&tokenizer, words, 2) != FT_OK)
        bail_out("%s", err.text);
    test_encode(tokenizer);
    test_decode(tokenizer);
    ft_tokenizer_close(tokenizer);
    refused("[1]", 2, FT_EFORMAT, "vocab.json: found a JSON array, expected a JSON object");
    refused("{\"one\": 1,", 2, FT_EFORMAT, "vocab.json: line 1, column 10: not valid JSON: ");
    refused("{\"one\": \"two\"}", 2, FT_EFORMAT, "vocab.json: \"one\" has no integer");
    refused("{\"\\u2581one\": 4, \"</s>\": 2}", 2, FT_EUNSUPPORTED,
            "vocab.json: has subword pieces (\"\xe2\x96\x81one\"), which need a tokenizer.json: "
            "use token ids instead");
    refused("{\"one\": 4, \"<unk>\": 3}", 2, FT_EFORMAT, "vocab.json: has no word of the EOS id 2");
    refused("{\"one\": 4, \"</s>\": 2}", 2, FT_EFORMAT, "unk_token");
    return done_testing();
}
