/*
 * text.c - str() and repr() of values.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/text/jinja/values/text.h"

#include "runtime/base/utf8.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Numbers ------------------------------------------------------------------------------ */

/* Python writes exponents below -4 and from 16 on, and always a point or an exponent. */
static void lay_out_float(char text[FT_JINJA_FLOAT_SIZE], const char *digits, int exponent,
                          bool negative)
{
    int count = (int) strlen(digits), at = negative;
    text[0] = '-';
    if (exponent < -4 || exponent >= 16)
        snprintf(text + at, (size_t) (FT_JINJA_FLOAT_SIZE - at), "%c%s%se%c%02u", digits[0],
                 count > 1 ? "." : "", digits + 1, exponent < 0 ? '-' : '+',
                 (unsigned) abs(exponent) % 1000);
    else if (exponent < 0)
        snprintf(text + at, (size_t) (FT_JINJA_FLOAT_SIZE - at), "0.%.*s%s", -exponent - 1, "0000",
                 digits);
    else
        snprintf(text + at, (size_t) (FT_JINJA_FLOAT_SIZE - at), "%.*s%.*s.%s", exponent + 1,
                 digits, exponent + 1 > count ? exponent + 1 - count : 0, "0000000000000000",
                 exponent + 1 < count ? digits + exponent + 1 : "0");
}

void ft_jinja_float_text(char text[FT_JINJA_FLOAT_SIZE], double number)
{
    char digits[32], scientific[40];
    int precision = 0;
    if (!isfinite(number)) {
        strcpy(text, isnan(number) ? "nan" : number < 0 ? "-inf" : "inf");
        return;
    }
    do
        snprintf(scientific, sizeof scientific, "%.*e", precision, fabs(number));
    while (strtod(scientific, NULL) != fabs(number) && ++precision < 17);
    char *e = strchr(scientific, 'e');
    int exponent = atoi(e + 1), count = 0;
    for (const char *at = scientific; at < e; at++)
        if (*at >= '0' && *at <= '9')
            digits[count++] = *at;
    digits[count] = '\0';
    lay_out_float(text, digits, exponent, signbit(number));
}

/* ---- repr() of strings -------------------------------------------------------------------- */

/* Python's str.isprintable() for a character that is not ASCII. */
static bool is_printable(uint32_t c)
{
    switch (utf8proc_category((utf8proc_int32_t) c)) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
    case UTF8PROC_CATEGORY_ZS:
        return false;
    default:
        return true;
    }
}

/* The escape of a character in a repr(); empty if it stands for itself. */
static void find_escape(char escape[12], uint32_t c, char quote)
{
    escape[0] = '\0';
    if (c == '\n' || c == '\r' || c == '\t')
        snprintf(escape, 12, "\\%c", c == '\n' ? 'n' : c == '\r' ? 'r' : 't');
    else if (c == '\\' || c == (uint32_t) (unsigned char) quote)
        snprintf(escape, 12, "\\%c", (int) c);
    else if (c < 0x20 || c == 0x7f || (c > 0x7f && c < 0x100 && !is_printable(c)))
        snprintf(escape, 12, "\\x%02x", c);
    else if (c >= 0x100 && !is_printable(c))
        snprintf(escape, 12, c < 0x10000 ? "\\u%04x" : "\\U%08x", c);
}

static void put_string_repr(ft_jinja_builder *to, const ft_jinja_string *string)
{
    char escape[12];
    bool single = memchr(string->data, '\'', string->bytes) != NULL;
    bool both = single && memchr(string->data, '"', string->bytes) != NULL;
    char quote[] = { single && !both ? '"' : '\'', '\0' };
    ft_jinja_put_text(to, quote);
    for (size_t at = 0, next; at < string->bytes; at = next) {
        const char *c = string->data + at;
        next = at + ft_jinja_char_bytes(string, at);
        find_escape(escape, ft_utf8_decode_next(&c), quote[0]);
        if (escape[0] != '\0')
            ft_jinja_put(to, escape, strlen(escape), ft_jinja_is_message(string, at));
        else
            ft_jinja_put_part(to, string, at, next);
    }
    ft_jinja_put_text(to, quote);
}

/* ---- Containers --------------------------------------------------------------------------- */

static void put_list(ft_jinja_builder *to, const ft_jinja_list *list)
{
    bool tuple = list->type == FT_JINJA_TUPLE;
    if (list->type > FT_JINJA_TUPLE)
        ft_jinja_fail(to->run, FT_EUNSUPPORTED,
                      "a %s is printed, which chat templates do not: make it a list first",
                      list->type == FT_JINJA_GENERATOR ? "generator" : "range or a view of a dict");
    ft_jinja_put_text(to, tuple ? "(" : "[");
    for (size_t i = 0; i < list->count; i++) {
        ft_jinja_put_text(to, i > 0 ? ", " : "");
        ft_jinja_put_repr(to, list->item[i]);
    }
    ft_jinja_put_text(to, !tuple ? "]" : list->count == 1 ? ",)" : ")");
}

static void put_dict(ft_jinja_builder *to, const ft_jinja_dict *dict)
{
    ft_jinja_put_text(to, "{");
    for (size_t i = 0; i < dict->count; i++) {
        ft_jinja_put_text(to, i > 0 ? ", " : "");
        ft_jinja_put_repr(to, dict->entry[i].key);
        ft_jinja_put_text(to, ": ");
        ft_jinja_put_repr(to, dict->entry[i].value);
    }
    ft_jinja_put_text(to, "}");
}

static void put_container(ft_jinja_builder *to, ft_jinja_value value)
{
    ft_jinja_enter(to->run);
    ft_jinja_spend(to->run, 1);
    if (value.kind == FT_JINJA_LIST)
        put_list(to, value.list);
    else
        put_dict(to, value.dict);
    ft_jinja_leave(to->run);
}

void ft_jinja_put_repr(ft_jinja_builder *to, ft_jinja_value value)
{
    char text[FT_JINJA_FLOAT_SIZE];
    switch (value.kind) {
    case FT_JINJA_MISSING:
    case FT_JINJA_UNDEFINED:
        ft_jinja_put_text(to, "Undefined");
        break;
    case FT_JINJA_NONE:
        ft_jinja_put_text(to, "None");
        break;
    case FT_JINJA_BOOL:
        ft_jinja_put_text(to, value.boolean ? "True" : "False");
        break;
    case FT_JINJA_INT:
        snprintf(text, sizeof text, "%lld", (long long) value.integer);
        ft_jinja_put_text(to, text);
        break;
    case FT_JINJA_FLOAT:
        ft_jinja_float_text(text, value.number);
        ft_jinja_put_text(to, text);
        break;
    case FT_JINJA_STRING:
        put_string_repr(to, value.string);
        break;
    case FT_JINJA_LIST:
    case FT_JINJA_DICT:
        put_container(to, value);
        break;
    default:
        ft_jinja_fail(to->run, FT_EUNSUPPORTED, "a %s is printed, which chat templates do not",
                      ft_jinja_type_name(value));
    }
}

void ft_jinja_put_value(ft_jinja_builder *to, ft_jinja_value value)
{
    if (value.kind == FT_JINJA_STRING)
        ft_jinja_put_string(to, value.string);
    else if (value.kind != FT_JINJA_UNDEFINED)
        ft_jinja_put_repr(to, value);
}

const ft_jinja_string *ft_jinja_to_string(ft_jinja_run *run, ft_jinja_value value)
{
    ft_jinja_builder text = { .run = run };
    if (value.kind == FT_JINJA_STRING)
        return value.string;
    ft_jinja_put_value(&text, value);
    return ft_jinja_built(&text);
}
