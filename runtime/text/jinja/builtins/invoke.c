/*
 * invoke.c - assign the arguments of a call to the parameters of a built-in function.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/text/jinja/builtins/builtin.h"

#include <string.h>

const ft_jinja_builtin *ft_jinja_find(const ft_jinja_builtin *table, size_t count, const char *name,
                                      size_t bytes)
{
    for (size_t i = 0; i < count; i++)
        if (strlen(table[i].name) == bytes && memcmp(table[i].name, name, bytes) == 0)
            return &table[i];
    return NULL;
}

/* ---- Parameters --------------------------------------------------------------------------- */

static size_t count_parameters(const char *names)
{
    size_t count = names[0] != '\0';
    for (const char *at = names; *at != '\0'; at++)
        count += *at == ' ';
    return count;
}

/* The number of the parameter with this name; SIZE_MAX: none. */
static size_t find_parameter(const char *names, const char *name)
{
    size_t length = strlen(name), index = 0;
    for (const char *at = names; *at != '\0'; index++) {
        const char *end = strchr(at, ' ');
        size_t bytes = end == NULL ? strlen(at) : (size_t) (end - at);
        if (bytes == length && memcmp(at, name, bytes) == 0)
            return index;
        at += bytes + (end != NULL);
    }
    return SIZE_MAX;
}

static void bind_keywords(ft_jinja_run *run, const ft_jinja_builtin *builtin, ft_jinja_call *call)
{
    for (size_t i = 0; i < call->all->keywords; i++) {
        const char *name = call->all->keyword[i].name;
        size_t index = find_parameter(builtin->parameters, name);
        if (index == SIZE_MAX)
            ft_jinja_fail(run, FT_EFORMAT, "%s() has no parameter %s", builtin->name, name);
        if (call->arg[index].kind != FT_JINJA_MISSING)
            ft_jinja_fail(run, FT_EFORMAT, "%s() gets two values for %s", builtin->name, name);
        call->arg[index] = call->all->keyword[i].value;
    }
}

static void bind(ft_jinja_run *run, const ft_jinja_builtin *builtin, ft_jinja_call *call)
{
    size_t parameters = count_parameters(builtin->parameters);
    if (call->all->count > parameters)
        ft_jinja_fail(run, FT_EFORMAT, "%s() takes at most %zu arguments, found %zu", builtin->name,
                      parameters, call->all->count);
    for (size_t i = 0; i < call->all->count; i++)
        call->arg[i] = call->all->value[i];
    bind_keywords(run, builtin, call);
    for (size_t i = 0; i < builtin->required; i++)
        if (call->arg[i].kind == FT_JINJA_MISSING)
            ft_jinja_fail(run, FT_EFORMAT, "%s() needs %zu arguments", builtin->name,
                          builtin->required);
}

ft_jinja_value ft_jinja_invoke(ft_jinja_run *run, const ft_jinja_builtin *builtin,
                               ft_jinja_value self, const ft_jinja_args *args)
{
    ft_jinja_call call = { .self = self, .all = args };
    ft_jinja_spend(run, 1);
    if (builtin->function == NULL)
        ft_jinja_fail_unknown(run, "function", builtin->name, strlen(builtin->name));
    if (strcmp(builtin->parameters, "*") != 0)
        bind(run, builtin, &call);
    return builtin->function(run, &call);
}

/* ---- Arguments ---------------------------------------------------------------------------- */

bool ft_jinja_arg_truth(ft_jinja_value arg, bool otherwise)
{
    return arg.kind == FT_JINJA_MISSING ? otherwise : ft_jinja_truth(arg);
}

int64_t ft_jinja_arg_integer(ft_jinja_run *run, ft_jinja_value arg, int64_t otherwise)
{
    int64_t integer = otherwise;
    if (arg.kind == FT_JINJA_MISSING || arg.kind == FT_JINJA_NONE)
        return otherwise;
    ft_jinja_require_defined(run, arg);
    if (!ft_jinja_to_integer(arg, &integer))
        ft_jinja_fail(run, FT_EFORMAT, "an argument is of type %s, expected an integer",
                      ft_jinja_type_name(arg));
    return integer;
}

const ft_jinja_string *ft_jinja_arg_string(ft_jinja_run *run, ft_jinja_value arg)
{
    if (arg.kind == FT_JINJA_MISSING || arg.kind == FT_JINJA_NONE)
        return NULL;
    ft_jinja_require_defined(run, arg);
    if (arg.kind != FT_JINJA_STRING)
        ft_jinja_fail(run, FT_EFORMAT, "an argument is of type %s, expected a string",
                      ft_jinja_type_name(arg));
    return arg.string;
}
