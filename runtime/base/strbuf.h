/*
 * strbuf.h - a growing string buffer with an optional size limit.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_BASE_STRBUF_H
#define FT_RUNTIME_BASE_STRBUF_H

#include "runtime/ft.h"

/* Zero-initialized means empty. */
typedef struct ft_text {
    char *data;             /* not zero-terminated; freed by ft_strbuf_fini */
    size_t bytes, capacity; /* length; usable without growing */
    size_t allocated;
    size_t most; /* size limit in bytes; 0: unlimited */
    bool full;   /* an append exceeded the limit */
} ft_text;

/* Clear the buffer and set its limit to max_bytes; keeps the memory. */
void ft_text_begin(ft_text *text, size_t most);

/*
 * The number of bytes that each component of a tokenizer may append for a text of `bytes` bytes: 16
 * times as many plus 1 KiB, but for large texts 3 times as many plus 16 MiB. Text in any language
 * needs less, while a malicious tokenizer file could ask for an unbounded amount.
 */
size_t ft_text_growth(size_t bytes);

/* Ensure capacity for `more` bytes; false when out of memory or over the limit. */
FT_MUST_USE bool ft_text_reserve(ft_text *text, size_t more);

/* Append bytes, or one character as UTF-8; on failure returns false and appends nothing. */
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
