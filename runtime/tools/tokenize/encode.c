/*
 * encode.c - one JSON value a line: a list of ids, or an object where more was asked for.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/tools/tokenize/tokenize.h"

#include "runtime/base/utf8.h"
#include "runtime/cli/json_stream.h"
#include "runtime/data/texts/examples.h"
#include "runtime/error.h"

#include <string.h>

/* Counts code points of a text from left to right. */
typedef struct {
    const char *text;
    size_t byte, character;
} char_counter;

/* The number of code points before a byte; fast if bytes mostly ascend. */
static size_t characters_before(char_counter *c, size_t byte)
{
    if (byte < c->byte)
        c->byte = c->character = 0;
    for (; c->byte < byte; c->byte++)
        c->character += !ft_utf8_is_continuation(c->text[c->byte]);
    return c->character;
}

/* [start, end) in code points, as in Python. */
static void put_offsets(ft_json_stream *json, const ft_encoding *e, const ft_example *example)
{
    char_counter counter[] = { { .text = example->text }, { .text = example->pair } };
    ft_json_stream_begin(json, "offsets", '[');
    for (size_t i = 0; i < e->count; i++) {
        char_counter *of = &counter[e->sequence[i] == 1];
        size_t start = characters_before(of, e->offsets[i].start);
        ft_json_stream_begin(json, NULL, '[');
        ft_json_stream_int(json, NULL, (int64_t) start);
        ft_json_stream_int(json, NULL, (int64_t) characters_before(of, e->offsets[i].end));
        ft_json_stream_end(json, '[');
    }
    ft_json_stream_end(json, '[');
}

static void put_tokens(ft_json_stream *json, const ft_encoding *e, const ft_tokenizer *tokenizer)
{
    ft_json_stream_begin(json, "tokens", '[');
    for (size_t i = 0; i < e->count; i++) {
        size_t bytes;
        const char *token = ft_tokenizer_id_to_token(tokenizer, e->ids[i], &bytes);
        ft_json_stream_string_n(json, NULL, token, token == NULL ? 0 : bytes);
    }
    ft_json_stream_end(json, '[');
}

static void print(const ft_tokenize *options, const ft_tokenizer *tokenizer, const ft_encoding *e,
                  const ft_example *example)
{
    ft_json_stream json = { .file = stdout, .compact = true };
    if (!options->offsets && !options->type_ids && !options->tokens) {
        ft_json_stream_ints(&json, NULL, e->ids, e->count);
        return;
    }
    ft_json_stream_begin(&json, NULL, '{');
    ft_json_stream_ints(&json, "ids", e->ids, e->count);
    if (options->type_ids)
        ft_json_stream_ints(&json, "type_ids", e->type_ids, e->count);
    if (options->offsets)
        put_offsets(&json, e, example);
    if (options->tokens)
        put_tokens(&json, e, tokenizer);
    ft_json_stream_end(&json, '{');
}

static ft_status encode(const ft_tokenize *options, const ft_tokenizer *tokenizer,
                        const ft_example *example, ft_error *err)
{
    ft_encoding *encoded;
    const ft_encode_options encode_options = {
        .pair = example->pair,
        .pair_bytes = example->pair == NULL ? 0 : strlen(example->pair),
        .no_special_tokens = options->no_special_tokens,
        .offsets = options->offsets,
        .max_length = (size_t) options->max_length,
    };
    FT_TRY(ft_tokenizer_encode_text(tokenizer, example->text, strlen(example->text),
                                    &encode_options, &encoded, err));
    print(options, tokenizer, encoded, example);
    ft_encoding_free(encoded);
    return FT_OK;
}

ft_status ft_tokenize_encode(const ft_tokenize *options, const ft_tokenizer *tokenizer,
                             ft_error *err)
{
    const ft_examples_options how = { .whole_file = options->whole_file,
                                      .pairs = options->pairs,
                                      .fields = options->fields };
    ft_examples examples;
    ft_status status = ft_examples_read(&examples, options->texts, &how, err);
    for (size_t i = 0; status == FT_OK && i < examples.count; i++)
        status = encode(options, tokenizer, &examples.example[i], err);
    ft_examples_fini(&examples);
    return status;
}
