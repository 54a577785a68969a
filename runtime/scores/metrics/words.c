/*
 * words.c - words between white space.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/scores/metrics/words.h"

size_t ft_next_word(const char **at, const char *end, const char **word)
{
    const char *next = *at;
    while (next < end) {
        *at = next;
        if (!ft_is_python_space(ft_utf8_decode_next(&next)))
            break;
        *at = next;
    }
    *word = *at;
    for (next = *at; next < end; *at = next)
        if (ft_is_python_space(ft_utf8_decode_next(&next)))
            break;
    return (size_t) (*at - *word);
}
