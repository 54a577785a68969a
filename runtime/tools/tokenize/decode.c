/*
 * decode.c - lines of token ids: JSON lists, as encoding prints them, or numbers between spaces.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/tools/tokenize/tokenize.h"

#include "runtime/data/texts/text_reader.h"
#include "runtime/error.h"
#include "runtime/mem.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    int32_t *id;
    size_t count, capacity;
} id_list;

static ft_status append(id_list *ids, int32_t id, ft_error *err)
{
    if (ids->count == ids->capacity) {
        int32_t *grown = ft_array_grow(ids->id, &ids->capacity, 64, sizeof *grown);
        if (grown == NULL)
            return ft_fail(err, FT_ENOMEM, "no memory for %zu ids", ids->count + 1);
        ids->id = grown;
    }
    ids->id[ids->count++] = id;
    return FT_OK;
}

static const char *skip_separators(const char *at)
{
    while (isspace((unsigned char) *at) || (*at != '\0' && strchr("[],", *at) != NULL))
        at++;
    return at;
}

static ft_status read_ids(id_list *out, const ft_text_reader *from, const char *line, ft_error *err)
{
    out->count = 0;
    for (const char *at = skip_separators(line); *at != '\0'; at = skip_separators(at)) {
        char *end;
        errno = 0;
        long number = strtol(at, &end, 10);
        if (end == at || errno != 0 || number < 0 || number > INT32_MAX)
            return ft_fail(err, FT_EFORMAT, "%s: line %zu: found \"%.20s\", expected a token id",
                           from->name, from->count, at);
        FT_TRY(append(out, (int32_t) number, err));
        at = end;
    }
    return FT_OK;
}

static ft_status print(const ft_tokenize *options, const ft_tokenizer *tokenizer,
                       const id_list *ids, ft_error *err)
{
    bool skip_special = !options->keep_special;
    size_t bytes, again;
    FT_TRY(ft_tokenizer_decode(tokenizer, ids->id, ids->count, skip_special, NULL, 0, &bytes, err));
    char *text = ft_calloc(bytes + 1, 1);
    if (text == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for a text of %zu bytes", bytes);
    ft_status status =
        ft_tokenizer_decode(tokenizer, ids->id, ids->count, skip_special, text, bytes, &again, err);
    if (status == FT_OK)
        printf("%s\n", text);
    free(text);
    return status;
}

ft_status ft_tokenize_decode(const ft_tokenize *options, const ft_tokenizer *tokenizer,
                             ft_error *err)
{
    ft_text_reader from;
    id_list ids = { .id = NULL };
    const char *line;
    FT_TRY(ft_text_reader_open(&from, options->texts, false, err));
    ft_status status = FT_OK;
    while (status == FT_OK && (status = ft_text_reader_next(&from, &line, err)) == FT_OK &&
           line != NULL) {
        status = read_ids(&ids, &from, line, err);
        if (status == FT_OK)
            status = print(options, tokenizer, &ids, err);
    }
    ft_text_reader_close(&from);
    free(ids.id);
    return status;
}
