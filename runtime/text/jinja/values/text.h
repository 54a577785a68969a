/*
 * text.h - values as text: Python's str() and repr(), json.dumps(), "%" formatting; and from JSON.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_TEXT_JINJA_VALUES_TEXT_H
#define FT_RUNTIME_TEXT_JINJA_VALUES_TEXT_H

#include "runtime/text/jinja/values/value.h"

#include <jansson.h>

/* repr() of a float in `text`: the shortest digits that read back as the same number. */
enum { FT_JINJA_FLOAT_SIZE = 40 };
void ft_jinja_float_text(char text[FT_JINJA_FLOAT_SIZE], double number);

/* Append str(value), or repr(value). */
void ft_jinja_put_value(ft_jinja_builder *to, ft_jinja_value value);
void ft_jinja_put_repr(ft_jinja_builder *to, ft_jinja_value value);

/* str(value) */
const ft_jinja_string *ft_jinja_to_string(ft_jinja_run *run, ft_jinja_value value);

typedef struct ft_jinja_json_style {
    const ft_jinja_string *indent;       /* of a level; NULL: all on one line */
    const ft_jinja_string *item, *colon; /* separators; NULL: json.dumps()' own */
    bool ensure_ascii, sort_keys;
} ft_jinja_json_style;

/* json.dumps(value) */
const ft_jinja_string *ft_jinja_dump_json(ft_jinja_run *run, ft_jinja_value value,
                                          const ft_jinja_json_style *style);

/* format % values, where `values` is a tuple, a dict or one value. */
const ft_jinja_string *ft_jinja_percent(ft_jinja_run *run, const ft_jinja_string *format,
                                        ft_jinja_value values);

/*
 * The value of a JSON text, which must outlive it.  With `message`, its strings and keys are text
 * of messages.  The member "role" of an object is not, if it is a plain word: programs choose
 * it, and templates make special tokens of it ("<|" + role + "|>").
 */
ft_jinja_value ft_jinja_from_json(ft_jinja_run *run, const json_t *json, bool message);

#endif
