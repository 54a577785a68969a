/*
 * macro.c - calls of macros, whose value is the text of their statements.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/text/jinja/interpreter.h"

#include <string.h>

const ft_jinja_string *ft_jinja_capture(ft_jinja_interpreter *in, const ft_jinja_node *statements,
                                        ft_jinja_scope *outer)
{
    ft_jinja_builder text = { .run = &in->run }, *before_out = in->out;
    ft_jinja_scope *before = ft_jinja_open_scope(in, outer);
    in->out = &text;
    (void) in->execute(in, statements);
    in->out = before_out;
    in->scope = before;
    return ft_jinja_built(&text);
}

ft_jinja_value ft_jinja_macro_value(ft_jinja_interpreter *in, const ft_jinja_node *node)
{
    ft_jinja_macro *macro = FT_JINJA_NEW(&in->run, ft_jinja_macro);
    *macro = (ft_jinja_macro){ node, in->scope };
    return (ft_jinja_value){ FT_JINJA_MACRO, { .macro = macro } };
}

/* The argument for a parameter, by its place or its name; MISSING: none. */
static ft_jinja_value find_argument(ft_jinja_interpreter *in, const ft_jinja_node *parameter,
                                    size_t index, const ft_jinja_args *args, size_t *used)
{
    ft_jinja_value value = { .kind = FT_JINJA_MISSING };
    if (index < args->count)
        value = args->value[index];
    for (size_t i = 0; i < args->keywords; i++) {
        if (strcmp(args->keyword[i].name, parameter->name) != 0)
            continue;
        if (value.kind != FT_JINJA_MISSING)
            ft_jinja_fail(&in->run, FT_EFORMAT, "a macro gets two values for %.80s",
                          parameter->name);
        value = args->keyword[i].value;
        *used += 1;
    }
    return value;
}

/* Assign the arguments to the parameters in the scope of the call; defaults see those before. */
static void bind(ft_jinja_interpreter *in, const ft_jinja_node *macro, const ft_jinja_args *args)
{
    size_t index = 0, used = 0;
    for (const ft_jinja_node *p = macro->list; p != NULL; p = p->next, index++) {
        ft_jinja_value value = find_argument(in, p, index, args, &used);
        if (value.kind == FT_JINJA_MISSING && p->a != NULL)
            value = ft_jinja_evaluate(in, p->a);
        else if (value.kind == FT_JINJA_MISSING)
            value = ft_jinja_undefined(&in->run, "parameter '%.80s' was not provided", p->name);
        ft_jinja_assign(in, p->symbol, value);
    }
    if (args->count > index)
        ft_jinja_fail(&in->run, FT_EFORMAT, "macro '%.80s' takes not more than %zu arguments",
                      macro->name, index);
    if (args->keywords > used)
        ft_jinja_fail(&in->run, FT_EFORMAT, "macro '%.80s' takes no keyword argument like '%.80s'",
                      macro->name, args->keyword[0].name);
}

ft_jinja_value ft_jinja_call_macro(ft_jinja_interpreter *in, const ft_jinja_macro *macro,
                                   const ft_jinja_args *args, ft_jinja_value caller)
{
    ft_jinja_enter(&in->run);
    ft_jinja_scope *before = ft_jinja_open_scope(in, macro->scope);
    bind(in, macro->node, args);
    if (caller.kind != FT_JINJA_MISSING)
        ft_jinja_assign(in, in->template->caller, caller);
    const ft_jinja_string *text = ft_jinja_capture(in, macro->node->body, in->scope);
    in->scope = before;
    ft_jinja_leave(&in->run);
    return ft_jinja_text(text);
}
