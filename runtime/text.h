/*
 * text.h - text that grows.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_TEXT_H
#define FT_RUNTIME_TEXT_H

#include "runtime/ft.h"

/* All zero is no text. */
typedef struct ft_text {
    char *data; /* not terminated; free with ft_text_fini */
    size_t bytes, capacity;
} ft_text;

/* Make room for `more` bytes behind those that there are; false when there is no memory. */
FT_MUST_USE bool ft_text_reserve(ft_text *text, size_t more);

/* Append bytes, or one character as UTF-8; false, and nothing appended, when there is no memory. */
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
