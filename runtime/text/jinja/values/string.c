/*
 * string.c - strings and their builder.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/text/jinja/values/string.h"

#include "runtime/base/utf8.h"
#include "runtime/mem.h"
#include "runtime/text/unicode/unicode.h"

#include <string.h>

const ft_jinja_string *ft_jinja_string_new(ft_jinja_run *run, const char *data, size_t bytes,
                                           bool message)
{
    ft_jinja_string *string = FT_JINJA_NEW(run, ft_jinja_string);
    *string = (ft_jinja_string){ .data = data, .bytes = bytes, .message = message };
    return string;
}

const ft_jinja_string *ft_jinja_substring(ft_jinja_run *run, const ft_jinja_string *of,
                                          size_t start, size_t end)
{
    if (start == 0 && end == of->bytes)
        return of;
    ft_jinja_string *string = FT_JINJA_NEW(run, ft_jinja_string);
    *string = *of;
    string->data += start;
    string->bytes = end - start;
    if (string->mask != NULL)
        string->mask += start;
    return string;
}

bool ft_jinja_string_equal(const ft_jinja_string *a, const ft_jinja_string *b)
{
    return a->bytes == b->bytes && memcmp(a->data, b->data, a->bytes) == 0;
}

bool ft_jinja_string_is(const ft_jinja_string *string, const char *text)
{
    return string->bytes == strlen(text) && memcmp(string->data, text, string->bytes) == 0;
}

/* UTF-8 sorts like its code points. */
int ft_jinja_string_compare(const ft_jinja_string *a, const ft_jinja_string *b)
{
    int order = memcmp(a->data, b->data, ft_min_size(a->bytes, b->bytes));
    if (order == 0)
        order = (a->bytes > b->bytes) - (a->bytes < b->bytes);
    return (order > 0) - (order < 0);
}

/* ---- Characters --------------------------------------------------------------------------- */

size_t ft_jinja_string_length(const ft_jinja_string *string)
{
    size_t length = 0;
    for (size_t i = 0; i < string->bytes; i++)
        length += !ft_utf8_is_continuation(string->data[i]);
    return length;
}

size_t ft_jinja_string_offset(const ft_jinja_string *string, size_t index)
{
    size_t at = 0;
    while (index-- > 0 && at < string->bytes)
        at += ft_jinja_char_bytes(string, at);
    return at;
}

size_t ft_jinja_char_bytes(const ft_jinja_string *string, size_t at)
{
    unsigned char lead = (unsigned char) string->data[at];
    return lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
}

/* The information separators are not White_Space, but Python strips them, too. */
bool ft_jinja_is_space(uint32_t c)
{
    return ft_char_is_space(c) || (c >= 0x1c && c <= 0x1f);
}

size_t ft_jinja_string_find(ft_jinja_run *run, const ft_jinja_string *string,
                            const ft_jinja_string *part, size_t from)
{
    if (part->bytes == 0)
        return from;
    const char *found = memmem(string->data + from, string->bytes - from, part->data, part->bytes);
    size_t at = found == NULL ? SIZE_MAX : (size_t) (found - string->data);
    ft_jinja_spend(run, ((at == SIZE_MAX ? string->bytes : at) - from) / 64);
    return at;
}

/* ---- Builder ------------------------------------------------------------------------------ */

static void reserve(ft_jinja_builder *to, size_t more)
{
    if (more <= to->capacity - to->bytes)
        return;
    if (more > to->run->max_text - to->bytes)
        ft_jinja_fail(to->run, FT_ELIMIT, "a text has more than %zu bytes", to->run->max_text);
    size_t capacity = to->bytes + more;
    if (capacity < 2 * to->capacity)
        capacity = 2 * to->capacity;
    char *data = ft_jinja_alloc(to->run, capacity, 2);
    if (to->bytes > 0) {
        memcpy(data, to->data, to->bytes);
        memcpy(data + capacity, to->mask, to->bytes);
    }
    to->data = data;
    to->mask = (uint8_t *) data + capacity;
    to->capacity = capacity;
}

void ft_jinja_put(ft_jinja_builder *to, const char *data, size_t bytes, bool message)
{
    if (bytes == 0)
        return;
    reserve(to, bytes);
    memcpy(to->data + to->bytes, data, bytes);
    memset(to->mask + to->bytes, message, bytes);
    to->bytes += bytes;
}

void ft_jinja_put_text(ft_jinja_builder *to, const char *text)
{
    ft_jinja_put(to, text, strlen(text), false);
}

void ft_jinja_put_char(ft_jinja_builder *to, uint32_t c, bool message)
{
    utf8proc_uint8_t data[4];
    utf8proc_ssize_t bytes = utf8proc_encode_char((utf8proc_int32_t) c, data);
    ft_jinja_put(to, (const char *) data, (size_t) bytes, message);
}

void ft_jinja_put_part(ft_jinja_builder *to, const ft_jinja_string *string, size_t start,
                       size_t end)
{
    ft_jinja_put(to, string->data + start, end - start, string->message);
    if (string->mask != NULL && start < end)
        memcpy(to->mask + to->bytes - (end - start), string->mask + start, end - start);
}

void ft_jinja_put_string(ft_jinja_builder *to, const ft_jinja_string *string)
{
    ft_jinja_put_part(to, string, 0, string->bytes);
}

const ft_jinja_string *ft_jinja_built(ft_jinja_builder *from)
{
    ft_jinja_string *string = FT_JINJA_NEW(from->run, ft_jinja_string);
    *string = (ft_jinja_string){ from->data, from->bytes, from->mask, false };
    if (from->bytes == 0)
        string->data = "";
    else if (memchr(from->mask, !from->mask[0], from->bytes) == NULL)
        *string = (ft_jinja_string){ from->data, from->bytes, NULL, from->mask[0] };
    return string;
}
