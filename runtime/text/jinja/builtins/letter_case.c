/*
 * letter_case.c - upper and lower case as Python has them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/text/jinja/builtins/builtin.h"

#include "runtime/base/utf8.h"
#include "runtime/text/unicode/unicode.h"

static bool is_cased(uint32_t c)
{
    utf8proc_category_t category = utf8proc_category((utf8proc_int32_t) c);
    return category == UTF8PROC_CATEGORY_LU || category == UTF8PROC_CATEGORY_LL ||
           category == UTF8PROC_CATEGORY_LT;
}

/* A capital sigma at the end of a word has its own lower case. */
static bool is_final_sigma(const ft_jinja_string *string, size_t at)
{
    const char *next = string->data + at;
    uint32_t c = ft_utf8_decode_next(&next);
    bool ends = next == string->data + string->bytes || !is_cased(ft_utf8_decode_next(&next));
    return c == 0x3a3 && at > 0 && is_cased(ft_utf8_decode_prev(string->data + at)) && ends;
}

static void put_lower(ft_jinja_builder *to, const ft_jinja_string *string, size_t at, uint32_t c)
{
    uint32_t lower[FT_CHAR_MAX_LOWERED];
    int count = ft_char_lower(c, lower);
    if (is_final_sigma(string, at))
        lower[0] = 0x3c2;
    for (int i = 0; i < count; i++)
        ft_jinja_put_char(to, lower[i], ft_jinja_is_message(string, at));
}

/* The sharp s is the letter in use whose upper case is two letters. */
static void put_upper(ft_jinja_builder *to, const ft_jinja_string *string, size_t at, uint32_t c,
                      bool title)
{
    bool message = ft_jinja_is_message(string, at);
    if (c == 0xdf)
        ft_jinja_put(to, title ? "Ss" : "SS", 2, message);
    else
        ft_jinja_put_char(to,
                          (uint32_t) (title ? utf8proc_totitle((utf8proc_int32_t) c)
                                            : utf8proc_toupper((utf8proc_int32_t) c)),
                          message);
}

/* Whether a character ends a word of the filter title. */
static bool ends_word(uint32_t c)
{
    return ft_jinja_is_space(c) || c == '-' || c == '(' || c == '{' || c == '[' || c == '<';
}

const ft_jinja_string *ft_jinja_convert_case(ft_jinja_run *run, const ft_jinja_string *string,
                                             ft_jinja_case to)
{
    ft_jinja_builder text = { .run = run };
    bool first = true; /* of the string or a word */
    ft_jinja_spend(run, string->bytes / 16);
    for (size_t at = 0, next; at < string->bytes; at = next) {
        const char *decoded = string->data + at;
        uint32_t c = ft_utf8_decode_next(&decoded);
        next = (size_t) (decoded - string->data);
        bool is_lower = utf8proc_toupper((utf8proc_int32_t) c) != (utf8proc_int32_t) c;
        bool upper = to == FT_JINJA_UPPER || (to == FT_JINJA_SWAPCASE && is_lower) ||
                     (to >= FT_JINJA_CAPITALIZE && to <= FT_JINJA_WORDS && first);
        if (upper)
            put_upper(&text, string, at, c, to == FT_JINJA_TITLE || to == FT_JINJA_CAPITALIZE);
        else
            put_lower(&text, string, at, c);
        first = (to == FT_JINJA_TITLE && !is_cased(c)) || (to == FT_JINJA_WORDS && ends_word(c));
    }
    return ft_jinja_built(&text);
}
