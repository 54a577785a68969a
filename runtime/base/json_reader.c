/*
 * json_reader.c - typed getters for JSON objects; all of them fail through ft_json_fail_value().
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/base/json_reader.h"

#include "runtime/error.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { DESCRIPTION_SIZE = 96 };

/* Describe a value for messages. */
static const char *describe_value(char text[DESCRIPTION_SIZE], const json_t *value)
{
    if (value == NULL)
        return "nothing";
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        return "an object";
    case JSON_ARRAY:
        return "an array";
    case JSON_TRUE:
        return "true";
    case JSON_FALSE:
        return "false";
    case JSON_NULL:
        return "null";
    case JSON_STRING:
        snprintf(text, DESCRIPTION_SIZE, "\"%.80s\"", json_string_value(value));
        break;
    case JSON_REAL:
        snprintf(text, DESCRIPTION_SIZE, "%g", json_real_value(value));
        break;
    case JSON_INTEGER:
        snprintf(text, DESCRIPTION_SIZE, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
        break;
    }
    return text;
}

ft_status ft_json_fail_value(const ft_json_reader *in, ft_status status, const char *key,
                             const json_t *value, const char *expected)
{
    char text[DESCRIPTION_SIZE];
    return ft_fail(in->err, status, "%s: %s%.64s: found %s, expected %s", in->file, in->path, key,
                   describe_value(text, value), expected);
}

ft_status ft_json_fail_no_memory(const ft_json_reader *in)
{
    return ft_fail(in->err, FT_ENOMEM, "%s: no memory", in->file);
}

ft_status ft_json_reject_unknown(const ft_json_reader *in, const char *const *known)
{
    const char *key;
    json_t *value;
    json_object_foreach(in->json, key, value)
    {
        size_t i = 0;
        while (known[i] != NULL && strcmp(known[i], key) != 0)
            i++;
        if (known[i] == NULL)
            return ft_json_fail_value(in, FT_EUNSUPPORTED, key, value, "no such field");
    }
    return FT_OK;
}

ft_status ft_json_read_object(const ft_json_reader *in, const char *key, ft_json_reader *out)
{
    *out = (ft_json_reader){ .json = json_object_get(in->json, key),
                             .file = in->file,
                             .err = in->err };
    snprintf(out->path, sizeof out->path, "%.30s%.30s.", in->path, key);
    if (!json_is_object(out->json))
        return ft_json_fail_value(in, FT_EFORMAT, key, out->json, "an object");
    return FT_OK;
}

ft_status ft_json_read_array(const ft_json_reader *in, const char *key, json_t **out)
{
    *out = json_object_get(in->json, key);
    if (!json_is_array(*out))
        return ft_json_fail_value(in, FT_EFORMAT, key, *out, "an array");
    return FT_OK;
}

ft_status ft_json_read_string(const ft_json_reader *in, const char *key, const char **out)
{
    const json_t *value = json_object_get(in->json, key);
    *out = json_string_value(value);
    if (*out == NULL)
        return ft_json_fail_value(in, FT_EFORMAT, key, value, "a string");
    return FT_OK;
}

ft_status ft_json_read_bool(const ft_json_reader *in, const char *key, bool *out)
{
    const json_t *value = json_object_get(in->json, key);
    *out = json_is_true(value);
    if (!json_is_boolean(value))
        return ft_json_fail_value(in, FT_EFORMAT, key, value, "true or false");
    return FT_OK;
}

ft_status ft_json_read_integer(const ft_json_reader *in, const char *key, const json_t *value,
                               int64_t max, int64_t *out)
{
    char range[64];
    *out = json_integer_value(value);
    if (json_is_integer(value) && *out >= 0 && *out <= max)
        return FT_OK;
    snprintf(range, sizeof range, "an integer from 0 to %" PRId64, max);
    return ft_json_fail_value(in, FT_EFORMAT, key, value, range);
}

ft_json_reader ft_json_read_element(const ft_json_reader *in, const char *key, size_t index)
{
    ft_json_reader out = { .json = json_array_get(json_object_get(in->json, key), index),
                           .file = in->file,
                           .err = in->err };
    snprintf(out.path, sizeof out.path, "%.16s%.16s[%zu].", in->path, key, index);
    return out;
}

ft_status ft_json_read_pipeline(const ft_json_reader *in, const char *name, const char *key,
                                ft_status (*read)(void *to, const ft_json_reader *step), void *to)
{
    ft_json_reader pipeline;
    json_t *list;
    const json_t *value = json_object_get(in->json, name);
    if (value == NULL || json_is_null(value))
        return FT_OK;
    FT_TRY(ft_json_read_object(in, name, &pipeline));
    const char *type = json_string_value(json_object_get(pipeline.json, "type"));
    if (type == NULL || strcmp(type, "Sequence") != 0)
        return read(to, &pipeline);
    FT_TRY(FT_JSON_REJECT_UNKNOWN(&pipeline, "type", key));
    FT_TRY(ft_json_read_array(&pipeline, key, &list));
    for (size_t i = 0; i < json_array_size(list); i++) {
        ft_json_reader step = ft_json_read_element(&pipeline, key, i);
        FT_TRY(read(to, &step));
    }
    return FT_OK;
}

ft_status ft_json_fail_type(const ft_json_reader *in, const char *expected)
{
    return ft_json_fail_value(in, FT_EUNSUPPORTED, "type", json_object_get(in->json, "type"),
                              expected);
}

ft_status ft_json_require_type(const ft_json_reader *in, const char *expected)
{
    const char *type;
    ft_status rc = ft_json_read_string(in, "type", &type);
    if (rc == FT_OK && strcmp(type, expected) != 0)
        return ft_json_fail_type(in, expected);
    return rc;
}
