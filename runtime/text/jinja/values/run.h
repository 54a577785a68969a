/*
 * run.h - one parse or one rendering of a template: its memory, its limits and its error.
 *
 * A failure is a longjmp() to where the parse or the rendering began.  All memory is in the arena,
 * so nothing has to be released on the way, and expressions can be functions that return values.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_TEXT_JINJA_VALUES_RUN_H
#define FT_RUNTIME_TEXT_JINJA_VALUES_RUN_H

#include "runtime/ft.h"
#include "runtime/text/jinja/values/arena.h"

#include <setjmp.h>

enum {
    FT_JINJA_MAX_TEMPLATE = 1 << 20, /* bytes of a template */
    FT_JINJA_MAX_DEPTH = 400,        /* nested expressions, statements, macro calls and values */
};

typedef struct ft_jinja_run {
    const char *name; /* of the template, for messages */
    uint32_t line;    /* of what is being parsed or evaluated, from 1 */
    ft_error *err;    /* may be NULL */
    ft_jinja_arena arena;
    size_t steps;    /* evaluations that are still allowed */
    size_t max_text; /* bytes of any text */
    int depth;       /* current nesting */
    int64_t date;    /* of strftime_now(): seconds since 1970 */
    jmp_buf failed;  /* ft_jinja_fail() jumps here after it has set `status` */
    ft_status status;
} ft_jinja_run;

/* Fail with "NAME: line N: ...". */
_Noreturn void ft_jinja_fail(ft_jinja_run *run, ft_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4), cold));

/* Fail because a template asks for what this interpreter does not have: "`WHAT' is not supported".
 */
_Noreturn void ft_jinja_fail_unknown(ft_jinja_run *run, const char *what, const char *name,
                                     size_t bytes);

/* Memory, never NULL; `count` elements of `size` bytes. */
void *ft_jinja_alloc(ft_jinja_run *run, size_t count, size_t size);
#define FT_JINJA_NEW(run, type) ((type *) ft_jinja_alloc((run), 1, sizeof(type)))

/* A NUL-terminated copy. */
char *ft_jinja_copy(ft_jinja_run *run, const char *text, size_t bytes);

/* Count work, and enter and leave a level of nesting; they fail at the limits. */
void ft_jinja_spend(ft_jinja_run *run, size_t steps);
void ft_jinja_enter(ft_jinja_run *run);
static inline void ft_jinja_leave(ft_jinja_run *run)
{
    run->depth--;
}

#endif
