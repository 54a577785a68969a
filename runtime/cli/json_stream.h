/*
 * json_stream.h - streamed JSON output.
 *
 * Nothing is buffered, so output cannot run out of memory and lists can be arbitrarily long. Write
 * errors are checked once at the end by ft_tool_exit_status().
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_CLI_JSON_STREAM_H
#define FT_RUNTIME_CLI_JSON_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

typedef struct ft_json_stream {
    FILE *file;
    int digits; /* significant digits of floating-point numbers */
    bool compact; /* all on one line: an outermost value is a line of JSON Lines */
    int depth;  /* nesting depth, which is also the indentation */
    bool empty; /* the innermost container has no members yet */
} ft_json_stream;

/*
 * Each function writes one member: of an object under `key`, of a list with a NULL key. `bracket`
 * is '{' or '['; the outermost value has no key, and closing it ends the line.
 */
void ft_json_stream_begin(ft_json_stream *json, const char *key, char bracket);
void ft_json_stream_end(ft_json_stream *json, char bracket);

void ft_json_stream_int(ft_json_stream *json, const char *key, int64_t number);
void ft_json_stream_double(ft_json_stream *json, const char *key,
                           double number); /* null if not finite */
void ft_json_stream_string(ft_json_stream *json, const char *key, const char *text);

void ft_json_stream_bool(ft_json_stream *json, const char *key, bool flag);
void ft_json_stream_null(ft_json_stream *json, const char *key);

/* Text that may be invalid UTF-8: U+FFFD replaces each invalid byte. */
void ft_json_stream_string_n(ft_json_stream *json, const char *key, const char *text, size_t bytes);

/* A list of numbers. */
void ft_json_stream_floats(ft_json_stream *json, const char *key, const float *x, size_t count);
void ft_json_stream_ints(ft_json_stream *json, const char *key, const int32_t *x, size_t count);

#endif
