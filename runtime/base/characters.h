/*
 * characters.h - counting the characters of UTF-8, for positions as people and Python count them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_BASE_CHARACTERS_H
#define FT_RUNTIME_BASE_CHARACTERS_H

#include "runtime/base/utf8.h"

/* The number of code points in the first `bytes` bytes of valid UTF-8. */
static inline size_t ft_count_characters(const char *text, size_t bytes)
{
    size_t count = 0;
    for (size_t i = 0; i < bytes; i++)
        count += !ft_utf8_is_continuation(text[i]);
    return count;
}

/* The byte at which a code point starts; the end of the text if it has fewer. */
static inline size_t ft_byte_of_character(const char *text, size_t character)
{
    size_t byte = 0;
    for (; text[byte] != '\0'; byte++)
        if (!ft_utf8_is_continuation(text[byte]) && character-- == 0)
            break;
    return byte;
}

#endif
