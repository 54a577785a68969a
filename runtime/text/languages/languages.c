/*
 * languages.c - read languages.json and find languages by name.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/text/languages/languages.h"

#include "runtime/base/json_reader.h"
#include "runtime/base/strbuf.h"
#include "runtime/error.h"
#include "runtime/mem.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_LANGUAGES = 4096 };

/* ---- Reading -------------------------------------------------------------------------------- */

/* "de" of "__de__", "fra" of ">>fra<<"; the caller frees it. */
static char *name_of(const char *token)
{
    static const char *const signs[][2] = { { "__", "__" }, { ">>", "<<" } };
    size_t bytes = strlen(token);
    for (size_t i = 0; i < FT_COUNT(signs); i++)
        if (bytes > 4 && strncmp(token, signs[i][0], 2) == 0 &&
            strcmp(token + bytes - 2, signs[i][1]) == 0)
            return strndup(token + 2, bytes - 4);
    return strdup(token);
}

static ft_status read_language(const ft_json_reader *in, const char *token, const json_t *id,
                               ft_language *out)
{
    FT_TRY(ft_json_to_int32(in, token, id, 0, INT32_MAX, &out->id));
    if (token[0] == '\0')
        return ft_json_fail(in, FT_EFORMAT, "languages: a language has no name");
    out->token = ft_strdup(token);
    out->name = name_of(token);
    return out->token != NULL && out->name != NULL ? FT_OK : ft_json_fail_no_memory(in);
}

static ft_status read_list(ft_languages *languages, const ft_json_reader *file)
{
    ft_json_reader list;
    const char *token;
    json_t *id;
    FT_TRY(ft_json_read_object(file, "languages", &list));
    size_t count = json_object_size(list.json);
    if (count == 0 || count > MAX_LANGUAGES)
        return ft_json_fail(file, FT_EFORMAT, "languages: found %zu, expected 1 to %d", count,
                            MAX_LANGUAGES);
    languages->language = ft_calloc(count, sizeof *languages->language);
    if (languages->language == NULL)
        return ft_json_fail_no_memory(file);
    json_object_foreach(list.json, token, id)
        FT_TRY(read_language(&list, token, id, &languages->language[languages->count++]));
    return FT_OK;
}

static ft_status read_place(ft_languages *languages, const ft_json_reader *file)
{
    static const char *const names[] = { [FT_LANGUAGE_PREFIX] = "prefix",
                                         [FT_LANGUAGE_SUFFIX] = "suffix",
                                         [FT_LANGUAGE_TEXT] = "text" };
    const char *name;
    FT_TRY(ft_json_read_string(file, "place", &name));
    for (size_t i = 0; i < FT_COUNT(names); i++)
        if (strcmp(names[i], name) == 0) {
            languages->place = (ft_language_place) i;
            return FT_OK;
        }
    return ft_json_fail_member(file, "place", "\"prefix\", \"suffix\" or \"text\"");
}

/* A member with one of the tokens, or null. */
static ft_status read_default(const ft_languages *languages, const ft_json_reader *file,
                              const char *key, const ft_language **out)
{
    const char *token;
    if (ft_json_get(file, key) == NULL)
        return FT_OK;
    FT_TRY(ft_json_read_string(file, key, &token));
    for (size_t i = 0; i < languages->count; i++)
        if (strcmp(languages->language[i].token, token) == 0) {
            *out = &languages->language[i];
            return FT_OK;
        }
    return ft_json_fail_member(file, key, "one of the languages");
}

static ft_status read_file(ft_languages *languages, const ft_json_reader *file)
{
    FT_TRY(read_place(languages, file));
    FT_TRY(read_list(languages, file));
    FT_TRY(read_default(languages, file, "source", &languages->source));
    return read_default(languages, file, "target", &languages->target);
}

ft_status ft_languages_parse(ft_languages **out, const char *name, const char *json, size_t bytes,
                             ft_error *err)
{
    ft_json_reader file = { .file = name, .err = err };
    *out = NULL;
    FT_TRY(ft_json_load(&file, JSON_OBJECT, json, bytes, FT_JSON_MAX_BYTES));
    ft_languages *languages = ft_calloc(1, sizeof *languages);
    ft_status status =
        languages == NULL ? ft_json_fail_no_memory(&file) : read_file(languages, &file);
    json_decref(file.json);
    if (status != FT_OK) {
        ft_languages_free(languages);
        return status;
    }
    *out = languages;
    return FT_OK;
}

void ft_languages_free(ft_languages *languages)
{
    if (languages == NULL)
        return;
    for (size_t i = 0; i < languages->count; i++) {
        free(languages->language[i].token);
        free(languages->language[i].name);
    }
    free(languages->language);
    free(languages);
}

/* ---- Finding -------------------------------------------------------------------------------- */

char *ft_languages_list(const ft_languages *languages)
{
    ft_strbuf text = { 0 };
    for (size_t i = 0; i < languages->count; i++) {
        const char *name = languages->language[i].name;
        if ((i > 0 && !ft_strbuf_append(&text, ", ", 2)) ||
            !ft_strbuf_append(&text, name, strlen(name)))
            break;
        if (i + 1 == languages->count && ft_strbuf_append(&text, "", 1))
            return text.data;
    }
    ft_strbuf_fini(&text);
    return NULL;
}

static ft_status fail_name(const ft_languages *languages, const char *name, bool several,
                           ft_error *err)
{
    char *list = ft_languages_list(languages);
    ft_fail(err, FT_EARG, "language \"%.32s\": %s; the model's languages are %s", name,
            several ? "several start so" : "the model has none of that name",
            list == NULL ? "too many" : list);
    free(list);
    return FT_EARG;
}

/* "de" of "de_DE". */
static bool is_start(const char *name, const char *of)
{
    size_t bytes = strlen(name);
    return strncmp(name, of, bytes) == 0 && of[bytes] == '_';
}

ft_status ft_languages_find(const ft_languages *languages, const char *name,
                            const ft_language **out, ft_error *err)
{
    size_t starts = 0;
    *out = NULL;
    for (size_t i = 0; i < languages->count; i++) {
        const ft_language *language = &languages->language[i];
        if (strcmp(language->token, name) == 0 || strcmp(language->name, name) == 0) {
            *out = language;
            return FT_OK;
        }
        if (is_start(name, language->name)) {
            *out = language;
            starts++;
        }
    }
    if (starts == 1)
        return FT_OK;
    *out = NULL;
    return fail_name(languages, name, starts > 1, err);
}
