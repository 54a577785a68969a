/*
 * json_build.c - JSON that is whole or not there.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/json_build.h"

static void keep_if(int failure, json_t **json)
{
    if (failure == 0)
        return;
    json_decref(*json);
    *json = NULL;
}

void ft_json_set(json_t **object, const char *key, json_t *value)
{
    keep_if(json_object_set_new(*object, key, value), object);
}

void ft_json_append(json_t **array, json_t *value)
{
    keep_if(json_array_append_new(*array, value), array);
}

void ft_json_merge(json_t **object, json_t *other)
{
    keep_if(other == NULL ? -1 : json_object_update(*object, other), object);
    json_decref(other);
}
