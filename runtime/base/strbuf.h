/*
 * strbuf.h - a growing string buffer with an optional size limit.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_BASE_STRBUF_H
#define FT_RUNTIME_BASE_STRBUF_H

#include "runtime/ft.h"

#pragma GCC visibility push(default) /* linked by the tools: FT_PRIVATE */

/* All zero is no text. */
typedef struct ft_strbuf {
    char *data;             /* not zero-terminated; freed by ft_strbuf_fini */
    size_t bytes, capacity; /* length; usable without growing */
    size_t allocated;
    size_t max_bytes; /* size limit in bytes; 0: unlimited */
    bool overflowed;  /* an append exceeded the limit */
} ft_strbuf;

/* Clear the buffer and set its limit to max_bytes; keeps the memory. */
void ft_strbuf_reset(ft_strbuf *text, size_t max_bytes);

/*
 * The number of bytes that each component of a tokenizer may append for a text of `bytes` bytes: 16
 * times as many plus 1 KiB, but for large texts 3 times as many plus 16 MiB. Text in any language
 * needs less, while a malicious tokenizer file could ask for an unbounded amount.
 */
size_t ft_strbuf_growth_limit(size_t bytes);

/* Ensure capacity for `more` bytes; false when out of memory or over the limit. */
FT_MUST_USE bool ft_strbuf_reserve(ft_strbuf *text, size_t more);

/* Append bytes, or one character as UTF-8; on failure returns false and appends nothing. */
FT_MUST_USE bool ft_strbuf_append(ft_strbuf *text, const char *bytes, size_t count);
FT_MUST_USE bool ft_strbuf_append_multibyte(ft_strbuf *text, uint32_t c);
static inline bool ft_strbuf_append_char(ft_strbuf *text, uint32_t c)
{
    if (c >= 0x80 || text->bytes == text->capacity)
        return ft_strbuf_append_multibyte(text, c);
    text->data[text->bytes++] = (char) c;
    return true;
}

/* The bytes, which are not NULL even if there are none; valid until the next change. */
static inline const char *ft_strbuf_text(const ft_strbuf *text)
{
    return text->bytes > 0 ? text->data : "";
}

void ft_strbuf_fini(ft_strbuf *text);

#pragma GCC visibility pop

#endif
