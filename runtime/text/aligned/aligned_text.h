/*
 * aligned_text.h - text whose bytes know the source bytes that they come from.
 *
 * The rules are those of NormalizedString in the `tokenizers` library: a character that replaces
 * another one comes from where that one came from, an inserted one from where the character before
 * came from, and all bytes of a character come from one range.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_TEXT_ALIGNED_ALIGNED_TEXT_H
#define FT_RUNTIME_TEXT_ALIGNED_ALIGNED_TEXT_H

#include "runtime/base/strbuf.h"
#include "runtime/base/utf8.h"
#include "runtime/text/aligned/byte_range.h"

/* A view of valid UTF-8. */
typedef struct ft_aligned_text {
    const char *text;
    size_t bytes;
    const ft_byte_range *source; /* [bytes]; NULL: the bytes of the source from `start` on */
    size_t start;
} ft_aligned_text;

/* A part of a text: its bytes [start, end). */
static inline ft_aligned_text ft_aligned_part(const ft_aligned_text *text, size_t start, size_t end)
{
    return (ft_aligned_text){ .text = text->text + start,
                              .bytes = end - start,
                              .source = text->source == NULL ? NULL : text->source + start,
                              .start = text->start + start };
}

/* Where the bytes [start, end), at least one, and the rest of their characters come from. */
static inline ft_byte_range ft_aligned_source(const ft_aligned_text *text, size_t start, size_t end)
{
    if (text->source != NULL)
        return (ft_byte_range){ text->source[start].start, text->source[end - 1].end };
    while (ft_utf8_is_continuation(text->text[start]))
        start--;
    while (end < text->bytes && ft_utf8_is_continuation(text->text[end]))
        end++;
    return (ft_byte_range){ (uint32_t) (text->start + start), (uint32_t) (text->start + end) };
}

/* A growing text. Zero-initialize it, or with { .tracks = true }. */
typedef struct ft_aligned_buf {
    ft_strbuf text;
    ft_byte_range *source; /* [text.bytes] if tracks */
    size_t capacity;       /* of source */
    bool tracks;           /* keep the sources */
} ft_aligned_buf;

void ft_aligned_buf_fini(ft_aligned_buf *buf);

/* Clear it and set a limit as of ft_strbuf_reset(); keeps the memory. */
static inline void ft_aligned_buf_reset(ft_aligned_buf *buf, size_t max_bytes)
{
    ft_strbuf_reset(&buf->text, max_bytes);
}

/* What has been written; valid until the next change. */
static inline ft_aligned_text ft_aligned_buf_view(const ft_aligned_buf *buf)
{
    return (ft_aligned_text){ .text = ft_strbuf_text(&buf->text),
                              .bytes = buf->text.bytes,
                              .source = buf->tracks ? buf->source : NULL };
}

/* Give the last `bytes` bytes the source `from`; false when out of memory. */
FT_MUST_USE bool ft_aligned_buf_set_source(ft_aligned_buf *buf, size_t bytes, ft_byte_range from);

/*
 * Append bytes or one character that all come from `from`; or a part of a text with its own
 * sources. False when out of memory or over the limit.
 */
FT_MUST_USE bool ft_aligned_buf_append(ft_aligned_buf *buf, const char *text, size_t bytes,
                                       ft_byte_range from);
FT_MUST_USE bool ft_aligned_buf_copy(ft_aligned_buf *buf, const ft_aligned_text *from, size_t start,
                                     size_t end);
FT_MUST_USE static inline bool ft_aligned_buf_append_char(ft_aligned_buf *buf, uint32_t c,
                                                          ft_byte_range from)
{
    size_t before = buf->text.bytes;
    return ft_strbuf_append_char(&buf->text, c) &&
           (!buf->tracks || ft_aligned_buf_set_source(buf, buf->text.bytes - before, from));
}

/*
 * ---- A transformation, character by character ---------------------------------------------------
 */

/* Reads `in` and writes `out`; initialize with both and the rest zero. */
typedef struct ft_transform {
    const ft_aligned_text *in;
    ft_aligned_buf *out;
    size_t at;   /* bytes of the input that have been read */
    bool failed; /* out of memory or over the limit; once true, output is discarded */
} ft_transform;

/* The next character of the input, which is not at its end. */
static inline uint32_t ft_transform_peek(const ft_transform *t)
{
    const char *next = t->in->text + t->at;
    return ft_utf8_decode_next(&next);
}

/* Read over characters of the input, at most to its end. */
void ft_transform_skip(ft_transform *t, size_t characters);

/* Write a character in place of the next one of the input, if there is one. */
void ft_transform_replace(ft_transform *t, uint32_t c);

/* Write a character in addition: it comes from where the last character read comes from. */
void ft_transform_insert(ft_transform *t, uint32_t c);

#endif
