/*
 * json_build.h - JSON that is whole or not there.
 *
 * Jansson lets a missing key or element pass where there is no memory for it.  Here a step that
 * fails makes *json NULL, and the steps after it keep it so: one look at the end is enough.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_BASE_JSON_BUILD_H
#define FT_RUNTIME_BASE_JSON_BUILD_H

#include <jansson.h>
#include <stddef.h>

/* Set a key of an object; `value` is taken over, also on failure, which a NULL value is. */
void ft_json_set(json_t **object, const char *key, json_t *value);

/* The same for a new last element of an array. */
void ft_json_append(json_t **array, json_t *value);

/* Set all keys of `other`, which is taken over. */
void ft_json_merge(json_t **object, json_t *other);

/*
 * The text of a value as json_dumps() has it, for free(); *bytes, its length, may be NULL.  NULL: the
 * value is, or there is no memory.  json_dumps() leaves out a key when its buffer cannot grow.
 */
char *ft_json_format(const json_t *json, size_t flags, size_t *bytes);

#endif
