/*
 * builtin.h - filters, tests, functions and methods: C functions with a list of parameters.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_TEXT_JINJA_BUILTINS_BUILTIN_H
#define FT_RUNTIME_TEXT_JINJA_BUILTINS_BUILTIN_H

#include "runtime/text/jinja/values/value.h"

enum { FT_JINJA_MAX_PARAMETERS = 5 };

typedef struct ft_jinja_keyword {
    const char *name;
    ft_jinja_value value;
} ft_jinja_keyword;

/* The arguments of a call as they are written. */
typedef struct ft_jinja_args {
    const ft_jinja_value *value; /* [count] */
    size_t count;
    const ft_jinja_keyword *keyword; /* [keywords] */
    size_t keywords;
} ft_jinja_args;

typedef struct ft_jinja_call {
    ft_jinja_value self;                         /* what is filtered, tested, or has the method */
    ft_jinja_value arg[FT_JINJA_MAX_PARAMETERS]; /* in the order of the parameters; or MISSING */
    const ft_jinja_args *all;
} ft_jinja_call;

typedef ft_jinja_value (*ft_jinja_function)(ft_jinja_run *run, const ft_jinja_call *call);

typedef struct ft_jinja_builtin {
    const char *name;
    ft_jinja_function function;
    const char *parameters; /* names with spaces between; "*": any arguments, which are in `all` */
    size_t required;        /* the first parameters that have no default */
} ft_jinja_builtin;

/* A method and what it belongs to. */
typedef struct ft_jinja_method {
    ft_jinja_value self;
    const ft_jinja_builtin *builtin;
} ft_jinja_method;

/* ---- Finding ------------------------------------------------------------------------------ */

/* The entry of a table; NULL: no such name. */
const ft_jinja_builtin *ft_jinja_find(const ft_jinja_builtin *table, size_t count, const char *name,
                                      size_t bytes);

const ft_jinja_builtin *ft_jinja_find_filter(const char *name, size_t bytes);
const ft_jinja_builtin *ft_jinja_find_test(const char *name, size_t bytes);
const ft_jinja_builtin *ft_jinja_find_function(const char *name);

/* A method of a value of this kind; FT_JINJA_MISSING: of any kind. */
const ft_jinja_builtin *ft_jinja_find_method(ft_jinja_kind kind, const char *name);

/* ---- Calling ------------------------------------------------------------------------------ */

/* Assign the arguments to parameters and call the function. */
ft_jinja_value ft_jinja_invoke(ft_jinja_run *run, const ft_jinja_builtin *builtin,
                               ft_jinja_value self, const ft_jinja_args *args);

/* An argument, or its default. */
bool ft_jinja_arg_truth(ft_jinja_value arg, bool otherwise);
int64_t ft_jinja_arg_integer(ft_jinja_run *run, ft_jinja_value arg, int64_t otherwise);

/* An argument that is a string; NULL if it is missing or None. */
const ft_jinja_string *ft_jinja_arg_string(ft_jinja_run *run, ft_jinja_value arg);

/* ---- Attributes --------------------------------------------------------------------------- */

/* value.name */
ft_jinja_value ft_jinja_attribute(ft_jinja_run *run, ft_jinja_value value, const char *name);

/* value[key] */
ft_jinja_value ft_jinja_item(ft_jinja_run *run, ft_jinja_value value, ft_jinja_value key);

/*
 * The attribute of filters such as map: a name, an index, or several with dots between.  Where one
 * is undefined, `otherwise` takes its place unless it is NULL.
 */
ft_jinja_value ft_jinja_path(ft_jinja_run *run, ft_jinja_value value, ft_jinja_value path,
                             const ft_jinja_value *otherwise);

/* ---- Loops -------------------------------------------------------------------------------- */

typedef struct ft_jinja_loop {
    const ft_jinja_list *list;
    size_t index;
    ft_jinja_list *changed; /* the arguments of the last call of loop.changed(); NULL: none */
} ft_jinja_loop;

/* ---- Operators ---------------------------------------------------------------------------- */

typedef enum ft_jinja_operator {
    FT_JINJA_ADD,
    FT_JINJA_SUB,
    FT_JINJA_MUL,
    FT_JINJA_DIV,
    FT_JINJA_FLOOR_DIV,
    FT_JINJA_MOD,
    FT_JINJA_POW,
} ft_jinja_operator;

ft_jinja_value ft_jinja_calculate(ft_jinja_run *run, ft_jinja_operator op, ft_jinja_value a,
                                  ft_jinja_value b);
ft_jinja_value ft_jinja_negate(ft_jinja_run *run, ft_jinja_value value);

/* ---- Letter case -------------------------------------------------------------------------- */

typedef enum ft_jinja_case {
    FT_JINJA_LOWER,
    FT_JINJA_UPPER,
    FT_JINJA_CAPITALIZE, /* the first character upper, the others lower */
    FT_JINJA_TITLE,      /* the same for each run of letters */
    FT_JINJA_WORDS,      /* the same for each word between white space and opening brackets */
    FT_JINJA_SWAPCASE,
} ft_jinja_case;

const ft_jinja_string *ft_jinja_convert_case(ft_jinja_run *run, const ft_jinja_string *string,
                                             ft_jinja_case to);

/* ---- Strings ------------------------------------------------------------------------------ */

/* Without the characters of `chars`, NULL: white space, at its start, its end, or both. */
const ft_jinja_string *ft_jinja_strip(ft_jinja_run *run, const ft_jinja_string *string,
                                      const ft_jinja_string *chars, bool start, bool end);
const ft_jinja_string *ft_jinja_replace(ft_jinja_run *run, const ft_jinja_string *string,
                                        const ft_jinja_string *from, const ft_jinja_string *to,
                                        int64_t count);

/* Lines without their ends, or with them. */
ft_jinja_list *ft_jinja_split_lines(ft_jinja_run *run, const ft_jinja_string *string,
                                    bool keep_ends);

#endif
