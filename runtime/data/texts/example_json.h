/*
 * example_json.h - an example from a line of JSON Lines.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_DATA_TEXTS_EXAMPLE_JSON_H
#define FT_RUNTIME_DATA_TEXTS_EXAMPLE_JSON_H

#include "runtime/data/texts/examples.h"

/* The members that hold the texts; the first object decides unless the user did. */
typedef struct ft_example_fields {
    const char *names; /* "text" or "question,context"; NULL: not decided */
    bool targets;      /* as in ft_examples_options */
} ft_example_fields;

/*
 * Parse a line, which is the last of `list`, into a zeroed example. FT_EFORMAT: not an object, or
 * a member that holds a text is missing.
 */
FT_MUST_USE ft_status ft_example_parse(ft_example *out, ft_example_fields *fields,
                                       const ft_examples *list, const char *line, ft_error *err);

#endif
