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

#pragma GCC visibility push(default) /* linked by the tools: FT_PRIVATE */

typedef struct ft_json_reader {
    json_t *json;     /* borrowed */
    const char *file; /* file name for messages; borrowed */
    ft_error *err;    /* receives errors */
    char path[64];    /* prefix of field names in messages: "model.vocab." */
} ft_json_reader;

/* Fail with "FILE: PATH.KEY: found VALUE, expected EXPECTED"; value may be NULL. */
ft_status ft_json_fail_value(const ft_json_reader *in, ft_status status, const char *key,
                             const json_t *value, const char *expected);

/* Fail with FT_ENOMEM. */
ft_status ft_json_fail_no_memory(const ft_json_reader *in);

/* FT_EUNSUPPORTED when the object has a member that is not in the NULL-terminated list. */
ft_status ft_json_reject_unknown(const ft_json_reader *in, const char *const *known);
#define FT_JSON_REJECT_UNKNOWN(in, ...)                                                            \
    ft_json_reject_unknown(in, (const char *const[]){ __VA_ARGS__, NULL })

/*
 * A member of the given type; FT_EFORMAT when it is missing or of another type. *out is always set.
 */
ft_status ft_json_read_object(const ft_json_reader *in, const char *key, ft_json_reader *out);
ft_status ft_json_read_array(const ft_json_reader *in, const char *key, json_t **out);
ft_status ft_json_read_string(const ft_json_reader *in, const char *key, const char **out);
ft_status ft_json_read_bool(const ft_json_reader *in, const char *key, bool *out);

/* `value`, found at `key`, as an integer from 0 to `max`. */
ft_status ft_json_read_integer(const ft_json_reader *in, const char *key, const json_t *value,
                               int64_t max, int64_t *out);

/*
 * The object at `index` of the array `key`; if the element is not an object, all its fields are
 * missing.
 */
ft_json_reader ft_json_read_element(const ft_json_reader *in, const char *key, size_t index);

/*
 * Read a tokenizer pipeline in the member `name`: null or missing (no steps), one step as an
 * object, or an object of type "Sequence" with its steps in the array `key`. `read` reads each
 * step.
 */
ft_status ft_json_read_pipeline(const ft_json_reader *in, const char *name, const char *key,
                                ft_status (*read)(void *to, const ft_json_reader *step), void *to);

/* FT_EUNSUPPORTED: the member "type" has an unsupported value. */
ft_status ft_json_fail_type(const ft_json_reader *in, const char *expected);

/* The member "type" must be the string `expected`, else FT_EUNSUPPORTED. */
ft_status ft_json_require_type(const ft_json_reader *in, const char *expected);

#pragma GCC visibility pop

#endif
