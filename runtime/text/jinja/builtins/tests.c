/*
 * tests.c - the tests of jinja2: "x is defined".
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/text/jinja/builtins/builtin.h"

#include "runtime/mem.h"
#include "runtime/text/jinja/values/text.h"

#define TEST(name, condition)                                                                      \
    static ft_jinja_value name(ft_jinja_run *run, const ft_jinja_call *call)                       \
    {                                                                                              \
        const ft_jinja_value self = call->self, other = call->arg[0];                              \
        (void) run;                                                                                \
        (void) self;                                                                               \
        (void) other;                                                                              \
        return ft_jinja_bool(condition);                                                           \
    }

/* ---- Types -------------------------------------------------------------------------------- */

static bool is_number(ft_jinja_value value)
{
    double number;
    return ft_jinja_to_number(value, &number);
}

/* Whether it has a length and an index. */
static bool is_sequence(ft_jinja_value value)
{
    return value.kind == FT_JINJA_UNDEFINED || value.kind == FT_JINJA_STRING ||
           value.kind == FT_JINJA_DICT ||
           (value.kind == FT_JINJA_LIST && value.list->type <= FT_JINJA_RANGE);
}

static bool is_iterable(ft_jinja_value value)
{
    return is_sequence(value) || value.kind == FT_JINJA_LIST;
}

static bool is_callable(ft_jinja_value value)
{
    return value.kind == FT_JINJA_METHOD || value.kind == FT_JINJA_FUNCTION ||
           value.kind == FT_JINJA_MACRO;
}

TEST(defined, self.kind != FT_JINJA_UNDEFINED)
TEST(undefined, self.kind == FT_JINJA_UNDEFINED)
TEST(none, self.kind == FT_JINJA_NONE)
TEST(boolean, self.kind == FT_JINJA_BOOL)
TEST(is_true, self.kind == FT_JINJA_BOOL && self.boolean)
TEST(is_false, self.kind == FT_JINJA_BOOL && !self.boolean)
TEST(integer, self.kind == FT_JINJA_INT)
TEST(is_float, self.kind == FT_JINJA_FLOAT)
TEST(number, is_number(self))
TEST(string, self.kind == FT_JINJA_STRING)
TEST(mapping, self.kind == FT_JINJA_DICT)
TEST(sequence, is_sequence(self))
TEST(iterable, is_iterable(self))
TEST(callable, is_callable(self))

/* ---- Numbers ------------------------------------------------------------------------------ */

static bool divides(ft_jinja_run *run, ft_jinja_value value, ft_jinja_value by)
{
    ft_jinja_value rest = ft_jinja_calculate(run, FT_JINJA_MOD, value, by);
    return ft_jinja_equal(run, rest, ft_jinja_int(0));
}

static bool is_odd(ft_jinja_run *run, ft_jinja_value value)
{
    ft_jinja_value rest = ft_jinja_calculate(run, FT_JINJA_MOD, value, ft_jinja_int(2));
    return ft_jinja_equal(run, rest, ft_jinja_int(1));
}

TEST(even, divides(run, self, ft_jinja_int(2)))
TEST(odd, is_odd(run, self))
TEST(divisibleby, divides(run, self, other))

/* ---- Comparisons -------------------------------------------------------------------------- */

/* Whether both are the same object; numbers and strings are if they are equal. */
static bool is_same(ft_jinja_run *run, ft_jinja_value a, ft_jinja_value b)
{
    if (a.kind != b.kind)
        return false;
    return a.kind == FT_JINJA_LIST || a.kind == FT_JINJA_DICT ? a.list == b.list
                                                              : ft_jinja_equal(run, a, b);
}

TEST(eq, ft_jinja_equal(run, self, other))
TEST(ne, !ft_jinja_equal(run, self, other))
TEST(lt, ft_jinja_less(run, self, other, false))
TEST(le, ft_jinja_less(run, self, other, true))
TEST(gt, ft_jinja_less(run, other, self, false))
TEST(ge, ft_jinja_less(run, other, self, true))
TEST(in, ft_jinja_contains(run, other, self))
TEST(sameas, is_same(run, self, other))

/* ---- Letter case -------------------------------------------------------------------------- */

/* islower() or isupper() of the text of a value. */
static bool has_case(ft_jinja_run *run, ft_jinja_value value, const char *method)
{
    static const ft_jinja_args none = { 0 };
    ft_jinja_value text = ft_jinja_text(ft_jinja_to_string(run, value));
    return ft_jinja_invoke(run, ft_jinja_find_method(FT_JINJA_STRING, method), text, &none).boolean;
}

TEST(lower, has_case(run, self, "islower"))
TEST(upper, has_case(run, self, "isupper"))

const ft_jinja_builtin *ft_jinja_find_test(const char *name, size_t bytes)
{
    static const ft_jinja_builtin table[] = {
        { "!=", ne, "other", 1 },
        { "<", lt, "other", 1 },
        { "<=", le, "other", 1 },
        { "==", eq, "other", 1 },
        { ">", gt, "other", 1 },
        { ">=", ge, "other", 1 },
        { "boolean", boolean, "", 0 },
        { "callable", callable, "", 0 },
        { "defined", defined, "", 0 },
        { "divisibleby", divisibleby, "num", 1 },
        { "eq", eq, "other", 1 },
        { "equalto", eq, "other", 1 },
        { "even", even, "", 0 },
        { "false", is_false, "", 0 },
        { "float", is_float, "", 0 },
        { "ge", ge, "other", 1 },
        { "greaterthan", gt, "other", 1 },
        { "gt", gt, "other", 1 },
        { "in", in, "seq", 1 },
        { "integer", integer, "", 0 },
        { "iterable", iterable, "", 0 },
        { "le", le, "other", 1 },
        { "lessthan", lt, "other", 1 },
        { "lower", lower, "", 0 },
        { "lt", lt, "other", 1 },
        { "mapping", mapping, "", 0 },
        { "ne", ne, "other", 1 },
        { "none", none, "", 0 },
        { "number", number, "", 0 },
        { "odd", odd, "", 0 },
        { "sameas", sameas, "other", 1 },
        { "sequence", sequence, "", 0 },
        { "string", string, "", 0 },
        { "true", is_true, "", 0 },
        { "undefined", undefined, "", 0 },
        { "upper", upper, "", 0 },
    };
    return ft_jinja_find(table, FT_COUNT(table), name, bytes);
}
