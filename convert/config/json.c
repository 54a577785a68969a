/*
 * json.c - parse, quote and compare JSON values.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "convert/config/json.h"

#include <stdlib.h>
#include <string.h>

json_t *ft_json_parse(const void *text, size_t bytes, json_type type, const char *label,
                      ft_messages *problems)
{
    if (bytes > FT_JSON_MAX_BYTES) {
        ft_messages_add(problems, FT_ELIMIT, "%s: %zu bytes, expected at most %d", label, bytes,
                        FT_JSON_MAX_BYTES);
        return NULL;
    }
    json_error_t error;
    json_t *json = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &error);
    if (json == NULL) {
        ft_messages_add(problems, FT_EFORMAT, "%s: line %d: not valid JSON: %s", label, error.line,
                        error.text);
        return NULL;
    }
    if (json_typeof(json) != type) {
        ft_messages_add(problems, FT_EFORMAT, "%s: expected a JSON %s", label,
                        type == JSON_OBJECT ? "object" : "array");
        json_decref(json);
        return NULL;
    }
    return json;
}

/* User data of a dump callback that keeps as much text as fits. */
typedef struct {
    char *text;
    size_t used;
} bounded_text;

static int append_piece(const char *piece, size_t bytes, void *user)
{
    bounded_text *c = user;
    size_t space_left = FT_JSON_SNIPPET_SIZE - 1 - c->used;
    size_t n_copied = bytes < space_left ? bytes : space_left;
    memcpy(c->text + c->used, piece, n_copied);
    c->used += n_copied;
    return n_copied == bytes ? 0 : -1; /* nonzero stops the dump */
}

const char *ft_json_snippet(char text[FT_JSON_SNIPPET_SIZE], const json_t *value)
{
    bounded_text c = { text, 0 };
    size_t flags = JSON_ENCODE_ANY | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(9);
    bool complete = json_dump_callback(value, append_piece, &c, flags) == 0;
    text[c.used] = '\0';
    if (!complete && c.used >= 3)
        memcpy(text + c.used - 3, "...", 3);
    return text;
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
