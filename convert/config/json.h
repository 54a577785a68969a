/*
 * json.h - parse the JSON files of a checkpoint strictly and quote their values in messages.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CONVERT_CONFIG_JSON_H
#define FT_CONVERT_CONFIG_JSON_H

#include "runtime/base/messages.h"

#include <jansson.h>

/* Size limit of a configuration file in bytes. */
enum { FT_JSON_MAX_BYTES = 4 * 1024 * 1024 };

/*
 * Parse a text that must be one value of this type (JSON_OBJECT or JSON_ARRAY) without duplicate
 * keys; `label` names the file. NULL, and a problem, when it is not. The caller calls json_decref()
 * on the result.
 */
json_t *ft_json_parse(const void *text, size_t bytes, json_type type, const char *label,
                      ft_messages *problems);

/* The value as JSON text, truncated to fit; returns `text`. */
enum { FT_JSON_SNIPPET_SIZE = 80 };
const char *ft_json_snippet(char text[FT_JSON_SNIPPET_SIZE], const json_t *value);

/* null, false, 0, "", [] and {}: the values that switch a feature off. */
bool ft_json_is_empty(const json_t *value);

/* Whether two values are equal; numbers are compared by value, so 1 equals 1.0. */
bool ft_json_equal(const json_t *a, const json_t *b);

#endif
