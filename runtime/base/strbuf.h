/*
 * strbuf.h - text that grows, without end or up to a bound.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_BASE_STRBUF_H
#define FT_RUNTIME_BASE_STRBUF_H

#include "runtime/ft.h"

/* All zero is no text. */
typedef struct ft_text {
    char *data;             /* not terminated; free with ft_text_fini */
    size_t bytes, capacity; /* that there are; that fit without more memory */
    size_t allocated;
    size_t most; /* bytes that it may have; 0 for any number */
    bool full;   /* there would have been more */
} ft_text;

/* Begin anew, with at most so many bytes; memory is kept. */
void ft_text_begin(ft_text *text, size_t most);

/*
 * The bytes that each part of a tokenizer may add to a text of `bytes` bytes: 16 times as many and
 * 1 KiB, but to large texts 3 times as many and 16 MiB.  No language needs that many, and what a
 * tokenizer's file can ask for has no bound.
 */
size_t ft_text_growth(size_t bytes);

/* Make room for `more` bytes behind those that there are; false without memory, or when full. */
FT_MUST_USE bool ft_text_reserve(ft_text *text, size_t more);

/* Append bytes, or one character as UTF-8; false, and nothing appended, where there is no room. */
FT_MUST_USE bool ft_text_put(ft_text *text, const char *bytes, size_t count);
FT_MUST_USE bool ft_text_put_wide(ft_text *text, uint32_t c);
static inline bool ft_text_put_char(ft_text *text, uint32_t c)
{
    if (c >= 0x80 || text->bytes == text->capacity)
        return ft_text_put_wide(text, c);
    text->data[text->bytes++] = (char) c;
    return true;
}

void ft_text_fini(ft_text *text);

#endif
