/*
 * strings.c - what filters and methods of strings share: strip, replace, lines.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/text/jinja/builtins/builtin.h"

#include "runtime/base/utf8.h"

#include <string.h>

/* ---- Strip -------------------------------------------------------------------------------- */

/* Whether the character [start, end) is stripped. */
static bool is_stripped(const ft_jinja_string *string, size_t start, size_t end,
                        const ft_jinja_string *chars)
{
    const char *at = string->data + start;
    if (chars == NULL)
        return ft_jinja_is_space(ft_utf8_decode_next(&at));
    return memmem(chars->data, chars->bytes, at, end - start) != NULL;
}

static size_t previous_char(const ft_jinja_string *string, size_t at)
{
    do
        at--;
    while (ft_utf8_is_continuation(string->data[at]));
    return at;
}

const ft_jinja_string *ft_jinja_strip(ft_jinja_run *run, const ft_jinja_string *string,
                                      const ft_jinja_string *chars, bool start, bool end)
{
    size_t from = 0, to = string->bytes, next;
    while (start && from < to) {
        next = from + ft_jinja_char_bytes(string, from);
        if (!is_stripped(string, from, next, chars))
            break;
        from = next;
    }
    while (end && from < to) {
        next = previous_char(string, to);
        if (!is_stripped(string, next, to, chars))
            break;
        to = next;
    }
    ft_jinja_spend(run, (string->bytes - (to - from)) / 16 *
                            (chars == NULL ? 1 : 1 + chars->bytes / 16));
    return ft_jinja_substring(run, string, from, to);
}

/* ---- Replace ------------------------------------------------------------------------------ */

/* An empty string is found before every character and at the end. */
static void replace_empty(ft_jinja_builder *text, const ft_jinja_string *string,
                          const ft_jinja_string *to, int64_t count)
{
    size_t at = 0;
    for (; at < string->bytes && count != 0; count--) {
        size_t next = at + ft_jinja_char_bytes(string, at);
        ft_jinja_put_string(text, to);
        ft_jinja_put_part(text, string, at, next);
        at = next;
    }
    if (count != 0)
        ft_jinja_put_string(text, to);
    ft_jinja_put_part(text, string, at, string->bytes);
}

const ft_jinja_string *ft_jinja_replace(ft_jinja_run *run, const ft_jinja_string *string,
                                        const ft_jinja_string *from, const ft_jinja_string *to,
                                        int64_t count)
{
    ft_jinja_builder text = { .run = run };
    size_t at = 0;
    ft_jinja_spend(run, string->bytes / 64);
    if (from->bytes == 0) {
        replace_empty(&text, string, to, count);
        return ft_jinja_built(&text);
    }
    for (; count != 0; count--) {
        size_t found = ft_jinja_string_find(run, string, from, at);
        if (found == SIZE_MAX)
            break;
        ft_jinja_put_part(&text, string, at, found);
        ft_jinja_put_string(&text, to);
        at = found + from->bytes;
    }
    if (at == 0)
        return string;
    ft_jinja_put_part(&text, string, at, string->bytes);
    return ft_jinja_built(&text);
}

/* ---- Lines -------------------------------------------------------------------------------- */

/* The characters that end a line for Python's str.splitlines(). */
static bool ends_line(uint32_t c)
{
    return (c >= '\n' && c <= '\r') || (c >= 0x1c && c <= 0x1e) || c == 0x85 || c == 0x2028 ||
           c == 0x2029;
}

ft_jinja_list *ft_jinja_split_lines(ft_jinja_run *run, const ft_jinja_string *string,
                                    bool keep_ends)
{
    ft_jinja_list *lines = ft_jinja_list_new(run, FT_JINJA_PLAIN_LIST, 0);
    size_t start = 0, at = 0, next;
    for (; at < string->bytes; at = next) {
        const char *decoded = string->data + at;
        uint32_t c = ft_utf8_decode_next(&decoded);
        next = (size_t) (decoded - string->data);
        if (!ends_line(c))
            continue;
        if (c == '\r' && next < string->bytes && string->data[next] == '\n')
            next++;
        ft_jinja_append(
            run, lines,
            ft_jinja_text(ft_jinja_substring(run, string, start, keep_ends ? next : at)));
        start = next;
    }
    if (start < string->bytes)
        ft_jinja_append(run, lines,
                        ft_jinja_text(ft_jinja_substring(run, string, start, string->bytes)));
    ft_jinja_spend(run, string->bytes / 64);
    return lines;
}
