/*
 * text_lines.c - lists of texts, and their encoding.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/tools/run/text_lines.h"

#include "runtime/error.h"
#include "runtime/mem.h"
#include "runtime/base/utf8.h"

#include <stdlib.h>
#include <string.h>

/* Overhead per text: the list entry and the allocation header. */
enum { COST = 32 };

static ft_status append(ft_texts *texts, const char *line, ft_error *err)
{
    if ((texts->count & (texts->count - 1)) == 0) {
        size_t capacity = texts->count == 0 ? 1 : 2 * texts->count;
        char **grown = realloc(texts->line, capacity * sizeof *grown);
        if (grown == NULL)
            return ft_fail(err, FT_ENOMEM, "no memory for %zu texts", capacity);
        texts->line = grown;
    }
    char *copy = ft_strdup(line);
    if (copy == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for text %zu", texts->count + 1);
    texts->line[texts->count++] = copy;
    texts->bytes += strlen(line) + COST;
    return FT_OK;
}

static ft_status read_texts(ft_texts *out, ft_text_reader *from, ft_error *err)
{
    const char *text;
    FT_TRY(ft_text_reader_next(from, &text, err));
    if (text == NULL)
        return ft_fail(err, FT_EFORMAT, "%s: contains no text", from->name);
    while (text != NULL) {
        FT_TRY(append(out, text, err));
        if (out->bytes > FT_TEXTS_MAX_BYTES)
            return ft_fail(err, FT_ELIMIT,
                           "%s: line %zu: the texts up to this line exceed the limit of %d MiB; "
                           "split the file",
                           from->name, from->count, FT_TEXTS_MAX_BYTES >> 20);
        FT_TRY(ft_text_reader_next(from, &text, err));
    }
    return FT_OK;
}

ft_status ft_texts_read(ft_texts *out, const char *path, bool whole_file, ft_error *err)
{
    ft_text_reader from;
    memset(out, 0, sizeof *out);
    FT_TRY(ft_text_reader_open(&from, path, whole_file, err));
    ft_status status = read_texts(out, &from, err);
    ft_text_reader_close(&from);
    if (status != FT_OK)
        ft_texts_fini(out);
    return status;
}

/* Command line arguments may be arbitrary bytes. */
static ft_status check_operand(const char *text, size_t number, ft_error *err)
{
    size_t bytes = strlen(text), valid = ft_utf8_valid_prefix(text, bytes);
    if (valid == bytes)
        return FT_OK;
    return ft_fail(err, FT_EFORMAT, "text %zu: byte %zu is 0x%02x, expected valid UTF-8", number,
                   valid, (unsigned) (unsigned char) text[valid]);
}

ft_status ft_texts_copy(ft_texts *out, char *const *line, size_t count, ft_error *err)
{
    memset(out, 0, sizeof *out);
    for (size_t i = 0; i < count; i++) {
        ft_status status = check_operand(line[i], i + 1, err);
        if (status == FT_OK)
            status = append(out, line[i], err);
        if (status != FT_OK) {
            ft_texts_fini(out);
            return status;
        }
    }
    return FT_OK;
}

static ft_status encode(const ft_tokenizer *tokenizer, const char *text, bool bare, int32_t *ids,
                        size_t capacity, size_t *count, ft_error *err)
{
    size_t bytes = strlen(text);
    return bare ? ft_tokenizer_encode_no_special(tokenizer, text, bytes, ids, capacity, count, err)
                : ft_tokenizer_encode(tokenizer, text, bytes, ids, capacity, count, err);
}

ft_status ft_text_encode(const ft_tokenizer *tokenizer, const char *text, bool bare, int32_t **ids,
                         size_t *count, ft_error *err)
{
    size_t capacity = strlen(text) + 16; /* tokens rarely outnumber bytes */
    for (*ids = NULL;;) {
        int32_t *grown = realloc(*ids, capacity * sizeof *grown);
        if (grown == NULL)
            return ft_fail(err, FT_ENOMEM, "no memory for %zu tokens", capacity);
        *ids = grown;
        FT_TRY(encode(tokenizer, text, bare, *ids, capacity, count, err));
        if (*count <= capacity)
            return FT_OK;
        capacity = *count;
    }
}

void ft_texts_fini(ft_texts *texts)
{
    for (size_t i = 0; i < texts->count; i++)
        free(texts->line[i]);
    free(texts->line);
    memset(texts, 0, sizeof *texts);
}
