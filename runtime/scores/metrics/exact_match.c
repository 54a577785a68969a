/*
 * exact_match.c - compare texts without the white space around them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/scores/metrics/exact_match.h"

#include "runtime/scores/metrics/words.h"

#include <string.h>

/* From the first word to the last one; returns the length in bytes. */
static size_t strip(const char **text, size_t bytes)
{
    const char *at = *text, *end = at + bytes, *word, *stripped_end;
    size_t length = ft_next_word(&at, end, &word);
    *text = word;
    for (stripped_end = word; length > 0; length = ft_next_word(&at, end, &word))
        stripped_end = word + length;
    return (size_t) (stripped_end - *text);
}

bool ft_texts_match(const char *a, size_t a_bytes, const char *b, size_t b_bytes)
{
    a_bytes = strip(&a, a_bytes);
    b_bytes = strip(&b, b_bytes);
    return a_bytes == b_bytes && (a_bytes == 0 || memcmp(a, b, a_bytes) == 0);
}
