/*
 * encoded_examples.c - encode examples, whole or in windows, and pad the rows.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/data/encoded_examples.h"

#include "runtime/data/context_windows.h"
#include "runtime/error.h"
#include "runtime/mem.h"
#include "runtime/model/model.h"
#include "runtime/text/tokenizer.h"

#include <stdlib.h>
#include <string.h>

/* What encoding an example needs. */
typedef struct {
    ft_encoded_examples *out;
    const ft_examples *examples;
    const ft_tokenizer *tokenizer;
    const ft_example_encoding_options *options;
    size_t positions, max_length; /* of the model; to which texts are truncated, 0: not at all */
} encoder;

static ft_status append(ft_encoded_examples *out, ft_encoding *row, size_t example, ft_error *err)
{
    if (out->count == out->capacity) {
        size_t capacity = out->capacity;
        ft_encoding **rows = ft_array_grow(out->row, &capacity, 16, sizeof *rows);
        out->row = rows != NULL ? rows : out->row;
        size_t *examples = rows != NULL ? realloc(out->example, capacity * sizeof *examples) : NULL;
        out->example = examples != NULL ? examples : out->example;
        if (examples == NULL) {
            ft_encoding_free(row);
            return ft_fail(err, FT_ENOMEM, "no memory for %zu texts", out->count + 1);
        }
        out->capacity = capacity;
    }
    out->row[out->count] = row;
    out->example[out->count++] = example;
    return FT_OK;
}

static ft_status fail_length(const encoder *e, size_t index, size_t tokens, ft_error *err)
{
    (void) ft_examples_fail(e->examples, index, err, "%zu tokens, but the model has %zu positions",
                            tokens, e->positions);
    return err != NULL ? err->code = FT_ELIMIT : FT_ELIMIT;
}

/* ---- Whole examples -------------------------------------------------------------------------- */

/* Append a row unless it is too long. */
static ft_status add_row(const encoder *e, size_t index, ft_encoding *row, ft_error *err)
{
    size_t tokens = row->count;
    e->out->truncated += row->truncated;
    if (tokens <= e->positions)
        return append(e->out, row, index, err);
    ft_encoding_free(row);
    return fail_length(e, index, tokens, err);
}

/* A row of a text, or of a pair. */
static ft_status encode_row(const encoder *e, size_t index, const char *text, const char *pair,
                            ft_error *err)
{
    const ft_encode_options options = {
        .pair = pair,
        .pair_bytes = pair == NULL ? 0 : strlen(pair),
        .offsets = e->options->offsets,
        .max_length = e->max_length,
    };
    ft_encoding *row;
    FT_TRY(ft_tokenizer_encode_text(e->tokenizer, text, strlen(text), &options, &row, err));
    return add_row(e, index, row, err);
}

static ft_status encode_target(const encoder *e, size_t index, ft_error *err)
{
    const char *text = e->examples->example[index].pair;
    ft_encoding *row;
    FT_TRY(ft_tokenizer_encode_target(e->tokenizer, text, strlen(text), e->max_length, &row, err));
    return add_row(e, index, row, err);
}

/* The text behind the prompt; NULL: no memory. */
static char *prepend_prompt(const char *prompt, const char *text)
{
    size_t size = strlen(prompt) + strlen(text) + 1;
    char *whole = malloc(size);
    if (whole != NULL)
        snprintf(whole, size, "%s%s", prompt, text);
    return whole;
}

static ft_status encode_whole(const encoder *e, size_t index, const char *text, const char *pair,
                              ft_error *err)
{
    const char *prompt = e->options->prompt;
    if (prompt == NULL || prompt[0] == '\0')
        return encode_row(e, index, text, pair, err);
    if (pair != NULL) {
        (void) ft_examples_fail(e->examples, index, err,
                                "found a pair of texts, but the model puts a prompt before a text: "
                                "expected one text");
        return err != NULL ? err->code = FT_EUNSUPPORTED : FT_EUNSUPPORTED;
    }
    char *whole = prepend_prompt(prompt, text);
    if (whole == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for a text with its prompt");
    ft_status status = encode_row(e, index, whole, NULL, err);
    free(whole);
    return status;
}

/* ---- Windows --------------------------------------------------------------------------------- */

static ft_status add_windows(const encoder *e, size_t index, ft_context_windows *windows,
                             ft_error *err)
{
    size_t most = e->max_length > 0 ? e->max_length : e->positions;
    size_t fixed = ft_context_windows_fixed_tokens(windows);
    ft_encoding *row = NULL;
    if (fixed >= most)
        return fail_length(e, index, fixed + 1, err);
    do {
        FT_TRY(ft_context_windows_next(windows, most, e->options->stride, &row, err));
        if (row != NULL)
            FT_TRY(append(e->out, row, index, err));
    } while (row != NULL);
    return FT_OK;
}

static ft_status encode_windows(const encoder *e, size_t index, ft_error *err)
{
    const ft_example *example = &e->examples->example[index];
    ft_context_windows *windows;
    FT_TRY(ft_context_windows_new(&windows, e->tokenizer, example->text, strlen(example->text),
                                  example->pair, strlen(example->pair), err));
    ft_status status = add_windows(e, index, windows, err);
    ft_context_windows_free(windows);
    return status;
}

/* ---- All ------------------------------------------------------------------------------------- */

static encoder make_encoder(ft_encoded_examples *out, const ft_examples *examples,
                            const ft_tokenizer *tokenizer, const ft_model *model,
                            const ft_example_encoding_options *options)
{
    const ft_model_info info = ft_model_get_info(model);
    size_t most = (size_t) info.max_seq_length, length = (size_t) options->max_length;
    bool truncates = options->truncate || length > 0 || options->windows;
    return (encoder){ .out = out,
                      .examples = examples,
                      .tokenizer = tokenizer,
                      .options = options,
                      .positions = (size_t) info.max_positions,
                      .max_length = !truncates                    ? 0
                                    : length > 0 && length < most ? length
                                                                  : most };
}

static ft_status encode_example(const encoder *e, size_t index, ft_error *err)
{
    const ft_example *example = &e->examples->example[index];
    if (e->options->side == FT_SIDE_TARGET)
        return encode_target(e, index, err);
    if (e->options->side == FT_SIDE_TEXT)
        return encode_whole(e, index, example->text, NULL, err);
    if (example->pair != NULL && e->options->windows)
        return encode_windows(e, index, err);
    if (example->pair == NULL || !e->options->separate)
        return encode_whole(e, index, example->text, example->pair, err);
    FT_TRY(encode_whole(e, index, example->text, NULL, err));
    return encode_whole(e, index, example->pair, NULL, err);
}

ft_status ft_examples_encode(ft_encoded_examples *out, const ft_examples *examples,
                             const ft_tokenizer *tokenizer, const ft_model *model,
                             const ft_example_encoding_options *options, ft_error *err)
{
    *out = (ft_encoded_examples){ 0 };
    const encoder e = make_encoder(out, examples, tokenizer, model, options);
    for (size_t i = 0; i < examples->count; i++)
        FT_TRY(encode_example(&e, i, err));
    return FT_OK;
}

void ft_encoded_examples_fini(ft_encoded_examples *encoded)
{
    for (size_t i = 0; i < encoded->count; i++)
        ft_encoding_free(encoded->row[i]);
    free(encoded->row);
    free(encoded->example);
    *encoded = (ft_encoded_examples){ 0 };
}

/* ---- Rows ------------------------------------------------------------------------------------ */

size_t ft_encoded_examples_longest(const ft_encoded_examples *encoded)
{
    size_t longest = 1;
    for (size_t i = 0; i < encoded->count; i++)
        longest = encoded->row[i]->count > longest ? encoded->row[i]->count : longest;
    return longest;
}

static ft_status allocate(ft_dataset *out, size_t rows, size_t cols, bool has_types, ft_error *err)
{
    size_t cells;
    *out = (ft_dataset){ .rows = rows, .cols = cols, .has_mask = true };
    if (!ft_checked_mul(rows, cols, &cells))
        return ft_fail(err, FT_ELIMIT, "%zu texts are too many", rows);
    out->ids = ft_calloc(cells, sizeof *out->ids);
    out->mask = ft_calloc(cells, sizeof *out->mask);
    out->types = has_types ? ft_calloc(cells, sizeof *out->types) : NULL;
    if (out->ids != NULL && out->mask != NULL && (!has_types || out->types != NULL))
        return FT_OK;
    ft_dataset_fini(out);
    return ft_fail(err, FT_ENOMEM, "no memory for %zu texts", rows);
}

ft_status ft_dataset_from_encodings(ft_dataset *out, const ft_encoded_examples *encoded,
                                    const ft_model *model, ft_error *err)
{
    size_t cols = ft_encoded_examples_longest(encoded);
    FT_TRY(allocate(out, encoded->count, cols, model->config.types > 0, err));
    for (size_t row = 0; row < encoded->count; row++) {
        const ft_encoding *e = encoded->row[row];
        for (size_t i = 0; i < e->count; i++) {
            out->ids[row * cols + i] = e->ids[i];
            if (out->types != NULL)
                out->types[row * cols + i] = e->type_ids[i];
            out->mask[row * cols + i] = 1;
        }
    }
    return FT_OK;
}
