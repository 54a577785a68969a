/*
 * value.h - the values of templates, with the semantics of Python.
 *
 * All values are immutable once a template can see them, except namespaces and the state of
 * generators and loops.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_TEXT_JINJA_VALUES_VALUE_H
#define FT_RUNTIME_TEXT_JINJA_VALUES_VALUE_H

#include "runtime/text/jinja/values/string.h"

typedef enum ft_jinja_kind {
    FT_JINJA_MISSING, /* an argument that is not given; templates never see it */
    FT_JINJA_UNDEFINED,
    FT_JINJA_NONE,
    FT_JINJA_BOOL,
    FT_JINJA_INT,
    FT_JINJA_FLOAT,
    FT_JINJA_STRING,
    FT_JINJA_LIST,
    FT_JINJA_DICT,
    FT_JINJA_NAMESPACE, /* a dict whose entries are assigned as attributes */
    FT_JINJA_METHOD,    /* of a value */
    FT_JINJA_FUNCTION,  /* of the environment, such as range */
    FT_JINJA_MACRO,
    FT_JINJA_LOOP, /* the variable `loop` */
} ft_jinja_kind;

typedef struct ft_jinja_value {
    ft_jinja_kind kind;
    union {
        bool boolean;
        int64_t integer; /* Python's have no bounds: overflow is an error */
        double number;
        const char *missing; /* UNDEFINED: what is undefined, for messages */
        const ft_jinja_string *string;
        struct ft_jinja_list *list;
        struct ft_jinja_dict *dict; /* DICT, NAMESPACE */
        const struct ft_jinja_method *method;
        const struct ft_jinja_builtin *function;
        const struct ft_jinja_macro *macro;
        const struct ft_jinja_loop *loop;
    };
} ft_jinja_value;

/* Everything that iterates over its elements; what else it can do depends on `type`. */
typedef enum ft_jinja_list_type {
    FT_JINJA_PLAIN_LIST,
    FT_JINJA_TUPLE,
    FT_JINJA_RANGE,
    FT_JINJA_VIEW,      /* items(), keys() and values() of a dict: no index */
    FT_JINJA_GENERATOR, /* the result of a lazy filter: no index, no length, iterates once */
} ft_jinja_list_type;

typedef struct ft_jinja_list {
    ft_jinja_list_type type;
    size_t count, capacity;
    ft_jinja_value *item;
} ft_jinja_list;

typedef struct ft_jinja_entry {
    ft_jinja_value key, value;
} ft_jinja_entry;

/* In order of insertion. */
typedef struct ft_jinja_dict {
    size_t count, capacity;
    ft_jinja_entry *entry;
} ft_jinja_dict;

/* ---- Constructors ------------------------------------------------------------------------- */

#define FT_JINJA_NONE_VALUE ((ft_jinja_value){ .kind = FT_JINJA_NONE })

static inline ft_jinja_value ft_jinja_bool(bool value)
{
    return (ft_jinja_value){ FT_JINJA_BOOL, { .boolean = value } };
}

static inline ft_jinja_value ft_jinja_int(int64_t value)
{
    return (ft_jinja_value){ FT_JINJA_INT, { .integer = value } };
}

static inline ft_jinja_value ft_jinja_float(double value)
{
    return (ft_jinja_value){ FT_JINJA_FLOAT, { .number = value } };
}

static inline ft_jinja_value ft_jinja_text(const ft_jinja_string *value)
{
    return (ft_jinja_value){ FT_JINJA_STRING, { .string = value } };
}

static inline ft_jinja_value ft_jinja_list_value(ft_jinja_list *value)
{
    return (ft_jinja_value){ FT_JINJA_LIST, { .list = value } };
}

static inline ft_jinja_value ft_jinja_dict_value(ft_jinja_dict *value)
{
    return (ft_jinja_value){ FT_JINJA_DICT, { .dict = value } };
}

/* A value that is not defined; `what` describes it: "'x' is undefined". */
ft_jinja_value ft_jinja_undefined(ft_jinja_run *run, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* A string of the template; borrowed. */
ft_jinja_value ft_jinja_literal(ft_jinja_run *run, const char *text);

ft_jinja_list *ft_jinja_list_new(ft_jinja_run *run, ft_jinja_list_type type, size_t capacity);
void ft_jinja_append(ft_jinja_run *run, ft_jinja_list *list, ft_jinja_value value);

ft_jinja_dict *ft_jinja_dict_new(ft_jinja_run *run, size_t capacity);

/* The value of a key, or NULL; fails for a key that Python cannot hash. */
ft_jinja_value *ft_jinja_dict_get(ft_jinja_run *run, const ft_jinja_dict *dict, ft_jinja_value key);
ft_jinja_value *ft_jinja_dict_get_name(ft_jinja_run *run, const ft_jinja_dict *dict,
                                       const char *name);
void ft_jinja_dict_set(ft_jinja_run *run, ft_jinja_dict *dict, ft_jinja_value key,
                       ft_jinja_value value);

/* ---- Questions ---------------------------------------------------------------------------- */

/* Python's name of the type: "str", "NoneType". */
const char *ft_jinja_type_name(ft_jinja_value value);

static inline bool ft_jinja_is_list(ft_jinja_value value, ft_jinja_list_type type)
{
    return value.kind == FT_JINJA_LIST && value.list->type == type;
}

/* Fail if the value is undefined, as every use of one but printing and iterating does. */
void ft_jinja_require_defined(ft_jinja_run *run, ft_jinja_value value);

bool ft_jinja_truth(ft_jinja_value value);

/* Whether it is a bool or an int, and which. */
bool ft_jinja_to_integer(ft_jinja_value value, int64_t *out);

/* The same, or a float. */
bool ft_jinja_to_number(ft_jinja_value value, double *out);

bool ft_jinja_equal(ft_jinja_run *run, ft_jinja_value a, ft_jinja_value b);

/* Whether a < b, or a <= b; fails for values without an order. */
bool ft_jinja_less(ft_jinja_run *run, ft_jinja_value a, ft_jinja_value b, bool or_equal);

/* ---- Sequences ---------------------------------------------------------------------------- */

/* len(); false for values without one. */
bool ft_jinja_length(ft_jinja_value value, size_t *out);

/*
 * The elements: of a list, the characters of a string, the keys of a dict.  NULL for values that
 * cannot be iterated.  A generator is empty afterwards.
 */
ft_jinja_list *ft_jinja_elements(ft_jinja_run *run, ft_jinja_value value);

/* The same, but fails instead of returning NULL. */
ft_jinja_list *ft_jinja_iterate(ft_jinja_run *run, ft_jinja_value value);

/* item in container */
bool ft_jinja_contains(ft_jinja_run *run, ft_jinja_value container, ft_jinja_value item);

/* value[index] for an integer; missing in range is undefined. */
ft_jinja_value ft_jinja_index(ft_jinja_run *run, ft_jinja_value value, int64_t index);

/* value[start:stop:step]; each bound is an integer or None. */
ft_jinja_value ft_jinja_slice(ft_jinja_run *run, ft_jinja_value value, ft_jinja_value start,
                              ft_jinja_value stop, ft_jinja_value step);

/* The sequence `count` times. */
ft_jinja_value ft_jinja_repeat(ft_jinja_run *run, ft_jinja_value sequence, int64_t count);

#endif
