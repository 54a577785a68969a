/*
 * embedding_prompts.c - the prompts of a sentence encoder.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/text/embedding_prompts.h"

#include "runtime/base/json_reader.h"
#include "runtime/error.h"

#include <string.h>

static json_t *list_of(const ft_embedding_prompts *prompts)
{
    return json_object_get(prompts->json, "prompts");
}

/* null, as some versions write it, is an empty prompt. */
static ft_status check_prompts(const ft_json_reader *in)
{
    ft_json_reader list;
    const char *name;
    json_t *value;
    if (ft_json_get(in, "prompts") == NULL)
        return FT_OK;
    FT_TRY(ft_json_read_object(in, "prompts", &list));
    json_object_foreach(list.json, name, value)
    {
        if (!json_is_string(value) && !json_is_null(value))
            return ft_json_fail_value(&list, FT_EFORMAT, name, value, "a text");
    }
    return FT_OK;
}

static ft_status find_default(ft_embedding_prompts *out, const ft_json_reader *in)
{
    const char *name;
    if (ft_json_get(in, "default_prompt_name") == NULL)
        return FT_OK;
    FT_TRY(ft_json_read_string(in, "default_prompt_name", &name));
    const char *text = ft_embedding_prompts_find(out, name);
    if (text == NULL)
        return ft_json_fail_member(in, "default_prompt_name", "the name of one of the prompts");
    out->default_text = text;
    return FT_OK;
}

ft_status ft_embedding_prompts_parse(ft_embedding_prompts *out, const char *label, const char *text,
                                     size_t bytes, ft_error *err)
{
    ft_json_reader in = { .file = label, .err = err };
    *out = (ft_embedding_prompts){ .default_text = "" };
    FT_TRY(ft_json_load(&in, JSON_OBJECT, text, bytes, FT_JSON_MAX_BYTES));
    out->json = in.json;
    FT_TRY(check_prompts(&in));
    return find_default(out, &in);
}

void ft_embedding_prompts_fini(ft_embedding_prompts *prompts)
{
    json_decref(prompts->json);
    *prompts = (ft_embedding_prompts){ .default_text = "" };
}

size_t ft_embedding_prompts_count(const ft_embedding_prompts *prompts)
{
    return json_object_size(list_of(prompts));
}

const char *ft_embedding_prompts_find(const ft_embedding_prompts *prompts, const char *name)
{
    const json_t *value = json_object_get(list_of(prompts), name);
    return value == NULL ? NULL : json_is_null(value) ? "" : json_string_value(value);
}

const char *ft_embedding_prompts_names(const ft_embedding_prompts *prompts, char *text, size_t size)
{
    size_t used = 0;
    const char *name;
    json_t *value;
    text[0] = '\0';
    json_object_foreach(list_of(prompts), name, value)
    {
        if (used < size)
            used += (size_t) snprintf(text + used, size - used, "%s%s", used > 0 ? ", " : "", name);
    }
    return text;
}
