/*
 * json_build.c - build JSON with sticky out-of-memory errors.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/base/json_build.h"

#include <stdlib.h>

static void reset_on_failure(int failure, json_t **json)
{
    if (failure == 0)
        return;
    json_decref(*json);
    *json = NULL;
}

void ft_json_set(json_t **object, const char *key, json_t *value)
{
    reset_on_failure(json_object_set_new(*object, key, value), object);
}

void ft_json_append(json_t **array, json_t *value)
{
    reset_on_failure(json_array_append_new(*array, value), array);
}

void ft_json_merge(json_t **object, json_t *other)
{
    reset_on_failure(other == NULL ? -1 : json_object_update(*object, other), object);
    json_decref(other);
}

char *ft_json_dump(const json_t *json, size_t flags, size_t *bytes)
{
    size_t length = json != NULL ? json_dumpb(json, NULL, 0, flags) : 0;
    char *text = length > 0 ? malloc(length + 1) : NULL;
    if (text == NULL || json_dumpb(json, text, length, flags) != length) {
        free(text);
        return NULL;
    }
    text[length] = '\0';
    if (bytes != NULL)
        *bytes = length;
    return text;
}
