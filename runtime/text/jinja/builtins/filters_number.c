/*
 * filters_number.c - filters that make a number, and defaults.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/text/jinja/builtins/filters.h"

#include "kernels/math/elementary.h"
#include "runtime/mem.h"
#include "runtime/text/jinja/values/text.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static ft_jinja_value absolute(ft_jinja_run *run, const ft_jinja_call *call)
{
    double number;
    ft_jinja_require_defined(run, call->self);
    if (!ft_jinja_to_number(call->self, &number))
        ft_jinja_fail(run, FT_EFORMAT, "abs: found a value of type %s, expected a number",
                      ft_jinja_type_name(call->self));
    return number < 0 ? ft_jinja_negate(run, call->self)
                      : ft_jinja_calculate(run, FT_JINJA_ADD, call->self, ft_jinja_int(0));
}

/* ---- int and float of texts --------------------------------------------------------------- */

/*
 * The text of a number for strtod() and strtoll(), or NULL: without white space around it and
 * underscores between digits, and of characters that numbers have.
 */
static const char *number_text(ft_jinja_run *run, const ft_jinja_string *string)
{
    const ft_jinja_string *stripped = ft_jinja_strip(run, string, NULL, true, true);
    char *text = ft_jinja_alloc(run, stripped->bytes + 1, 1);
    size_t bytes = 0;
    for (size_t i = 0; i < stripped->bytes; i++) {
        char c = stripped->data[i];
        bool between = c == '_' && i > 0 && i + 1 < stripped->bytes &&
                       isalnum((unsigned char) stripped->data[i - 1]) &&
                       isalnum((unsigned char) stripped->data[i + 1]);
        if (between)
            continue;
        if (!isalnum((unsigned char) c) && strchr("+-.", c) == NULL)
            return NULL;
        text[bytes++] = c;
    }
    text[bytes] = '\0';
    return bytes > 0 ? text : NULL;
}

static bool read_float(ft_jinja_run *run, const ft_jinja_string *string, double *out)
{
    char *end;
    const char *text = number_text(run, string);
    if (text == NULL || strpbrk(text, "xXpP") != NULL)
        return false;
    *out = strtod(text, &end);
    return *end == '\0' && end > text;
}

/* Whether the prefix "0x" or so fits the base; base 0 is not one of strtoll() here. */
static bool read_integer(ft_jinja_run *run, const ft_jinja_string *string, int base, int64_t *out)
{
    char *end;
    const char *text = number_text(run, string);
    if (text == NULL)
        return false;
    bool binary = base == 2 || base == 8;
    size_t sign = strspn(text, "+-");
    if (binary && text[sign] == '0' &&
        tolower((unsigned char) text[sign + 1]) == (base == 2 ? 'b' : 'o'))
        text += sign + 2;
    errno = 0;
    long long number = strtoll(text, &end, base);
    if (errno == ERANGE)
        ft_jinja_fail(run, FT_ELIMIT, "int: the number does not fit 64 bits");
    *out = number;
    return *end == '\0' && end > text;
}

static ft_jinja_value truncated(ft_jinja_run *run, double number, ft_jinja_value otherwise)
{
    if (!isfinite(number))
        return otherwise;
    if (fabs(number) >= 9.2e18)
        ft_jinja_fail(run, FT_ELIMIT, "int: the number does not fit 64 bits");
    return ft_jinja_int((int64_t) number);
}

static ft_jinja_value to_int(ft_jinja_run *run, const ft_jinja_call *call)
{
    double number;
    int64_t integer;
    ft_jinja_value otherwise =
        call->arg[0].kind == FT_JINJA_MISSING ? ft_jinja_int(0) : call->arg[0];
    int64_t base = ft_jinja_arg_integer(run, call->arg[1], 10);
    ft_jinja_require_defined(run, call->self);
    if (base < 2 || base > 36)
        ft_jinja_fail(run, FT_EFORMAT, "int: the base is %lld, expected 2 to 36", (long long) base);
    if (ft_jinja_to_integer(call->self, &integer))
        return ft_jinja_int(integer);
    if (ft_jinja_to_number(call->self, &number))
        return truncated(run, number, otherwise);
    if (call->self.kind != FT_JINJA_STRING)
        return otherwise;
    if (read_integer(run, call->self.string, (int) base, &integer))
        return ft_jinja_int(integer);
    return read_float(run, call->self.string, &number) ? truncated(run, number, otherwise)
                                                       : otherwise;
}

static ft_jinja_value to_float(ft_jinja_run *run, const ft_jinja_call *call)
{
    double number;
    ft_jinja_require_defined(run, call->self);
    if (ft_jinja_to_number(call->self, &number))
        return ft_jinja_float(number);
    if (call->self.kind == FT_JINJA_STRING && read_float(run, call->self.string, &number))
        return ft_jinja_float(number);
    return call->arg[0].kind == FT_JINJA_MISSING ? ft_jinja_float(0) : call->arg[0];
}

/* ---- round -------------------------------------------------------------------------------- */

static ft_jinja_value round_number(ft_jinja_run *run, const ft_jinja_call *call)
{
    char text[400];
    double number;
    int64_t precision = ft_jinja_arg_integer(run, call->arg[0], 0);
    const ft_jinja_string *method = ft_jinja_arg_string(run, call->arg[1]);
    if (!ft_jinja_to_number(call->self, &number) || precision < 0 || precision > 20)
        ft_jinja_fail(run, FT_EFORMAT, "round: expected a number and a precision from 0 to 20");
    double scale = ft_math_pow(10, (double) precision);
    if (method != NULL && ft_jinja_string_is(method, "ceil"))
        return ft_jinja_float(ceil(number * scale) / scale);
    if (method != NULL && ft_jinja_string_is(method, "floor"))
        return ft_jinja_float(floor(number * scale) / scale);
    if (method != NULL && !ft_jinja_string_is(method, "common"))
        ft_jinja_fail(run, FT_EFORMAT, "round: the method must be common, ceil or floor");
    if (call->self.kind != FT_JINJA_FLOAT || !isfinite(number))
        return call->self;
    snprintf(text, sizeof text, "%.*f", (int) precision, number);
    return ft_jinja_float(strtod(text, NULL));
}

/* ---- length, default ---------------------------------------------------------------------- */

static ft_jinja_value length(ft_jinja_run *run, const ft_jinja_call *call)
{
    size_t length;
    if (!ft_jinja_length(call->self, &length))
        ft_jinja_fail(run, FT_EFORMAT, "object of type '%s' has no length",
                      ft_jinja_type_name(call->self));
    if (call->self.kind == FT_JINJA_STRING)
        ft_jinja_spend(run, call->self.string->bytes / 64);
    return ft_jinja_int((int64_t) length);
}

static ft_jinja_value default_value(ft_jinja_run *run, const ft_jinja_call *call)
{
    bool boolean = ft_jinja_arg_truth(call->arg[1], false);
    bool use = call->self.kind == FT_JINJA_UNDEFINED || (boolean && !ft_jinja_truth(call->self));
    if (!use)
        return call->self;
    return call->arg[0].kind == FT_JINJA_MISSING ? ft_jinja_literal(run, "") : call->arg[0];
}

const ft_jinja_builtin *ft_jinja_find_number_filter(const char *name, size_t bytes)
{
    static const ft_jinja_builtin table[] = {
        { "abs", absolute, "", 0 },
        { "count", length, "", 0 },
        { "d", default_value, "default_value boolean", 0 },
        { "default", default_value, "default_value boolean", 0 },
        { "float", to_float, "default", 0 },
        { "int", to_int, "default base", 0 },
        { "length", length, "", 0 },
        { "round", round_number, "precision method", 0 },
    };
    return ft_jinja_find(table, FT_COUNT(table), name, bytes);
}
