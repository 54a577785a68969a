/*
 * json.c - json.dumps() of values, and values of JSON texts.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/base/utf8.h"
#include "runtime/text/jinja/values/text.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- json.dumps() ------------------------------------------------------------------------- */

typedef struct {
    ft_jinja_builder text;
    const ft_jinja_json_style *style;
    const ft_jinja_string *item, *colon;
} dumper;

static void dump(dumper *d, ft_jinja_value value, size_t level);

static void find_escape(char escape[16], uint32_t c, bool ensure_ascii)
{
    static const char shorts[] = "\b\t\n\f\r\"\\", letters[] = "btnfr\"\\";
    const char *is_short = c != 0 && c < 0x80 ? strchr(shorts, (int) c) : NULL;
    escape[0] = '\0';
    if (is_short != NULL)
        snprintf(escape, 16, "\\%c", letters[is_short - shorts]);
    else if (c < 0x20 || (ensure_ascii && c > 0x7e && c < 0x10000))
        snprintf(escape, 16, "\\u%04x", c);
    else if (ensure_ascii && c >= 0x10000)
        snprintf(escape, 16, "\\u%04x\\u%04x", 0xd800 + ((c - 0x10000) >> 10),
                 0xdc00 + ((c - 0x10000) & 0x3ff));
}

static void dump_string(dumper *d, const ft_jinja_string *string)
{
    char escape[16];
    ft_jinja_put_text(&d->text, "\"");
    for (size_t at = 0, next; at < string->bytes; at = next) {
        const char *c = string->data + at;
        next = at + ft_jinja_char_bytes(string, at);
        find_escape(escape, ft_utf8_decode_next(&c), d->style->ensure_ascii);
        if (escape[0] != '\0')
            ft_jinja_put(&d->text, escape, strlen(escape), ft_jinja_is_message(string, at));
        else
            ft_jinja_put_part(&d->text, string, at, next);
    }
    ft_jinja_put_text(&d->text, "\"");
}

/* The text of null, true, false and numbers; NULL for other values. */
static const char *scalar_text(char text[FT_JINJA_FLOAT_SIZE], ft_jinja_value value)
{
    if (value.kind == FT_JINJA_NONE)
        return "null";
    if (value.kind == FT_JINJA_BOOL)
        return value.boolean ? "true" : "false";
    if (value.kind == FT_JINJA_INT)
        snprintf(text, FT_JINJA_FLOAT_SIZE, "%lld", (long long) value.integer);
    else if (value.kind == FT_JINJA_FLOAT && !isfinite(value.number))
        return isnan(value.number) ? "NaN" : value.number < 0 ? "-Infinity" : "Infinity";
    else if (value.kind == FT_JINJA_FLOAT)
        ft_jinja_float_text(text, value.number);
    else
        return NULL;
    return text;
}

static void dump_newline(dumper *d, size_t level)
{
    if (d->style->indent == NULL)
        return;
    ft_jinja_put_text(&d->text, "\n");
    for (size_t i = 0; i < level; i++)
        ft_jinja_put_string(&d->text, d->style->indent);
}

static void dump_list(dumper *d, const ft_jinja_list *list, size_t level)
{
    if (list->count == 0) {
        ft_jinja_put_text(&d->text, "[]");
        return;
    }
    ft_jinja_put_text(&d->text, "[");
    for (size_t i = 0; i < list->count; i++) {
        if (i > 0)
            ft_jinja_put_string(&d->text, d->item);
        dump_newline(d, level + 1);
        dump(d, list->item[i], level + 1);
    }
    dump_newline(d, level);
    ft_jinja_put_text(&d->text, "]");
}

static void dump_key(dumper *d, ft_jinja_value key)
{
    char text[FT_JINJA_FLOAT_SIZE];
    const char *scalar = scalar_text(text, key);
    if (key.kind != FT_JINJA_STRING && scalar == NULL)
        ft_jinja_fail(d->text.run, FT_EFORMAT, "tojson: a key is of type %s",
                      ft_jinja_type_name(key));
    if (key.kind == FT_JINJA_STRING)
        dump_string(d, key.string);
    else
        dump_string(d, ft_jinja_string_new(d->text.run, scalar, strlen(scalar), false));
}

/* A copy of the dict with its entries in the order of the keys: insertion sort, for few keys. */
static ft_jinja_dict *sorted(ft_jinja_run *run, const ft_jinja_dict *dict)
{
    ft_jinja_dict *copy = ft_jinja_dict_new(run, dict->count);
    for (size_t i = 0; i < dict->count; i++) {
        ft_jinja_entry entry = dict->entry[i];
        size_t at = copy->count++;
        for (; at > 0 && ft_jinja_less(run, entry.key, copy->entry[at - 1].key, false); at--) {
            copy->entry[at] = copy->entry[at - 1];
            ft_jinja_spend(run, 1);
        }
        copy->entry[at] = entry;
    }
    return copy;
}

static void dump_dict(dumper *d, const ft_jinja_dict *dict, size_t level)
{
    if (dict->count == 0) {
        ft_jinja_put_text(&d->text, "{}");
        return;
    }
    if (d->style->sort_keys)
        dict = sorted(d->text.run, dict);
    ft_jinja_put_text(&d->text, "{");
    for (size_t i = 0; i < dict->count; i++) {
        if (i > 0)
            ft_jinja_put_string(&d->text, d->item);
        dump_newline(d, level + 1);
        dump_key(d, dict->entry[i].key);
        ft_jinja_put_string(&d->text, d->colon);
        dump(d, dict->entry[i].value, level + 1);
    }
    dump_newline(d, level);
    ft_jinja_put_text(&d->text, "}");
}

static void dump(dumper *d, ft_jinja_value value, size_t level)
{
    char text[FT_JINJA_FLOAT_SIZE];
    const char *scalar = scalar_text(text, value);
    ft_jinja_enter(d->text.run);
    ft_jinja_spend(d->text.run, 1);
    if (scalar != NULL)
        ft_jinja_put_text(&d->text, scalar);
    else if (value.kind == FT_JINJA_STRING)
        dump_string(d, value.string);
    else if (value.kind == FT_JINJA_LIST && value.list->type <= FT_JINJA_TUPLE)
        dump_list(d, value.list, level);
    else if (value.kind == FT_JINJA_DICT)
        dump_dict(d, value.dict, level);
    else
        ft_jinja_fail(d->text.run, FT_EFORMAT, "tojson: a value of type %s has no JSON form",
                      ft_jinja_type_name(value));
    ft_jinja_leave(d->text.run);
}

const ft_jinja_string *ft_jinja_dump_json(ft_jinja_run *run, ft_jinja_value value,
                                          const ft_jinja_json_style *style)
{
    dumper d = {
        .text = { .run = run }, .style = style, .item = style->item, .colon = style->colon
    };
    if (d.item == NULL)
        d.item = ft_jinja_literal(run, style->indent != NULL ? "," : ", ").string;
    if (d.colon == NULL)
        d.colon = ft_jinja_literal(run, ": ").string;
    dump(&d, value, 0);
    return ft_jinja_built(&d.text);
}

/* ---- From JSON ---------------------------------------------------------------------------- */

static bool is_word(const json_t *json)
{
    const char *text = json_string_value(json);
    size_t bytes = json_string_length(json);
    for (size_t i = 0; i < bytes; i++)
        if (!isalnum((unsigned char) text[i]) && text[i] != '_' && text[i] != '-')
            return false;
    return bytes > 0 && bytes <= 32;
}

static ft_jinja_value from_object(ft_jinja_run *run, const json_t *json, bool message)
{
    const char *key;
    const json_t *value;
    ft_jinja_dict *dict = ft_jinja_dict_new(run, json_object_size(json));
    json_object_foreach((json_t *) (uintptr_t) json, key, value)
    {
        bool trusted = json_is_string(value) && strcmp(key, "role") == 0 && is_word(value);
        ft_jinja_value name = ft_jinja_text(ft_jinja_string_new(run, key, strlen(key), message));
        dict->entry[dict->count++] =
            (ft_jinja_entry){ name, ft_jinja_from_json(run, value, message && !trusted) };
    }
    return ft_jinja_dict_value(dict);
}

static ft_jinja_value from_array(ft_jinja_run *run, const json_t *json, bool message)
{
    size_t count = json_array_size(json);
    ft_jinja_list *list = ft_jinja_list_new(run, FT_JINJA_PLAIN_LIST, count);
    for (size_t i = 0; i < count; i++)
        ft_jinja_append(run, list, ft_jinja_from_json(run, json_array_get(json, i), message));
    return ft_jinja_list_value(list);
}

ft_jinja_value ft_jinja_from_json(ft_jinja_run *run, const json_t *json, bool message)
{
    ft_jinja_value value = FT_JINJA_NONE_VALUE;
    ft_jinja_enter(run);
    if (json_is_object(json))
        value = from_object(run, json, message);
    else if (json_is_array(json))
        value = from_array(run, json, message);
    else if (json_is_string(json))
        value = ft_jinja_text(
            ft_jinja_string_new(run, json_string_value(json), json_string_length(json), message));
    else if (json_is_integer(json))
        value = ft_jinja_int(json_integer_value(json));
    else if (json_is_real(json))
        value = ft_jinja_float(json_real_value(json));
    else if (json_is_boolean(json))
        value = ft_jinja_bool(json_is_true(json));
    ft_jinja_leave(run);
    return value;
}
