/*
 * json_build.h - build JSON with sticky out-of-memory errors.
 *
 * When memory runs out, Jansson silently omits a key or element. These functions set *json to NULL
 * on failure and keep it NULL afterwards, so one check at the end is enough.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_BASE_JSON_BUILD_H
#define FT_RUNTIME_BASE_JSON_BUILD_H

#include <jansson.h>
#include <stddef.h>

#pragma GCC visibility push(default) /* linked by the tools: FT_PRIVATE */

/* Set a key of an object; `value` is taken over, also on failure, which a NULL value is. */
void ft_json_set(json_t **object, const char *key, json_t *value);

/* The same for appending an element to an array. */
void ft_json_append(json_t **array, json_t *value);

/* Set all keys of `other`; takes ownership of it. */
void ft_json_merge(json_t **object, json_t *other);

/*
 * Serialize a value like json_dumps(); the caller frees the text. *bytes receives its length and
 * may be NULL. NULL when the value is NULL or memory runs out. (json_dumps() omits a key when its
 * buffer cannot grow.)
 */
char *ft_json_dump(const json_t *json, size_t flags, size_t *bytes);

#pragma GCC visibility pop

#endif
