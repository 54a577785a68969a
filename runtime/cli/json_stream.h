/*
 * json_stream.h - JSON written as it becomes known.
 *
 * Nothing is kept, so there is no memory that could be missing, and a list may be as long as it
 * likes.  What the stream does not take is seen by whoever looks at it at the end, ft_tool_end().
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
    int digits; /* of real numbers */
    int depth;  /* of what is open; its members are so far to the right */
    bool empty; /* what is open has no member yet */
} ft_json_stream;

/*
 * One member each: of an object under `key`, of a list with a key of NULL.  `bracket` is '{' or '[';
 * the outermost value has no key, and its end also ends the line.
 */
void ft_json_open(ft_json_stream *json, const char *key, char bracket);
void ft_json_close(ft_json_stream *json, char bracket);

void ft_json_whole(ft_json_stream *json, const char *key, int64_t number);
void ft_json_real(ft_json_stream *json, const char *key, double number); /* null if not finite */
void ft_json_word(ft_json_stream *json, const char *key, const char *text);

void ft_json_flag(ft_json_stream *json, const char *key, bool flag);
void ft_json_null(ft_json_stream *json, const char *key);

/* Text that need not be UTF-8: U+FFFD stands for each byte that is not. */
void ft_json_stream_text(ft_json_stream *json, const char *key, const char *text, size_t bytes);

/* A list of numbers. */
void ft_json_reals(ft_json_stream *json, const char *key, const float *x, size_t count);
void ft_json_wholes(ft_json_stream *json, const char *key, const int32_t *x, size_t count);

#endif
