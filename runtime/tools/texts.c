/*
 * texts.c - lines of text.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/tools/texts.h"

#include "runtime/error.h"
#include "runtime/mem.h"

#include <stdlib.h>
#include <string.h>

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
    return FT_OK;
}

typedef ft_status reader(ft_texts *out, const char *path, FILE *file, ft_error *err);

/* A text ends where a byte is that no text has: the end of the file, or a NUL, which is refused. */
static ft_status read_all(ft_texts *out, const char *path, FILE *file, ft_error *err)
{
    char *text = NULL;
    size_t room = 0;
    ft_status status = FT_OK;
    ssize_t n = getdelim(&text, &room, '\0', file);
    if (n > 0 && strlen(text) != (size_t) n)
        status = ft_fail(err, FT_EFORMAT, "%s: holds a NUL", path);
    else if (n > 0)
        status = append(out, text, err);
    free(text);
    return status;
}

static ft_status read_lines(ft_texts *out, const char *path, FILE *file, ft_error *err)
{
    char *line = NULL;
    size_t room = 0;
    ft_status status = FT_OK;
    for (ssize_t n; status == FT_OK && (n = getline(&line, &room, file)) >= 0;) {
        while (n > 0 && (line[n - 1] == '\n' || line[n - 1] == '\r'))
            line[--n] = '\0';
        if (strlen(line) != (size_t) n)
            status = ft_fail(err, FT_EFORMAT, "%s: line %zu holds a NUL", path, out->count + 1);
        else
            status = append(out, line, err);
    }
    free(line);
    return status;
}

static ft_status read_file(ft_texts *out, const char *path, reader *read, ft_error *err)
{
    memset(out, 0, sizeof *out);
    bool standard = strcmp(path, "-") == 0;
    FILE *file = standard ? stdin : fopen(path, "r");
    if (file == NULL)
        return ft_fail_errno(err, "%s", path);
    const char *name = standard ? "standard input" : path;
    ft_status status = read(out, name, file, err);
    if (status == FT_OK && ferror(file))
        status = ft_fail_errno(err, "%s", name);
    if (status == FT_OK && out->count == 0)
        status = ft_fail(err, FT_EFORMAT, "%s: holds no text", name);
    if (!standard)
        fclose(file);
    if (status != FT_OK)
        ft_texts_fini(out);
    return status;
}

ft_status ft_texts_read(ft_texts *out, const char *path, ft_error *err)
{
    return read_file(out, path, read_lines, err);
}

ft_status ft_texts_read_whole(ft_texts *out, const char *path, ft_error *err)
{
    return read_file(out, path, read_all, err);
}

ft_status ft_texts_copy(ft_texts *out, char *const *line, size_t count, ft_error *err)
{
    memset(out, 0, sizeof *out);
    for (size_t i = 0; i < count; i++) {
        ft_status status = append(out, line[i], err);
        if (status != FT_OK) {
            ft_texts_fini(out);
            return status;
        }
    }
    return FT_OK;
}

static ft_status encode(const ft_tokenizer *tokenizer, const char *text, bool bare, int32_t *ids,
                        size_t room, size_t *count, ft_error *err)
{
    size_t bytes = strlen(text);
    return bare ? ft_tokenizer_encode_bare(tokenizer, text, bytes, ids, room, count, err)
                : ft_tokenizer_encode(tokenizer, text, bytes, ids, room, count, err);
}

ft_status ft_text_encode(const ft_tokenizer *tokenizer, const char *text, bool bare, int32_t **ids,
                         size_t *count, ft_error *err)
{
    size_t room = strlen(text) + 16; /* hardly a text has more tokens than bytes */
    for (*ids = NULL;;) {
        int32_t *grown = realloc(*ids, room * sizeof *grown);
        if (grown == NULL)
            return ft_fail(err, FT_ENOMEM, "no memory for %zu tokens", room);
        *ids = grown;
        FT_TRY(encode(tokenizer, text, bare, *ids, room, count, err));
        if (*count <= room)
            return FT_OK;
        room = *count;
    }
}

void ft_texts_fini(ft_texts *texts)
{
    for (size_t i = 0; i < texts->count; i++)
        free(texts->line[i]);
    free(texts->line);
    memset(texts, 0, sizeof *texts);
}
