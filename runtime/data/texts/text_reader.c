/*
 * text_reader.c - read and validate one text at a time.
 *
 * Bytes are read one by one, so that invalid input is rejected at once, regardless of how much
 * follows.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/data/texts/text_reader.h"

#include "runtime/error.h"
#include "runtime/base/utf8.h"

#include <string.h>

ft_status ft_text_reader_open(ft_text_reader *out, const char *path, bool whole_file, ft_error *err)
{
    bool standard = strcmp(path, "-") == 0;
    *out = (ft_text_reader){ .file = standard ? stdin : fopen(path, "r"),
                             .name = standard ? "standard input" : path,
                             .whole_file = whole_file };
    return out->file != NULL ? FT_OK : ft_fail_errno(err, "%s", path);
}

void ft_text_reader_close(ft_text_reader *reader)
{
    if (reader->file != NULL && reader->file != stdin)
        fclose(reader->file);
    ft_strbuf_fini(&reader->text);
    *reader = (ft_text_reader){ 0 };
}

/* Line and column of byte `at` of the text. */
static size_t find_line(const ft_text_reader *r, size_t at, size_t *column)
{
    size_t line = r->count, start = 0;
    for (const char *end; (end = memchr(r->text.data + start, '\n', at - start)) != NULL; line++)
        start = (size_t) (end - r->text.data) + 1;
    *column = at - start;
    return line;
}

static ft_status refuse_byte(const ft_text_reader *r, size_t at, unsigned byte, ft_error *err)
{
    size_t column, line = find_line(r, at, &column);
    if (byte == 0)
        return ft_fail(err, FT_EFORMAT, "%s: line %zu: NUL at byte %zu, expected text", r->name,
                       line, column);
    return ft_fail(err, FT_EFORMAT, "%s: line %zu: byte %zu is 0x%02x, expected valid UTF-8",
                   r->name, line, column, byte);
}

static ft_status refuse_length(const ft_text_reader *r, ft_error *err)
{
    if (r->whole_file)
        return ft_fail(err, FT_ELIMIT, "%s: exceeds the limit of %d MiB per text", r->name,
                       FT_TEXT_MAX_BYTES >> 20);
    return ft_fail(err, FT_ELIMIT, "%s: line %zu exceeds the limit of %d MiB per text", r->name,
                   r->count, FT_TEXT_MAX_BYTES >> 20);
}

static ft_status no_memory(const ft_text_reader *r, ft_error *err)
{
    return ft_fail(err, FT_ENOMEM, "%s: line %zu: no memory for more than %zu bytes", r->name,
                   r->count, r->text.bytes);
}

/* Read up to the end of the text; *any is false at the end of the file. */
static ft_status read_bytes(ft_text_reader *r, bool *any, ft_error *err)
{
    int byte;
    r->text.bytes = 0;
    if (!ft_strbuf_reserve(&r->text, 1))
        return no_memory(r, err);
    while ((byte = getc_unlocked(r->file)) != EOF && (r->whole_file || byte != '\n')) {
        if (byte == 0)
            return refuse_byte(r, r->text.bytes, 0, err);
        if (r->text.bytes == FT_TEXT_MAX_BYTES)
            return refuse_length(r, err);
        const char c = (char) byte;
        if (!ft_strbuf_append(&r->text, &c, 1))
            return no_memory(r, err);
    }
    *any = byte != EOF || r->text.bytes > 0;
    return ferror(r->file) ? ft_fail_errno(err, "%s: line %zu", r->name, r->count) : FT_OK;
}

ft_status ft_text_reader_next(ft_text_reader *reader, const char **text, ft_error *err)
{
    ft_strbuf *read = &reader->text;
    bool any = false;
    *text = NULL;
    reader->count++;
    FT_TRY(read_bytes(reader, &any, err));
    if (!any)
        return FT_OK;
    while (!reader->whole_file && read->bytes > 0 && read->data[read->bytes - 1] == '\r')
        read->bytes--;
    size_t valid = ft_utf8_valid_prefix(read->data, read->bytes);
    if (valid < read->bytes)
        return refuse_byte(reader, valid, (unsigned char) read->data[valid], err);
    if (!ft_strbuf_append(read, "", 1))
        return no_memory(reader, err);
    *text = read->data;
    return FT_OK;
}
