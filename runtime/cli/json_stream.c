/*
 * json_stream.c - streamed JSON output.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/cli/json_stream.h"

#include "runtime/base/utf8.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static void write_string(FILE *file, const char *text, size_t bytes)
{
    putc('"', file);
    while (bytes > 0) {
        size_t valid = ft_utf8_valid_prefix(text, bytes);
        for (size_t i = 0; i < valid; i++) {
            unsigned char c = (unsigned char) text[i];
            if (c < 0x20 || c == 0x7f || c == '"' || c == '\\')
                fprintf(file, c == '"' || c == '\\' ? "\\%c" : "\\u%04x", c);
            else
                putc(c, file);
        }
        if (valid < bytes) {
            fputs("\xef\xbf\xbd", file);
            valid++;
        }
        text += valid;
        bytes -= valid;
    }
    putc('"', file);
}

static void begin_line(const ft_json_stream *json)
{
    fprintf(json->file, "\n%*s", json->depth, "");
}

/* Everything before a value: comma, indentation and key. */
static void begin_member(ft_json_stream *json, const char *key)
{
    if (json->depth == 0)
        return;
    if (!json->empty)
        fputs(json->compact ? ", " : ",", json->file);
    json->empty = false;
    if (!json->compact)
        begin_line(json);
    if (key == NULL)
        return;
    write_string(json->file, key, strlen(key));
    fputs(": ", json->file);
}

void ft_json_stream_begin(ft_json_stream *json, const char *key, char bracket)
{
    begin_member(json, key);
    putc(bracket, json->file);
    json->depth++;
    json->empty = true;
}

void ft_json_stream_end(ft_json_stream *json, char bracket)
{
    json->depth--;
    if (!json->empty && !json->compact)
        begin_line(json);
    putc(bracket == '{' ? '}' : ']', json->file);
    json->empty = false;
    if (json->depth == 0)
        putc('\n', json->file);
}

void ft_json_stream_int(ft_json_stream *json, const char *key, int64_t number)
{
    begin_member(json, key);
    fprintf(json->file, "%" PRId64, number);
}

/* Floating-point numbers always have a point or an exponent. */
void ft_json_stream_double(ft_json_stream *json, const char *key, double number)
{
    char text[40];
    begin_member(json, key);
    snprintf(text, sizeof text, "%.*g", json->digits, number);
    fputs(isfinite(number) ? text : "null", json->file);
    if (isfinite(number) && strpbrk(text, ".e") == NULL)
        fputs(".0", json->file);
}

void ft_json_stream_bool(ft_json_stream *json, const char *key, bool flag)
{
    begin_member(json, key);
    fputs(flag ? "true" : "false", json->file);
}

void ft_json_stream_null(ft_json_stream *json, const char *key)
{
    begin_member(json, key);
    fputs("null", json->file);
}

void ft_json_stream_string(ft_json_stream *json, const char *key, const char *text)
{
    ft_json_stream_string_n(json, key, text, strlen(text));
}

void ft_json_stream_string_n(ft_json_stream *json, const char *key, const char *text, size_t bytes)
{
    begin_member(json, key);
    write_string(json->file, text, bytes);
}

void ft_json_stream_floats(ft_json_stream *json, const char *key, const float *x, size_t count)
{
    ft_json_stream_begin(json, key, '[');
    for (size_t i = 0; i < count; i++)
        ft_json_stream_double(json, NULL, (double) x[i]);
    ft_json_stream_end(json, '[');
}

void ft_json_stream_ints(ft_json_stream *json, const char *key, const int32_t *x, size_t count)
{
    ft_json_stream_begin(json, key, '[');
    for (size_t i = 0; i < count; i++)
        ft_json_stream_int(json, NULL, x[i]);
    ft_json_stream_end(json, '[');
}
