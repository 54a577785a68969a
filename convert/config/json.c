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
    if (bytes > FT_JSON_MAX) {
        ft_message(problems, FT_ELIMIT, "%s: %zu bytes, expected at most %d", label, bytes,
                   FT_JSON_MAX);
        return NULL;
    }
    json_error_t error;
    json_t *json = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &error);
    if (json == NULL) {
        ft_message(problems, FT_EFORMAT, "%s: line %d: not valid JSON: %s", label, error.line,
                   error.text);
        return NULL;
    }
    if (json_typeof(json) != type) {
        ft_message(problems, FT_EFORMAT, "%s: expected a JSON %s", label,
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
} cut;

static int keep_piece(const char *piece, size_t bytes, void *user)
{
    cut *c = user;
    size_t room = FT_JSON_TEXT - 1 - c->used;
    size_t kept = bytes < room ? bytes : room;
    memcpy(c->text + c->used, piece, kept);
    c->used += kept;
    return kept == bytes ? 0 : -1; /* nonzero stops the dump */
}

const char *ft_json_text(char text[FT_JSON_TEXT], const json_t *value)
{
    cut c = { text, 0 };
    size_t flags = JSON_ENCODE_ANY | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(9);
    bool whole = json_dump_callback(value, keep_piece, &c, flags) == 0;
    text[c.used] = '\0';
    if (!whole && c.used >= 3)
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
