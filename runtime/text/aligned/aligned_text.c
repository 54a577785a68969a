/*
 * aligned_text.c - the sources are an array beside the text, which grows with it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/text/aligned/aligned_text.h"

#include "runtime/mem.h"

#include <stdlib.h>
#include <string.h>

void ft_aligned_buf_fini(ft_aligned_buf *buf)
{
    ft_strbuf_fini(&buf->text);
    free(buf->source);
    buf->source = NULL;
    buf->capacity = 0;
}

/* Room for the sources of all bytes of the text. */
static bool reserve(ft_aligned_buf *buf)
{
    if (buf->text.bytes <= buf->capacity)
        return true;
    size_t capacity = 2 * buf->text.bytes;
    ft_byte_range *grown = realloc(buf->source, capacity * sizeof *grown);
    if (grown == NULL)
        return false;
    buf->source = grown;
    buf->capacity = capacity;
    return true;
}

bool ft_aligned_buf_set_source(ft_aligned_buf *buf, size_t bytes, ft_byte_range from)
{
    if (!reserve(buf))
        return false;
    for (size_t i = buf->text.bytes - bytes; i < buf->text.bytes; i++)
        buf->source[i] = from;
    return true;
}

bool ft_aligned_buf_append(ft_aligned_buf *buf, const char *text, size_t bytes, ft_byte_range from)
{
    return ft_strbuf_append(&buf->text, text, bytes) &&
           (!buf->tracks || ft_aligned_buf_set_source(buf, bytes, from));
}

/* The sources of unchanged text: each byte comes from the whole of its character. */
static void copy_identity(ft_byte_range *out, const ft_aligned_text *from, size_t start, size_t end)
{
    const char *next = from->text + start;
    for (size_t at = start; at < end;) {
        (void) ft_utf8_decode_next(&next);
        size_t after = (size_t) (next - from->text);
        const ft_byte_range source = ft_aligned_source(from, at, after);
        while (at < after)
            out[at++ - start] = source;
    }
}

bool ft_aligned_buf_copy(ft_aligned_buf *buf, const ft_aligned_text *from, size_t start, size_t end)
{
    size_t before = buf->text.bytes, bytes = end - start;
    if (!ft_strbuf_append(&buf->text, from->text + start, bytes))
        return false;
    if (!buf->tracks || bytes == 0)
        return true;
    if (!reserve(buf))
        return false;
    if (from->source == NULL)
        copy_identity(buf->source + before, from, start, end);
    else
        memcpy(buf->source + before, from->source + start, bytes * sizeof *buf->source);
    return true;
}

/* ---- Transformations ------------------------------------------------------------------------ */

static size_t next_char_end(const ft_transform *t)
{
    const char *next = t->in->text + t->at;
    if (t->at < t->in->bytes)
        (void) ft_utf8_decode_next(&next);
    return (size_t) (next - t->in->text);
}

/* Where the character that ends at t->at comes from. */
static ft_byte_range last_source(const ft_transform *t)
{
    size_t start = t->at;
    if (start == 0)
        return (ft_byte_range){ 0, 0 };
    if (t->in->source != NULL)
        return t->in->source[start - 1];
    do
        start--;
    while (ft_utf8_is_continuation(t->in->text[start]));
    return ft_aligned_source(t->in, start, t->at);
}

static void emit(ft_transform *t, uint32_t c, ft_byte_range from)
{
    t->failed = t->failed || !ft_aligned_buf_append_char(t->out, c, from);
}

void ft_transform_skip(ft_transform *t, size_t characters)
{
    while (characters-- > 0)
        t->at = next_char_end(t);
}

void ft_transform_replace(ft_transform *t, uint32_t c)
{
    size_t start = t->at;
    t->at = next_char_end(t);
    if (!t->out->tracks)
        emit(t, c, (ft_byte_range){ 0, 0 });
    else if (start == t->at)
        emit(t, c, last_source(t));
    else
        emit(t, c,
             t->in->source != NULL ? t->in->source[start] : ft_aligned_source(t->in, start, t->at));
}

void ft_transform_insert(ft_transform *t, uint32_t c)
{
    emit(t, c, t->out->tracks ? last_source(t) : (ft_byte_range){ 0, 0 });
}
