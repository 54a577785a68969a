/*
 * words.h - white space and words as Python's str.split() and str.strip() see them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_SCORES_METRICS_WORDS_H
#define FT_RUNTIME_SCORES_METRICS_WORDS_H

#include "runtime/base/utf8.h"
#include "runtime/text/unicode/unicode.h"

/* Python's str.isspace() of one character: White_Space and the information separators. */
static inline bool ft_is_python_space(uint32_t c)
{
    return ft_char_is_space(c) || (c >= 0x1c && c <= 0x1f);
}

/*
 * The next word between *at and `end` (valid UTF-8); returns its length in bytes, 0 at the end.
 * *word is its start, and *at is advanced past it.
 */
size_t ft_next_word(const char **at, const char *end, const char **word);

#endif
