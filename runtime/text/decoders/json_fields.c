/*
 * json_fields.c - read the fields that several decoders have.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/text/decoders/json_fields.h"

#include "runtime/error.h"
#include "runtime/mem.h"

#include <stdlib.h>
#include <string.h>

ft_status ft_json_copy_string(const ft_json_reader *in, const char *key, size_t max_bytes,
                              char **out)
{
    char expected[64];
    const char *text;
    FT_TRY(ft_json_read_string(in, key, &text));
    snprintf(expected, sizeof expected, "1 to %zu bytes", max_bytes);
    if (text[0] == '\0' || strlen(text) > max_bytes)
        return ft_json_fail_value(in, FT_EUNSUPPORTED, key, json_object_get(in->json, key),
                                  expected);
    *out = ft_strdup(text);
    return *out == NULL ? ft_json_fail_no_memory(in) : FT_OK;
}

ft_status ft_json_read_replace(const ft_json_reader *in, char **pattern, char **content)
{
    ft_json_reader pattern_object;
    const char *text;
    FT_TRY(FT_JSON_REJECT_UNKNOWN(in, "type", "pattern", "content"));
    FT_TRY(ft_json_read_object(in, "pattern", &pattern_object));
    FT_TRY(FT_JSON_REJECT_UNKNOWN(&pattern_object, "String"));
    FT_TRY(ft_json_copy_string(&pattern_object, "String", FT_JSON_MAX_CONTENT, pattern));
    FT_TRY(ft_json_read_string(in, "content", &text));
    if (text[0] != '\0')
        return ft_json_copy_string(in, "content", FT_JSON_MAX_CONTENT, content);
    *content = ft_strdup("");
    return *content == NULL ? ft_json_fail_no_memory(in) : FT_OK;
}
