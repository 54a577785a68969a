/*
 * model_config.c - the configuration of a model: completed from its artifact, or refused.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "triton/ft_triton.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_BATCH_SIZE = 64 /* of an encoder whose configuration says nothing */ };

static bool same_dims(const json_t *found, const json_t *expected)
{
    bool same = json_array_size(found) == json_array_size(expected);
    for (size_t i = 0; i < json_array_size(expected) && same; i++) {
        json_int_t a = json_integer_value(json_array_get(found, i)),
                   b = json_integer_value(json_array_get(expected, i));
        same = a == b || a == -1 || b == -1;
    }
    return same;
}

/* Ids may have 32 bits. */
static bool same_io(const json_t *found, const json_t *expected)
{
    const char *a = json_string_value(json_object_get(found, "data_type")),
               *b = json_string_value(json_object_get(expected, "data_type"));
    bool narrow = strcmp(a, "TYPE_INT32") == 0 && strcmp(b, "TYPE_INT64") == 0;
    return (strcmp(a, b) == 0 || narrow) &&
           same_dims(json_object_get(found, "dims"), json_object_get(expected, "dims"));
}

static ft_status fail_io(const char *name, const json_t *found, const json_t *expected,
                         ft_error *err)
{
    char *texts[] = { json_dumps(json_object_get(found, "dims"), 0),
                      json_dumps(json_object_get(expected, "dims"), 0) };
    const char *types[] = { json_string_value(json_object_get(found, "data_type")),
                            json_string_value(json_object_get(expected, "data_type")) };
    ft_status status =
        expected == NULL
            ? ft_fail(err, FT_EARG, "config.pbtxt: %s: the artifact has no such input or output",
                      name)
            : ft_fail(err, FT_EARG, "config.pbtxt: %s: found %s %s, expected %s %s", name, types[0],
                      texts[0], types[1], texts[1]);
    free(texts[0]);
    free(texts[1]);
    return status;
}

static ft_status complete_list(json_t *config, const char *key, json_t *expected, bool optional,
                               ft_error *err)
{
    size_t i;
    json_t *io, *found = json_object_get(config, key);
    json_array_foreach(found, i, io)
    {
        const char *name = json_string_value(json_object_get(io, "name"));
        const json_t *like = json_array_get(expected, (size_t) ft_serving_find(expected, name));
        if (like == NULL || !same_io(io, like))
            return fail_io(name, io, like, err);
    }
    if (json_array_size(found) > 0)
        return FT_OK;
    json_t *list = json_deep_copy(expected);
    json_array_foreach(list, i, io) if (optional) json_object_set_new(io, "optional", json_true());
    json_object_set_new(config, key, list);
    return FT_OK;
}

ft_status ft_triton_complete(json_t *config, const ft_serving_signature *s, ft_error *err)
{
    json_int_t size = json_integer_value(json_object_get(config, "max_batch_size"));
    if (s->generates && size != 0)
        return ft_fail(err, FT_EARG, "config.pbtxt: max_batch_size: found %lld, expected 0",
                       (long long) size);
    if (!s->generates && size == 0)
        json_object_set_new(config, "max_batch_size", json_integer(MAX_BATCH_SIZE));
    if (json_object_get(config, "model_transaction_policy") == NULL)
        json_object_set_new(config, "model_transaction_policy",
                            json_pack("{sb}", "decoupled", s->generates));
    FT_TRY(complete_list(config, "input", s->inputs, true, err));
    return complete_list(config, "output", s->outputs, false, err);
}
