/*
 * trim_offsets.c - as many characters of the source are left out as the token has white space,
 * which in byte-level vocabularies is a letter.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/text/trim_offsets.h"

#include "runtime/base/utf8.h"
#include "runtime/text/unicode/byte_chars.h"
#include "runtime/text/unicode/unicode.h"

static bool is_space_in_token(uint32_t c)
{
    return c == ft_byte_to_char(' ') || ft_char_is_space(c);
}

/* White space characters at the start and at the end of a token. */
static void count_spaces(const char *token, size_t bytes, size_t *leading, size_t *trailing)
{
    const char *next = token, *end = token + bytes;
    *leading = *trailing = 0;
    while (next < end && is_space_in_token(ft_utf8_decode_next(&next)))
        ++*leading;
    while (end > token && is_space_in_token(ft_utf8_decode_prev(end))) {
        do
            end--;
        while (ft_utf8_is_continuation(*end));
        ++*trailing;
    }
}

static uint32_t skip_forward(const char *text, ft_byte_range range, size_t characters)
{
    uint32_t at = range.start;
    for (; characters > 0 && at < range.end; characters--)
        do
            at++;
        while (at < range.end && ft_utf8_is_continuation(text[at]));
    return at;
}

/* Without so many characters before the end in the whole text, nothing is skipped. */
static uint32_t skip_back(const char *text, ft_byte_range range, size_t characters)
{
    uint32_t at = range.end;
    for (; characters > 0 && at > 0; characters--)
        do
            at--;
        while (at > 0 && ft_utf8_is_continuation(text[at]));
    return characters > 0 ? range.end : at > range.start ? at : range.start;
}

void ft_trim_offsets(const ft_post_processor *post_processor, ft_token_list *tokens, size_t index,
                     const char *token, size_t bytes, const char *source)
{
    ft_byte_range *range = &tokens->range[index];
    size_t leading, trailing;
    count_spaces(token, bytes, &leading, &trailing);
    bool is_first = index == 0 || range->start == 0;
    if (leading == 1 && is_first && post_processor->keeps_prefix_space)
        leading = 0;
    range->start = skip_forward(source, *range, leading);
    range->end = skip_back(source, *range, trailing);
}
