/*
 * json.h - the JSON files of a checkpoint: read with suspicion, quoted in messages.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CONVERT_CONFIG_JSON_H
#define FT_CONVERT_CONFIG_JSON_H

#include "convert/checkpoint/messages.h"

#include <jansson.h>

/* Larger files than this are no configuration. */
enum { FT_JSON_MAX = 4 * 1024 * 1024 };

/*
 * Parse text that must be one value of this type (JSON_OBJECT or JSON_ARRAY), without duplicate
 * keys; `label` names the file.  NULL, and a problem, when it is not.  json_decref() the result.
 */
json_t *ft_json_parse(const void *text, size_t bytes, json_type type, const char *label,
                      ft_messages *problems);

/* The value as it is written, cut to fit; returns `text`. */
enum { FT_JSON_TEXT = 80 };
const char *ft_json_text(char text[FT_JSON_TEXT], const json_t *value);

/* null, false, 0, "", [] and {}: the values with which features are switched off. */
bool ft_json_is_empty(const json_t *value);

/* Equal values; numbers are compared by value, whether written 1 or 1.0. */
bool ft_json_equal(const json_t *a, const json_t *b);

#endif
