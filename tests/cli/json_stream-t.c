/*
 * json_stream-t.c - streamed JSON is read back correctly by jansson.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/cli/json_stream.h"
#include "tests/tap/tap.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static void write_all(ft_json_stream *json)
{
    const float reals[] = { 0.5f, -3.0f, 1e30f };
    const int32_t wholes[] = { 1, -2 };
    ft_json_stream_begin(json, NULL, '{');
    ft_json_stream_int(json, "whole", INT64_MIN);
    ft_json_stream_double(json, "real", 1.0 / 3.0);
    ft_json_stream_double(json, "even", 2.0);
    ft_json_stream_string(json, "word", "a \"quoted\" \\ line\n\t\x7f\xc3\xa4");
    ft_json_stream_begin(json, "none", '[');
    ft_json_stream_end(json, '[');
    ft_json_stream_floats(json, "reals", reals, 3);
    ft_json_stream_begin(json, "rows", '[');
    for (int i = 0; i < 2; i++) {
        ft_json_stream_begin(json, NULL, '{');
        ft_json_stream_ints(json, "wholes", wholes, 2);
        ft_json_stream_end(json, '{');
    }
    ft_json_stream_end(json, '[');
    ft_json_stream_end(json, '{');
}

static char *written(void (*write)(ft_json_stream *json))
{
    char *text = NULL;
    size_t bytes;
    FILE *file = open_memstream(&text, &bytes);
    write(&(ft_json_stream){ .file = file, .digits = 9 });
    fclose(file);
    return text;
}

static void test_whole(void)
{
    char *text = written(write_all);
    json_t *read = json_loads(text, 0, NULL);
    json_t *expected = json_pack("{sI sf sf ss s[] s[fff] s[{s[ii]} {s[ii]}]}", "whole",
                                 (json_int_t) INT64_MIN, "real", 0.333333333, "even", 2.0, "word",
                                 "a \"quoted\" \\ line\n\t\x7f\xc3\xa4", "none", "reals", 0.5, -3.0,
                                 1.00000002e30, "rows", "wholes", 1, -2, "wholes", 1, -2);
    ok(json_equal(read, expected),
       "jansson reads back all streamed values, and numbers keep their type");
    has(text, "{\n \"whole\": ", "each member starts a line, indented by one blank");
    has(text, "\n \"none\": [],\n", "an empty list is written without line breaks");
    is_str(text + strlen(text) - 3, "\n}\n", "the outermost value ends with a line break");
    json_decref(read);
    json_decref(expected);
    free(text);
}

static void write_odd(ft_json_stream *json)
{
    ft_json_stream_begin(json, NULL, '[');
    ft_json_stream_double(json, NULL, (double) NAN);
    ft_json_stream_double(json, NULL, (double) INFINITY);
    ft_json_stream_string_n(json, NULL, "a\0b", 3);
    ft_json_stream_string_n(json, NULL, "x\xff\xe2\x82y\xe2\x82\xac", 8);
    ft_json_stream_end(json, '[');
}

static void test_odd(void)
{
    char *text = written(write_odd);
    json_t *read = json_loads(text, JSON_ALLOW_NUL, NULL);
    ok(json_is_null(json_array_get(read, 0)) && json_is_null(json_array_get(read, 1)),
       "NaN and infinity are written as null");
    is_int((long long) json_string_length(json_array_get(read, 2)), 3,
           "a NUL in a string is escaped");
    is_str(json_string_value(json_array_get(read, 3)),
           "x\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbdy\xe2\x82\xac",
           "U+FFFD replaces each byte that is not valid UTF-8");
    json_decref(read);
    free(text);
}

int main(void)
{
    test_whole();
    test_odd();
    return done_testing();
}
