/*
 * json_reader.h - load a JSON file and read its objects field by field, with errors that name the
 * file and the field.  Nothing else parses whole JSON texts; json_scan.h says why tables of tensors
 * and tokens are scanned.
 *
 * A reader is one object of the file and knows its path: every message names the file, the field,
 * what was found and what was expected.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_BASE_JSON_READER_H
#define FT_RUNTIME_BASE_JSON_READER_H

#include "runtime/base/messages.h"
#include "runtime/ft.h"

#include <jansson.h>

#pragma GCC visibility push(default) /* linked by the tools: FT_PRIVATE */

/* An error goes to `err`, and to the list `problems` of a caller that reads on after one. */
typedef struct ft_json_reader {
    json_t *json;          /* borrowed, except after ft_json_load() */
    const char *file;      /* file name for messages; borrowed */
    ft_error *err;         /* may be NULL */
    ft_messages *problems; /* may be NULL */
    char path[104];        /* prefix of field names in messages: "model.vocab." */
} ft_json_reader;

/* ---- Loading ------------------------------------------------------------------------------ */

/* Size limit of a configuration file in bytes. */
enum { FT_JSON_MAX_BYTES = 4 * 1024 * 1024 };

/*
 * Parse one object or array, as `type` says, without duplicate keys.  in->file and the receivers of
 * errors are set before; in->json is NULL on failure, and the caller calls json_decref() on it.
 * FT_ELIMIT: more than `max_bytes`; FT_EFORMAT, with line and column: no such value; FT_ENOMEM.
 */
ft_status ft_json_load(ft_json_reader *in, json_type type, const void *text, size_t bytes,
                       size_t max_bytes);

/*
 * The same for a file that may hold integers of more than 64 bits; if it does, all of its integers
 * are read as reals.  transformers writes 10^30 as the model_max_length of a tokenizer without a
 * limit.
 */
ft_status ft_json_load_big_integers(ft_json_reader *in, json_type type, const void *text,
                                    size_t bytes, size_t max_bytes);

/*
 * Parse a text with these flags of json_loadb().  NULL on failure, which *why (may be NULL)
 * describes; its line is -1 when memory ran out.
 */
json_t *ft_json_parse(const void *text, size_t bytes, size_t flags, json_error_t *why);

/* ---- Messages ----------------------------------------------------------------------------- */

/* The value as JSON text, truncated to fit; returns `text`. */
enum { FT_JSON_SNIPPET_SIZE = 80 };
const char *ft_json_snippet(char text[FT_JSON_SNIPPET_SIZE], const json_t *value);

/* Fail with "FILE: " and a text. */
ft_status ft_json_fail(const ft_json_reader *in, ft_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4), cold));

/* Fail with "FILE: PATH.KEY: found VALUE, expected EXPECTED"; value may be NULL. */
ft_status ft_json_fail_value(const ft_json_reader *in, ft_status status, const char *key,
                             const json_t *value, const char *expected);

/* The same with FT_EFORMAT for the member `key`, which may be missing. */
ft_status ft_json_fail_member(const ft_json_reader *in, const char *key, const char *expected);

/* Fail with FT_ENOMEM. */
ft_status ft_json_fail_no_memory(const ft_json_reader *in);

/* FT_EUNSUPPORTED when the object has a member that is not in the NULL-terminated list. */
ft_status ft_json_reject_unknown(const ft_json_reader *in, const char *const *known);
#define FT_JSON_REJECT_UNKNOWN(in, ...)                                                            \
    ft_json_reject_unknown(in, (const char *const[]){ __VA_ARGS__, NULL })

/* ---- Values ------------------------------------------------------------------------------- */

/*
 * Convert `value`, which may be NULL and was found at `key`.  FT_EFORMAT when it is of another type
 * or out of bounds, and *out keeps what it had.
 */
ft_status ft_json_to_bool(const ft_json_reader *in, const char *key, const json_t *value,
                          bool *out);
ft_status ft_json_to_integer(const ft_json_reader *in, const char *key, const json_t *value,
                             int64_t min, int64_t max, int64_t *out);
ft_status ft_json_to_int32(const ft_json_reader *in, const char *key, const json_t *value,
                           int32_t min, int32_t max, int32_t *out);
ft_status ft_json_to_number(const ft_json_reader *in, const char *key, const json_t *value,
                            double min, double max, double *out);

/* A list whose only element may stand without brackets; `value` may be NULL, an empty list. */
size_t ft_json_list_size(const json_t *value);
json_t *ft_json_list_at(const json_t *value, size_t index);

/* ---- Members ------------------------------------------------------------------------------ */

/* The member `key`; NULL when it is missing or null. */
json_t *ft_json_get(const ft_json_reader *in, const char *key);

/* A member of the given type; FT_EFORMAT when it is missing or of another type. */
ft_status ft_json_read_object(const ft_json_reader *in, const char *key, ft_json_reader *out);
ft_status ft_json_read_array(const ft_json_reader *in, const char *key, json_t **out);
ft_status ft_json_read_string(const ft_json_reader *in, const char *key, const char **out);
ft_status ft_json_read_bool(const ft_json_reader *in, const char *key, bool *out);
ft_status ft_json_read_integer(const ft_json_reader *in, const char *key, int64_t min, int64_t max,
                               int64_t *out);

/* An optional member; `fallback` is its value when it is missing or null, and on failure. */
ft_status ft_json_read_optional_bool(const ft_json_reader *in, const char *key, bool fallback,
                                     bool *out);
ft_status ft_json_read_optional_int32(const ft_json_reader *in, const char *key, int32_t min,
                                      int32_t max, int32_t fallback, int32_t *out);

/*
 * The object at `index` of the array `key`; if the element is not an object, all its fields are
 * missing.
 */
ft_json_reader ft_json_read_element(const ft_json_reader *in, const char *key, size_t index);

/*
 * Read a tokenizer pipeline in the member `name`: null or missing (no steps), one step as an
 * object, or an object of type "Sequence" with its steps in the array `key`, which may be sequences
 * themselves. `read` reads each step, in order.
 */
enum { FT_JSON_MAX_SEQUENCES = 8 }; /* in each other */
ft_status ft_json_read_pipeline(const ft_json_reader *in, const char *name, const char *key,
                                ft_status (*read)(void *to, const ft_json_reader *step), void *to);

/* FT_EUNSUPPORTED: the member "type" has an unsupported value. */
ft_status ft_json_fail_type(const ft_json_reader *in, const char *expected);

/* The member "type" must be the string `expected`, else FT_EUNSUPPORTED. */
ft_status ft_json_require_type(const ft_json_reader *in, const char *expected);

#pragma GCC visibility pop

#endif
