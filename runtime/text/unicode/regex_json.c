/*
 * regex_json.c - the member "pattern" of steps in a tokenizer.json.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/text/unicode/regex_json.h"

#include "runtime/error.h"

ft_status ft_regex_read_json(ft_regex *regex, const ft_json_reader *in)
{
    char expected[FT_REGEX_ERROR_SIZE];
    ft_json_reader pattern;
    const char *text;
    FT_TRY(ft_json_read_object(in, "pattern", &pattern));
    FT_TRY(FT_JSON_REJECT_UNKNOWN(&pattern, "Regex", "String"));
    bool is_literal = json_object_get(pattern.json, "String") != NULL;
    const char *key = is_literal ? "String" : "Regex";
    FT_TRY(ft_json_read_string(&pattern, key, &text));
    ft_status status = is_literal ? ft_regex_literal(regex, text, expected)
                                  : ft_regex_compile(regex, text, expected);
    if (status == FT_ENOMEM)
        return ft_json_fail_no_memory(in);
    return status == FT_OK ? FT_OK
                           : ft_json_fail_value(&pattern, status, key,
                                                json_object_get(pattern.json, key), expected);
}
