/*
 * json_reader.c - load JSON files, and typed getters for their objects; all of them fail through
 * ft_json_fail().
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/base/json_reader.h"

#include "runtime/error.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- Loading ------------------------------------------------------------------------------ */

json_t *ft_json_parse(const void *text, size_t bytes, size_t flags, json_error_t *why)
{
    return json_loadb(bytes == 0 ? "" : text, bytes, flags, why);
}

static ft_status load(ft_json_reader *in, json_type type, const void *text, size_t bytes,
                      size_t max_bytes, bool big_integers)
{
    json_error_t why;
    in->json = NULL;
    if (bytes > max_bytes)
        return ft_json_fail(in, FT_ELIMIT, "%s%zu bytes, expected at most %zu", in->path, bytes,
                            max_bytes);
    json_t *json = ft_json_parse(text, bytes, JSON_REJECT_DUPLICATES, &why);
    if (json == NULL && big_integers && json_error_code(&why) == json_error_numeric_overflow)
        json = ft_json_parse(text, bytes, JSON_REJECT_DUPLICATES | JSON_DECODE_INT_AS_REAL, &why);
    if (json == NULL && why.line < 0)
        return ft_json_fail_no_memory(in);
    if (json == NULL)
        return ft_json_fail(in, FT_EFORMAT, "%sline %d, column %d: not valid JSON: %s", in->path,
                            why.line, why.column, why.text);
    if (json_typeof(json) != type) {
        json_decref(json);
        return ft_json_fail(in, FT_EFORMAT,
                            type == JSON_OBJECT ? "%sfound a JSON array, expected a JSON object"
                                                : "%sfound a JSON object, expected a JSON array",
                            in->path);
    }
    in->json = json;
    return FT_OK;
}

ft_status ft_json_load(ft_json_reader *in, json_type type, const void *text, size_t bytes,
                       size_t max_bytes)
{
    return load(in, type, text, bytes, max_bytes, false);
}

ft_status ft_json_load_big_integers(ft_json_reader *in, json_type type, const void *text,
                                    size_t bytes, size_t max_bytes)
{
    return load(in, type, text, bytes, max_bytes, true);
}

/* ---- Messages ----------------------------------------------------------------------------- */

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

ft_status ft_json_fail(const ft_json_reader *in, ft_status status, const char *format, ...)
{
    ft_error why;
    va_list args;
    va_start(args, format);
    vsnprintf(why.text, sizeof why.text, format, args);
    va_end(args);
    if (in->problems != NULL)
        ft_messages_add(in->problems, status, "%s: %s", in->file, why.text);
    return ft_fail(in->err, status, "%s: %s", in->file, why.text);
}

ft_status ft_json_fail_value(const ft_json_reader *in, ft_status status, const char *key,
                             const json_t *value, const char *expected)
{
    char text[FT_JSON_SNIPPET_SIZE];
    return ft_json_fail(in, status, "%s%.64s: found %s, expected %s", in->path, key,
                        value == NULL ? "nothing" : ft_json_snippet(text, value), expected);
}

ft_status ft_json_fail_member(const ft_json_reader *in, const char *key, const char *expected)
{
    return ft_json_fail_value(in, FT_EFORMAT, key, json_object_get(in->json, key), expected);
}

ft_status ft_json_fail_no_memory(const ft_json_reader *in)
{
    return ft_json_fail(in, FT_ENOMEM, "no memory");
}

ft_status ft_json_reject_unknown(const ft_json_reader *in, const char *const *known)
{
    const char *key;
    json_t *value;
    json_object_foreach(in->json, key, value)
    {
        size_t i = 0;
        while (known[i] != NULL && strcmp(known[i], key) != 0)
            i++;
        if (known[i] == NULL)
            return ft_json_fail_value(in, FT_EUNSUPPORTED, key, value, "no such field");
    }
    return FT_OK;
}

/* ---- Values ------------------------------------------------------------------------------- */

ft_status ft_json_to_bool(const ft_json_reader *in, const char *key, const json_t *value, bool *out)
{
    if (!json_is_boolean(value))
        return ft_json_fail_value(in, FT_EFORMAT, key, value, "true or false");
    *out = json_is_true(value);
    return FT_OK;
}

ft_status ft_json_to_integer(const ft_json_reader *in, const char *key, const json_t *value,
                             int64_t min, int64_t max, int64_t *out)
{
    char range[80];
    json_int_t number = json_integer_value(value);
    if (json_is_integer(value) && number >= min && number <= max) {
        *out = number;
        return FT_OK;
    }
    snprintf(range, sizeof range, "an integer from %" PRId64 " to %" PRId64, min, max);
    return ft_json_fail_value(in, FT_EFORMAT, key, value, range);
}

ft_status ft_json_to_int32(const ft_json_reader *in, const char *key, const json_t *value,
                           int32_t min, int32_t max, int32_t *out)
{
    int64_t number;
    FT_TRY(ft_json_to_integer(in, key, value, min, max, &number));
    *out = (int32_t) number;
    return FT_OK;
}

ft_status ft_json_to_number(const ft_json_reader *in, const char *key, const json_t *value,
                            double min, double max, double *out)
{
    char range[80];
    double number = json_number_value(value);
    if (json_is_number(value) && number >= min && number <= max) {
        *out = number;
        return FT_OK;
    }
    snprintf(range, sizeof range, "a number from %g to %g", min, max);
    return ft_json_fail_value(in, FT_EFORMAT, key, value, range);
}

size_t ft_json_list_size(const json_t *value)
{
    return json_is_array(value) ? json_array_size(value) : value != NULL;
}

json_t *ft_json_list_at(const json_t *value, size_t index)
{
    return json_is_array(value) ? json_array_get(value, index) : (json_t *) (uintptr_t) value;
}

/* ---- Members ------------------------------------------------------------------------------ */

json_t *ft_json_get(const ft_json_reader *in, const char *key)
{
    json_t *value = json_object_get(in->json, key);
    return json_is_null(value) ? NULL : value;
}

ft_status ft_json_read_object(const ft_json_reader *in, const char *key, ft_json_reader *out)
{
    ft_json_reader object = *in;
    object.json = json_object_get(in->json, key);
    snprintf(object.path, sizeof object.path, "%.60s%.30s.", in->path, key);
    *out = object;
    return json_is_object(out->json) ? FT_OK : ft_json_fail_member(in, key, "an object");
}

ft_status ft_json_read_array(const ft_json_reader *in, const char *key, json_t **out)
{
    *out = json_object_get(in->json, key);
    return json_is_array(*out) ? FT_OK : ft_json_fail_member(in, key, "an array");
}

ft_status ft_json_read_string(const ft_json_reader *in, const char *key, const char **out)
{
    *out = json_string_value(json_object_get(in->json, key));
    return *out != NULL ? FT_OK : ft_json_fail_member(in, key, "a string");
}

ft_status ft_json_read_bool(const ft_json_reader *in, const char *key, bool *out)
{
    return ft_json_to_bool(in, key, json_object_get(in->json, key), out);
}

ft_status ft_json_read_integer(const ft_json_reader *in, const char *key, int64_t min, int64_t max,
                               int64_t *out)
{
    return ft_json_to_integer(in, key, json_object_get(in->json, key), min, max, out);
}

ft_status ft_json_read_optional_bool(const ft_json_reader *in, const char *key, bool fallback,
                                     bool *out)
{
    const json_t *value = ft_json_get(in, key);
    *out = fallback;
    return value == NULL ? FT_OK : ft_json_to_bool(in, key, value, out);
}

ft_status ft_json_read_optional_int32(const ft_json_reader *in, const char *key, int32_t min,
                                      int32_t max, int32_t fallback, int32_t *out)
{
    const json_t *value = ft_json_get(in, key);
    *out = fallback;
    return value == NULL ? FT_OK : ft_json_to_int32(in, key, value, min, max, out);
}

ft_json_reader ft_json_read_element(const ft_json_reader *in, const char *key, size_t index)
{
    ft_json_reader out = *in;
    out.json = json_array_get(json_object_get(in->json, key), index);
    snprintf(out.path, sizeof out.path, "%.60s%.16s[%zu].", in->path, key, index);
    return out;
}

/* What reads the steps of a pipeline, and where its sequences have them. */
typedef struct {
    const char *key;
    ft_status (*read)(void *to, const ft_json_reader *step);
    void *to;
} pipeline;

static bool is_sequence(const ft_json_reader *step)
{
    const char *type = json_string_value(json_object_get(step->json, "type"));
    return type != NULL && strcmp(type, "Sequence") == 0;
}

/* A step, or a sequence of them inside of `depth` others. */
static ft_status read_steps(const pipeline *p, const ft_json_reader *in, int depth)
{
    json_t *list;
    if (!is_sequence(in))
        return p->read(p->to, in);
    if (depth == FT_JSON_MAX_SEQUENCES)
        return ft_json_fail_type(in, "8 sequences in each other at most");
    FT_TRY(FT_JSON_REJECT_UNKNOWN(in, "type", p->key));
    FT_TRY(ft_json_read_array(in, p->key, &list));
    for (size_t i = 0; i < json_array_size(list); i++) {
        ft_json_reader step = ft_json_read_element(in, p->key, i);
        FT_TRY(read_steps(p, &step, depth + 1));
    }
    return FT_OK;
}

ft_status ft_json_read_pipeline(const ft_json_reader *in, const char *name, const char *key,
                                ft_status (*read)(void *to, const ft_json_reader *step), void *to)
{
    const pipeline p = { .key = key, .read = read, .to = to };
    ft_json_reader first;
    if (ft_json_get(in, name) == NULL)
        return FT_OK;
    FT_TRY(ft_json_read_object(in, name, &first));
    return read_steps(&p, &first, 0);
}

ft_status ft_json_fail_type(const ft_json_reader *in, const char *expected)
{
    return ft_json_fail_value(in, FT_EUNSUPPORTED, "type", json_object_get(in->json, "type"),
                              expected);
}

ft_status ft_json_require_type(const ft_json_reader *in, const char *expected)
{
    const char *type;
    ft_status rc = ft_json_read_string(in, "type", &type);
    if (rc == FT_OK && strcmp(type, expected) != 0)
        return ft_json_fail_type(in, expected);
    return rc;
}
