/*
 * interpreter.h - the state of a rendering, and the parts of the interpreter.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_TEXT_JINJA_INTERPRETER_H
#define FT_RUNTIME_TEXT_JINJA_INTERPRETER_H

#include "runtime/text/jinja/node.h"
#include "runtime/text/jinja/values/text.h"

/* The variables of a loop's turn, a macro call or a block; looked up from the inside out. */
typedef struct ft_jinja_scope {
    struct ft_jinja_scope *outer; /* NULL: the template itself */
    struct ft_jinja_variable_slot *first;
} ft_jinja_scope;

typedef struct ft_jinja_variable_slot {
    struct ft_jinja_variable_slot *next;
    uint32_t symbol;
    ft_jinja_value value;
} ft_jinja_variable_slot;

typedef enum ft_jinja_flow { FT_JINJA_NEXT, FT_JINJA_BREAK, FT_JINJA_CONTINUE } ft_jinja_flow;

typedef struct ft_jinja_interpreter ft_jinja_interpreter;
struct ft_jinja_interpreter {
    ft_jinja_run run;
    const struct ft_jinja_template *template;
    ft_jinja_value *global; /* by symbol: variables of the template and of the caller */
    ft_jinja_scope *scope;  /* the innermost; NULL: none */
    ft_jinja_builder *out;  /* where text goes */

    /* ft_jinja_call_macro() for expressions, and ft_jinja_execute() for macros and loops. */
    ft_jinja_value (*call_macro)(ft_jinja_interpreter *in, const struct ft_jinja_macro *macro,
                                 const ft_jinja_args *args, ft_jinja_value caller);
    ft_jinja_flow (*execute)(ft_jinja_interpreter *in, const ft_jinja_node *statements);
};

/* A macro sees the variables of where it is defined. */
typedef struct ft_jinja_macro {
    const ft_jinja_node *node;
    ft_jinja_scope *scope;
} ft_jinja_macro;

/* ---- Variables ---------------------------------------------------------------------------- */

/* The value of a name; undefined if it has none. */
ft_jinja_value ft_jinja_lookup(ft_jinja_interpreter *in, const ft_jinja_node *name);
void ft_jinja_assign(ft_jinja_interpreter *in, uint32_t symbol, ft_jinja_value value);

/* Assign to a name, to several, or to an attribute of a namespace. */
void ft_jinja_assign_target(ft_jinja_interpreter *in, const ft_jinja_node *target,
                            ft_jinja_value value);

/* Open a scope inside `outer`, and return the current one, which is put back afterwards. */
ft_jinja_scope *ft_jinja_open_scope(ft_jinja_interpreter *in, ft_jinja_scope *outer);

/* ---- Evaluation --------------------------------------------------------------------------- */

ft_jinja_value ft_jinja_evaluate(ft_jinja_interpreter *in, const ft_jinja_node *node);

/* The filters of a block, applied to its text. */
ft_jinja_value ft_jinja_apply_filters(ft_jinja_interpreter *in, const ft_jinja_node *filters,
                                      ft_jinja_value text);

/* The values of a list of arguments. */
ft_jinja_args ft_jinja_evaluate_arguments(ft_jinja_interpreter *in, const ft_jinja_node *list);

/* Call a macro; `caller` is MISSING unless a call block calls it. */
ft_jinja_value ft_jinja_call_macro(ft_jinja_interpreter *in, const ft_jinja_macro *macro,
                                   const ft_jinja_args *args, ft_jinja_value caller);
ft_jinja_value ft_jinja_macro_value(ft_jinja_interpreter *in, const ft_jinja_node *node);

/* Call what a value is. */
ft_jinja_value ft_jinja_call_value(ft_jinja_interpreter *in, ft_jinja_value callee,
                                   const ft_jinja_args *args);

/* ---- Statements --------------------------------------------------------------------------- */

ft_jinja_flow ft_jinja_execute(ft_jinja_interpreter *in, const ft_jinja_node *statements);
ft_jinja_flow ft_jinja_execute_for(ft_jinja_interpreter *in, const ft_jinja_node *node);

/* The text of statements, in a scope inside `outer`. */
const ft_jinja_string *ft_jinja_capture(ft_jinja_interpreter *in, const ft_jinja_node *statements,
                                        ft_jinja_scope *outer);

#endif
