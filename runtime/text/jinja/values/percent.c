/*
 * percent.c - Python's operator % of strings: "%s has %d" % ("x", 3).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/text/jinja/values/text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    ft_jinja_builder text;
    const ft_jinja_string *format;
    size_t at; /* in the format */
    ft_jinja_value values;
    size_t used; /* values of a tuple */
} formatter;

/* %[(name)][flags][width][.precision]conversion */
typedef struct {
    char flags[5];        /* without repetitions */
    int width, precision; /* precision -1: none */
    char conversion;
    ft_jinja_value value;
} directive;

static char peek(const formatter *f)
{
    return f->at < f->format->bytes ? f->format->data[f->at] : '\0';
}

static ft_jinja_value next_value(formatter *f)
{
    bool tuple = ft_jinja_is_list(f->values, FT_JINJA_TUPLE);
    size_t count = tuple ? f->values.list->count : 1;
    if (f->used >= count)
        ft_jinja_fail(f->text.run, FT_EFORMAT, "not enough arguments for format string");
    f->used++;
    return tuple ? f->values.list->item[f->used - 1] : f->values;
}

static ft_jinja_value named_value(formatter *f)
{
    size_t start = f->at + 1;
    const char *close = memchr(f->format->data + start, ')', f->format->bytes - start);
    if (close == NULL || f->values.kind != FT_JINJA_DICT)
        ft_jinja_fail(f->text.run, FT_EFORMAT, "%s",
                      close == NULL ? "incomplete format key" : "format requires a mapping");
    f->at = (size_t) (close - f->format->data) + 1;
    const ft_jinja_string *name = ft_jinja_substring(f->text.run, f->format, start, f->at - 1);
    ft_jinja_value *found = ft_jinja_dict_get(f->text.run, f->values.dict, ft_jinja_text(name));
    if (found == NULL)
        ft_jinja_fail(f->text.run, FT_EFORMAT, "the format's key '%.*s' is missing",
                      (int) name->bytes, name->data);
    return *found;
}

static int read_number(formatter *f)
{
    int number = 0;
    while (peek(f) >= '0' && peek(f) <= '9') {
        number = 10 * number + (peek(f) - '0');
        f->at++;
        if (number > 10000)
            ft_jinja_fail(f->text.run, FT_ELIMIT, "a format has a width above 10000");
    }
    return number;
}

/* Read what follows a percent sign. */
static directive read_directive(formatter *f)
{
    directive d = { .precision = -1 };
    bool named = peek(f) == '(';
    if (named)
        d.value = named_value(f);
    for (size_t n = 0; peek(f) != '\0' && strchr("-+ 0", peek(f)) != NULL; f->at++)
        if (strchr(d.flags, peek(f)) == NULL)
            d.flags[n++] = peek(f);
    d.width = read_number(f);
    if (peek(f) == '.') {
        f->at++;
        d.precision = read_number(f);
    }
    d.conversion = peek(f);
    f->at++;
    if (d.conversion != '%' && !named)
        d.value = next_value(f);
    return d;
}

static void put_padded(formatter *f, const directive *d, const ft_jinja_string *string)
{
    size_t length = ft_jinja_string_length(string);
    size_t shown =
        d->precision >= 0 && (size_t) d->precision < length ? (size_t) d->precision : length;
    size_t end = ft_jinja_string_offset(string, shown);
    bool left = strchr(d->flags, '-') != NULL;
    if (left)
        ft_jinja_put_part(&f->text, string, 0, end);
    for (size_t i = shown; i < (size_t) d->width; i++)
        ft_jinja_put_text(&f->text, " ");
    if (!left)
        ft_jinja_put_part(&f->text, string, 0, end);
}

/* A number with its sign, padded with spaces or, behind the sign, with zeros. */
static void put_number(formatter *f, const directive *d, const char *digits, bool negative)
{
    bool zeros = strchr(d->flags, '0') != NULL && strchr(d->flags, '-') == NULL;
    const char *sign = negative                        ? "-"
                       : strchr(d->flags, '+') != NULL ? "+"
                       : strchr(d->flags, ' ') != NULL ? " "
                                                       : "";
    ft_jinja_builder text = { .run = f->text.run };
    directive padded = *d;
    ft_jinja_put_text(&text, sign);
    for (size_t i = strlen(sign) + strlen(digits); zeros && i < (size_t) d->width; i++)
        ft_jinja_put_text(&text, "0");
    ft_jinja_put_text(&text, digits);
    padded.precision = -1;
    put_padded(f, &padded, ft_jinja_built(&text));
}

static void put_integer(formatter *f, const directive *d)
{
    char text[10240];
    int64_t integer;
    bool decimal = strchr("diu", d->conversion) != NULL;
    if (decimal && d->value.kind == FT_JINJA_FLOAT && fabs(d->value.number) < 9e18)
        integer = (int64_t) d->value.number;
    else if (!ft_jinja_to_integer(d->value, &integer))
        ft_jinja_fail(f->text.run, FT_EFORMAT, "%%%c: found a value of type %s, expected a number",
                      d->conversion, ft_jinja_type_name(d->value));
    unsigned long long magnitude =
        integer < 0 ? -(unsigned long long) integer : (unsigned long long) integer;
    int digits = d->precision < 0 ? 1 : d->precision;
    if (d->conversion == 'x')
        snprintf(text, sizeof text, "%.*llx", digits, magnitude);
    else if (d->conversion == 'X')
        snprintf(text, sizeof text, "%.*llX", digits, magnitude);
    else if (d->conversion == 'o')
        snprintf(text, sizeof text, "%.*llo", digits, magnitude);
    else
        snprintf(text, sizeof text, "%.*llu", digits, magnitude);
    put_number(f, d, text, integer < 0);
}

static void put_float(formatter *f, const directive *d)
{
    char text[10240 + 512];
    double number;
    int digits = d->precision < 0 ? 6 : d->precision;
    if (!ft_jinja_to_number(d->value, &number))
        ft_jinja_fail(f->text.run, FT_EFORMAT, "%%%c: found a value of type %s, expected a number",
                      d->conversion, ft_jinja_type_name(d->value));
    double magnitude = fabs(number);
    if (d->conversion == 'f' || d->conversion == 'F')
        snprintf(text, sizeof text, "%.*f", digits, magnitude);
    else if (d->conversion == 'e')
        snprintf(text, sizeof text, "%.*e", digits, magnitude);
    else if (d->conversion == 'E')
        snprintf(text, sizeof text, "%.*E", digits, magnitude);
    else if (d->conversion == 'g')
        snprintf(text, sizeof text, "%.*g", digits, magnitude);
    else
        snprintf(text, sizeof text, "%.*G", digits, magnitude);
    put_number(f, d, text, signbit(number));
}

static void put_directive(formatter *f, const directive *d)
{
    ft_jinja_builder repr = { .run = f->text.run };
    switch (d->conversion) {
    case '%':
        ft_jinja_put_text(&f->text, "%");
        break;
    case 's':
        put_padded(f, d, ft_jinja_to_string(f->text.run, d->value));
        break;
    case 'r':
        ft_jinja_put_repr(&repr, d->value);
        put_padded(f, d, ft_jinja_built(&repr));
        break;
    case 'd':
    case 'i':
    case 'u':
    case 'x':
    case 'X':
    case 'o':
        put_integer(f, d);
        break;
    case 'e':
    case 'E':
    case 'f':
    case 'F':
    case 'g':
    case 'G':
        put_float(f, d);
        break;
    default:
        ft_jinja_fail(f->text.run, FT_EUNSUPPORTED,
                      "the format %%%c is not supported in chat templates",
                      d->conversion >= ' ' && d->conversion <= '~' ? d->conversion : '?');
    }
}

const ft_jinja_string *ft_jinja_percent(ft_jinja_run *run, const ft_jinja_string *format,
                                        ft_jinja_value values)
{
    formatter f = { .text = { .run = run }, .format = format, .values = values };
    while (f.at < format->bytes) {
        const char *percent = memchr(format->data + f.at, '%', format->bytes - f.at);
        size_t plain = percent == NULL ? format->bytes : (size_t) (percent - format->data);
        ft_jinja_put_part(&f.text, format, f.at, plain);
        f.at = plain + 1;
        if (percent == NULL)
            break;
        ft_jinja_spend(run, 1);
        directive d = read_directive(&f);
        put_directive(&f, &d);
    }
    bool tuple = ft_jinja_is_list(values, FT_JINJA_TUPLE);
    bool mapping = values.kind == FT_JINJA_DICT || ft_jinja_is_list(values, FT_JINJA_PLAIN_LIST);
    if (tuple ? f.used < values.list->count : f.used == 0 && !mapping)
        ft_jinja_fail(run, FT_EFORMAT, "not all arguments converted during string formatting");
    return ft_jinja_built(&f.text);
}
