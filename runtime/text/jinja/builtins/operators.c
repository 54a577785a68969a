/*
 * operators.c - arithmetic with Python's rules: / is float, // and % round down, + joins sequences.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/text/jinja/builtins/builtin.h"

#include "kernels/math/elementary.h"
#include "runtime/text/jinja/values/text.h"

#include <math.h>
#include <string.h>

static const char *const symbols[] = {
    [FT_JINJA_ADD] = "+",        [FT_JINJA_SUB] = "-", [FT_JINJA_MUL] = "*",  [FT_JINJA_DIV] = "/",
    [FT_JINJA_FLOOR_DIV] = "//", [FT_JINJA_MOD] = "%", [FT_JINJA_POW] = "**",
};

_Noreturn static void fail_types(ft_jinja_run *run, ft_jinja_operator op, ft_jinja_value a,
                                 ft_jinja_value b)
{
    ft_jinja_require_defined(run, a);
    ft_jinja_require_defined(run, b);
    ft_jinja_fail(run, FT_EFORMAT, "unsupported operand types for %s: '%s' and '%s'", symbols[op],
                  ft_jinja_type_name(a), ft_jinja_type_name(b));
}

_Noreturn static void fail_overflow(ft_jinja_run *run, ft_jinja_operator op)
{
    ft_jinja_fail(run, FT_ELIMIT, "the result of %s does not fit 64 bits", symbols[op]);
}

/* ---- Numbers ------------------------------------------------------------------------------ */

static int64_t power(ft_jinja_run *run, int64_t base, int64_t exponent)
{
    int64_t result = 1;
    if (base == 1 || base == 0 || base == -1)
        return exponent == 0 || base == 1 ? 1 : base == 0 ? 0 : exponent % 2 == 0 ? 1 : -1;
    while (exponent-- > 0)
        if (__builtin_mul_overflow(result, base, &result))
            fail_overflow(run, FT_JINJA_POW);
    return result;
}

static int64_t floor_divide(int64_t a, int64_t b, int64_t *rest)
{
    int64_t quotient = a / b;
    *rest = a % b;
    if (*rest != 0 && (*rest < 0) != (b < 0)) {
        *rest += b;
        quotient--;
    }
    return quotient;
}

static int64_t calculate_integers(ft_jinja_run *run, ft_jinja_operator op, int64_t a, int64_t b)
{
    int64_t result = 0, rest = 0;
    bool overflow = false, divides = op == FT_JINJA_FLOOR_DIV || op == FT_JINJA_MOD;
    if (op == FT_JINJA_ADD)
        overflow = __builtin_add_overflow(a, b, &result);
    else if (op == FT_JINJA_SUB)
        overflow = __builtin_sub_overflow(a, b, &result);
    else if (op == FT_JINJA_MUL)
        overflow = __builtin_mul_overflow(a, b, &result);
    else if (op == FT_JINJA_POW)
        return power(run, a, b);
    else if (divides && b == -1) /* INT64_MIN / -1 overflows */
        overflow = op == FT_JINJA_FLOOR_DIV && __builtin_sub_overflow((int64_t) 0, a, &result);
    else
        result = floor_divide(a, b, &rest);
    if (overflow)
        fail_overflow(run, op);
    return op == FT_JINJA_MOD && b != -1 ? rest : result;
}

static double float_modulo(double a, double b)
{
    double rest = fmod(a, b);
    if (rest == 0)
        return copysign(0, b);
    return (rest < 0) != (b < 0) ? rest + b : rest;
}

static double float_floor_divide(double a, double b)
{
    double quotient = (a - float_modulo(a, b)) / b, floored = floor(quotient);
    if (quotient == 0)
        return copysign(0, a / b);
    return quotient - floored > 0.5 ? floored + 1 : floored;
}

static double calculate_floats(ft_jinja_run *run, ft_jinja_operator op, double a, double b)
{
    switch (op) {
    case FT_JINJA_ADD:
        return a + b;
    case FT_JINJA_SUB:
        return a - b;
    case FT_JINJA_MUL:
        return a * b;
    case FT_JINJA_DIV:
        return a / b;
    case FT_JINJA_FLOOR_DIV:
        return float_floor_divide(a, b);
    case FT_JINJA_MOD:
        return float_modulo(a, b);
    default:
        if ((a == 0 && b < 0) || (a < 0 && b != floor(b)))
            ft_jinja_fail(run, FT_EFORMAT, "**: the result is not a real number");
        return ft_math_pow(a, b);
    }
}

static ft_jinja_value calculate_numbers(ft_jinja_run *run, ft_jinja_operator op, ft_jinja_value a,
                                        ft_jinja_value b)
{
    int64_t i, j;
    double x = 0, y = 0;
    bool integers = ft_jinja_to_integer(a, &i) && ft_jinja_to_integer(b, &j);
    ft_jinja_to_number(a, &x);
    ft_jinja_to_number(b, &y);
    if (y == 0 && (op == FT_JINJA_DIV || op == FT_JINJA_FLOOR_DIV || op == FT_JINJA_MOD))
        ft_jinja_fail(run, FT_EFORMAT, "division by zero");
    if (integers && op != FT_JINJA_DIV && !(op == FT_JINJA_POW && j < 0))
        return ft_jinja_int(calculate_integers(run, op, i, j));
    double result = calculate_floats(run, op, x, y);
    if (isinf(result) && isfinite(x) && isfinite(y) && op == FT_JINJA_POW)
        ft_jinja_fail(run, FT_EFORMAT, "the result of ** is too large");
    return ft_jinja_float(result);
}

/* ---- Sequences ---------------------------------------------------------------------------- */

static ft_jinja_value join_strings(ft_jinja_run *run, const ft_jinja_string *a,
                                   const ft_jinja_string *b)
{
    ft_jinja_builder text = { .run = run };
    if (a->bytes == 0 || b->bytes == 0)
        return ft_jinja_text(a->bytes == 0 ? b : a);
    ft_jinja_put_string(&text, a);
    ft_jinja_put_string(&text, b);
    return ft_jinja_text(ft_jinja_built(&text));
}

static ft_jinja_value join_lists(ft_jinja_run *run, const ft_jinja_list *a, const ft_jinja_list *b)
{
    ft_jinja_list *list = ft_jinja_list_new(run, a->type, a->count + b->count);
    if (a->count > 0)
        memcpy(list->item, a->item, a->count * sizeof *a->item);
    if (b->count > 0)
        memcpy(list->item + a->count, b->item, b->count * sizeof *b->item);
    list->count = a->count + b->count;
    ft_jinja_spend(run, list->count / 8);
    return ft_jinja_list_value(list);
}

static bool can_repeat(ft_jinja_value value)
{
    return value.kind == FT_JINJA_STRING ||
           (value.kind == FT_JINJA_LIST && value.list->type <= FT_JINJA_TUPLE);
}

ft_jinja_value ft_jinja_calculate(ft_jinja_run *run, ft_jinja_operator op, ft_jinja_value a,
                                  ft_jinja_value b)
{
    int64_t count;
    double number;
    if (ft_jinja_to_number(a, &number) && ft_jinja_to_number(b, &number))
        return calculate_numbers(run, op, a, b);
    if (op == FT_JINJA_MOD && a.kind == FT_JINJA_STRING)
        return ft_jinja_text(ft_jinja_percent(run, a.string, b));
    if (op == FT_JINJA_MUL && can_repeat(a) && ft_jinja_to_integer(b, &count))
        return ft_jinja_repeat(run, a, count);
    if (op == FT_JINJA_MUL && can_repeat(b) && ft_jinja_to_integer(a, &count))
        return ft_jinja_repeat(run, b, count);
    if (op != FT_JINJA_ADD || a.kind != b.kind || !can_repeat(a) || !can_repeat(b))
        fail_types(run, op, a, b);
    if (a.kind == FT_JINJA_STRING)
        return join_strings(run, a.string, b.string);
    if (a.list->type != b.list->type)
        fail_types(run, op, a, b);
    return join_lists(run, a.list, b.list);
}

ft_jinja_value ft_jinja_negate(ft_jinja_run *run, ft_jinja_value value)
{
    ft_jinja_require_defined(run, value);
    if (value.kind == FT_JINJA_FLOAT)
        return ft_jinja_float(-value.number);
    return ft_jinja_calculate(run, FT_JINJA_SUB, ft_jinja_int(0), value);
}
