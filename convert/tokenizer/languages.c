/*
 * languages.c - find the languages of a translator among its added tokens.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "convert/tokenizer/languages.h"

#include "runtime/base/json_build.h"
#include "runtime/error.h"

#include <string.h>

/* 'a' and 'A' stand for a letter of that case, other characters for themselves. */
static bool has_letters(const char *shape, const char *text, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        bool lower = text[i] >= 'a' && text[i] <= 'z', upper = text[i] >= 'A' && text[i] <= 'Z';
        if (shape[i] == 'a' ? !lower : shape[i] == 'A' ? !upper : shape[i] != text[i])
            return false;
    }
    return true;
}

bool ft_language_form_matches(const ft_language_form *form, const char *token)
{
    const char *star = strchr(form->shape, '*');
    size_t shape = strlen(form->shape), bytes = strlen(token);
    if (star == NULL)
        return bytes == shape && has_letters(form->shape, token, bytes);
    size_t before = (size_t) (star - form->shape), behind = shape - before - 1;
    return bytes > before + behind && has_letters(form->shape, token, before) &&
           has_letters(star + 1, token + bytes - behind, behind);
}

static json_t *find_languages(const ft_language_form *form, const json_t *tokenizer)
{
    json_t *found = json_object(), *token;
    size_t i;
    json_array_foreach(json_object_get(tokenizer, "added_tokens"), i, token)
    {
        const char *content = json_string_value(json_object_get(token, "content"));
        const json_t *id = json_object_get(token, "id");
        if (content != NULL && json_is_integer(id) && ft_language_form_matches(form, content))
            ft_json_set(&found, content, json_integer(json_integer_value(id)));
    }
    return found;
}

/* The token of a language that the settings name, in any of its forms; null when it is none. */
static json_t *default_language(const ft_language_form *form, const json_t *languages,
                                const char *name)
{
    char token[64];
    const char *star = strchr(form->shape, '*');
    if (name == NULL || strlen(name) > 32)
        return json_null();
    if (json_object_get(languages, name) != NULL)
        return json_string(name);
    if (star == NULL)
        return json_null();
    snprintf(token, sizeof token, "%.*s%s%s", (int) (star - form->shape), form->shape, name,
             star + 1);
    return json_object_get(languages, token) != NULL ? json_string(token) : json_null();
}

ft_status ft_language_form_place(const ft_language_form *form, const ft_tokenizer_source *source,
                                 ft_language_place *place)
{
    bool legacy;
    FT_TRY(ft_tokenizer_source_bool(source, "legacy_behaviour", false, &legacy));
    *place = legacy && form == &ft_nllb_languages ? FT_LANGUAGE_SUFFIX : form->place;
    return FT_OK;
}

ft_status ft_languages_make(json_t **out, const ft_language_form *form,
                            const ft_tokenizer_source *source, const json_t *tokenizer)
{
    static const char *const places[] = { [FT_LANGUAGE_PREFIX] = "prefix",
                                          [FT_LANGUAGE_SUFFIX] = "suffix",
                                          [FT_LANGUAGE_TEXT] = "text" };
    const char *from, *to;
    ft_language_place place;
    *out = NULL;
    FT_TRY(ft_language_form_place(form, source, &place));
    FT_TRY(ft_tokenizer_source_string(source, "src_lang", form->source, &from));
    FT_TRY(ft_tokenizer_source_string(source, "tgt_lang", NULL, &to));
    json_t *languages = find_languages(form, tokenizer);
    if (languages != NULL && json_object_size(languages) == 0) {
        json_decref(languages);
        return FT_OK;
    }
    json_t *source_language = default_language(form, languages, from);
    json_t *target_language = default_language(form, languages, to);
    *out = json_pack("{ss so so so}", "place", places[place], "source", source_language, "target",
                     target_language, "languages", languages);
    return *out != NULL ? FT_OK
                        : ft_fail(source->err, FT_ENOMEM, "languages.json: no memory for it");
}
