/*
 * config_value.c - read the value of a key of config.json, or report what it must be.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "convert/config/config_reader.h"

#include "convert/config/json.h"

const json_t *ft_config_get(const ft_config_reader *reader, const char *key)
{
    const json_t *value = json_object_get(reader->json, key);
    return json_is_null(value) ? NULL : value;
}

void ft_config_fail_value(const ft_config_reader *reader, const char *key, const json_t *found,
                          const char *expected)
{
    char text[FT_JSON_SNIPPET_SIZE];
    ft_messages_add(reader->problems, FT_EFORMAT, "%s: %s is %s, expected %s", reader->label, key,
                    ft_json_snippet(text, found), expected);
}

bool ft_config_read_int(const ft_config_reader *reader, const char *key, const json_t *value,
                        int32_t low, int32_t high, int32_t *out)
{
    char expected[64];
    json_int_t n = json_integer_value(value);
    if (json_is_integer(value) && n >= low && n <= high) {
        *out = (int32_t) n;
        return true;
    }
    snprintf(expected, sizeof expected, "an integer from %d to %d", low, high);
    ft_config_fail_value(reader, key, value, expected);
    return false;
}

bool ft_config_read_token_id(const ft_config_reader *reader, const char *key, const json_t *value,
                             int32_t *out)
{
    const json_t *id =
        json_is_array(value) && json_array_size(value) == 1 ? json_array_get(value, 0) : value;
    return ft_config_read_int(reader, key, id, 0, reader->out->config.vocabulary - 1, out);
}
