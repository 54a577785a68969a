/*
 * config_value.c - the values of a configuration: token ids, required values, empty and equal ones.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "convert/config/config_reader.h"

void ft_config_read_token_id(const ft_config_reader *reader, const char *key, const json_t *value,
                             int32_t *out)
{
    const json_t *id = ft_json_list_size(value) == 1 ? ft_json_list_at(value, 0) : value;
    ft_json_to_int32(&reader->in, key, id, 0, reader->out->config.vocabulary - 1, out);
}

bool ft_json_is_empty(const json_t *value)
{
    switch (json_typeof(value)) {
    case JSON_NULL:
    case JSON_FALSE:
        return true;
    case JSON_TRUE:
        return false;
    case JSON_INTEGER:
    case JSON_REAL:
        return json_number_value(value) == 0.0;
    case JSON_STRING:
        return json_string_length(value) == 0;
    case JSON_ARRAY:
        return json_array_size(value) == 0;
    case JSON_OBJECT:
        return json_object_size(value) == 0;
    }
    return false;
}

bool ft_json_equal(const json_t *a, const json_t *b)
{
    if (json_is_number(a) && json_is_number(b))
        return json_number_value(a) == json_number_value(b);
    return json_equal(a, b) != 0;
}
