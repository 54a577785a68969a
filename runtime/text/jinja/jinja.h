/*
 * jinja.h - parse a chat template, and render it with variables from JSON.
 *
 * Templates are rendered as transformers does it: jinja2's immutable sandbox with trim_blocks,
 * lstrip_blocks, loop controls and the tag `generation`, and with its tojson, raise_exception and
 * strftime_now.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_TEXT_JINJA_JINJA_H
#define FT_RUNTIME_TEXT_JINJA_JINJA_H

#include "runtime/ft.h"

#include <jansson.h>

/* Immutable; many threads may render it. */
typedef struct ft_jinja_template ft_jinja_template;

/*
 * Parse a template; `name` is the file name in messages.  On failure *out is NULL.
 * FT_EFORMAT: a syntax error; FT_EUNSUPPORTED: a construct that is not supported; FT_ELIMIT: too
 * large or too deeply nested.
 */
FT_MUST_USE ft_status ft_jinja_parse(ft_jinja_template **out, const char *name, const char *text,
                                     size_t bytes, ft_error *err);
void ft_jinja_free(ft_jinja_template *template); /* accepts NULL */

typedef struct ft_jinja_variable {
    const char *name;
    const json_t *value; /* borrowed; NULL: not defined */
    bool message;        /* its texts come from messages and not from the template */
} ft_jinja_variable;

typedef struct ft_jinja_output {
    char *text;       /* [bytes], valid UTF-8; free() */
    uint8_t *message; /* [bytes]: 1 for bytes that come from messages; part of the same memory */
    size_t bytes;
} ft_jinja_output;

/*
 * Render a template; strftime_now() writes `date`, seconds since 1970, in local time.  On failure
 * out->text is NULL.  FT_EARG: raise_exception(), the template refuses the variables; FT_EFORMAT:
 * an error of evaluation; FT_EUNSUPPORTED: something that is not supported; FT_ELIMIT: it needs too
 * many steps, too much memory or too much nesting.
 */
FT_MUST_USE ft_status ft_jinja_render(const ft_jinja_template *template,
                                      const ft_jinja_variable *variables, size_t count,
                                      int64_t date, ft_jinja_output *out, ft_error *err);

#endif
