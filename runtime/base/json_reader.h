/*
 * json_reader.h - read the objects of a JSON file field by field, with errors that name the field.
 *
 * A reader is one object of the file and knows its path: every message names the file, the field,
 * what was found and what was expected.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_BASE_JSON_READER_H
#define FT_RUNTIME_BASE_JSON_READER_H

#include "runtime/ft.h"

#include <jansson.h>

typedef struct ft_section {
    json_t *json;     /* borrowed */
    const char *file; /* file name for messages; borrowed */
    ft_error *err;    /* receives errors */
    char path[64];    /* prefix of field names in messages: "model.vocab." */
} ft_section;

/* Fail with "FILE: PATH.KEY: found VALUE, expected EXPECTED"; value may be NULL. */
ft_status ft_section_wrong(const ft_section *in, ft_status status, const char *key,
                           const json_t *value, const char *expected);

/* Fail with FT_ENOMEM. */
ft_status ft_section_no_memory(const ft_section *in);

/* FT_EUNSUPPORTED when the object has a member that is not in the NULL-terminated list. */
ft_status ft_section_only(const ft_section *in, const char *const *known);
#define FT_SECTION_ONLY(in, ...) ft_section_only(in, (const char *const[]){ __VA_ARGS__, NULL })

/*
 * A member of the given type; FT_EFORMAT when it is missing or of another type. *out is always set.
 */
ft_status ft_section_object(const ft_section *in, const char *key, ft_section *out);
ft_status ft_section_array(const ft_section *in, const char *key, json_t **out);
ft_status ft_section_string(const ft_section *in, const char *key, const char **out);
ft_status ft_section_bool(const ft_section *in, const char *key, bool *out);

/* `value`, found at `key`, as an integer from 0 to `max`. */
ft_status ft_section_integer(const ft_section *in, const char *key, const json_t *value,
                             int64_t max, int64_t *out);

/*
 * The object at `index` of the array `key`; if the element is not an object, all its fields are
 * missing.
 */
ft_section ft_section_element(const ft_section *in, const char *key, size_t index);

/*
 * Read a tokenizer pipeline in the member `name`: null or missing (no steps), one step as an
 * object, or an object of type "Sequence" with its steps in the array `key`. `read` reads each
 * step.
 */
ft_status ft_section_steps(const ft_section *in, const char *name, const char *key,
                           ft_status (*read)(void *to, const ft_section *step), void *to);

/* FT_EUNSUPPORTED: the member "type" has an unsupported value. */
ft_status ft_section_wrong_type(const ft_section *in, const char *expected);

/* The member "type" must be the string `expected`, else FT_EUNSUPPORTED. */
ft_status ft_section_type(const ft_section *in, const char *expected);

#endif
