/*
 * components.c - components of a tokenizer.json.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "convert/tokenizer/draft/components.h"

#include "runtime/base/json_build.h"
#include "runtime/error.h"
#include "runtime/mem.h"

#include <stdlib.h>
#include <string.h>

json_t *ft_component_sequence(const char *key, json_t *const *step, size_t count)
{
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++)
        ft_json_append(&list, step[i]);
    return list == NULL ? NULL : json_pack("{ss so}", "type", "Sequence", key, list);
}

json_t *ft_component_replace(const char *kind, const char *pattern, const char *content)
{
    return json_pack("{ss s{ss} ss}", "type", "Replace", "pattern", kind, pattern, "content",
                     content);
}

json_t *ft_component_split(const char *kind, const char *pattern, const char *behavior)
{
    return json_pack("{ss s{ss} ss sb}", "type", "Split", "pattern", kind, pattern, "behavior",
                     behavior, "invert", 0);
}

json_t *ft_component_byte_level(bool add_prefix_space, bool trim_offsets, bool use_regex)
{
    return json_pack("{ss sb sb sb}", "type", "ByteLevel", "add_prefix_space", add_prefix_space,
                     "trim_offsets", trim_offsets, "use_regex", use_regex);
}

json_t *ft_component_metaspace(const char *prepend_scheme, bool split)
{
    return json_pack("{ss ss ss sb}", "type", "Metaspace", "replacement", FT_METASPACE,
                     "prepend_scheme", prepend_scheme, "split", split);
}

json_t *ft_component_llama_decoder(bool strip_space)
{
    json_t *step[] = {
        ft_component_replace("String", FT_METASPACE, " "),
        json_pack("{ss}", "type", "ByteFallback"),
        json_pack("{ss}", "type", "Fuse"),
        json_pack("{ss ss si si}", "type", "Strip", "content", " ", "start", 1, "stop", 0),
    };
    if (!strip_space)
        json_decref(step[3]);
    return ft_component_sequence("decoders", step, strip_space ? 4 : 3);
}

/* ---- Special tokens ---------------------------------------------------------------------------
 */

static ft_status fail_token(const ft_tokenizer_draft *draft, const char *token)
{
    return ft_fail(draft->source->err, FT_EFORMAT,
                   "%s: the tokenizer has no token \"%.64s\", which its class adds to each text",
                   draft->source->folder, token);
}

ft_status ft_component_token(const ft_tokenizer_draft *draft, const char *name, json_t **out)
{
    int32_t id = ft_tokenizer_draft_id(draft, name);
    *out = NULL;
    if (id < 0)
        return fail_token(draft, name);
    *out = json_pack("[si]", name, (int) id);
    return *out != NULL
               ? FT_OK
               : ft_fail(draft->source->err, FT_ENOMEM, "%s: no memory", draft->source->folder);
}

/* ---- Templates ------------------------------------------------------------------------------ */

/* {"Sequence": {"id": "A", "type_id": 0}}, or {"SpecialToken": {"id": "</s>", "type_id": 0}}. */
static json_t *template_piece(const char *name, int type)
{
    bool text = strcmp(name, "$A") == 0 || strcmp(name, "$B") == 0;
    return json_pack("{s{ss si}}", text ? "Sequence" : "SpecialToken", "id", name + text, "type_id",
                     type);
}

/* Adds a token to the table of those that the templates use. */
static ft_status add_special(const ft_tokenizer_draft *draft, const char *name, json_t **table)
{
    int32_t id = ft_tokenizer_draft_id(draft, name);
    if (strcmp(name, "$A") == 0 || strcmp(name, "$B") == 0 || json_object_get(*table, name) != NULL)
        return FT_OK;
    if (id < 0)
        return fail_token(draft, name);
    ft_json_set(table, name,
                json_pack("{ss s[i] s[s]}", "id", name, "ids", (int) id, "tokens", name));
    return FT_OK;
}

/* `words` is modified. */
static ft_status parse_template(const ft_tokenizer_draft *draft, char *words, json_t **list,
                                json_t **table)
{
    char *rest = NULL;
    for (char *word = strtok_r(words, " ", &rest); word != NULL;
         word = strtok_r(NULL, " ", &rest)) {
        char *colon = strrchr(word, ':');
        if (colon == NULL || colon == word || strchr("01", colon[1]) == NULL || colon[1] == '\0')
            return ft_fail(draft->source->err, FT_EUNSUPPORTED,
                           "%s: a special token has a space: \"%.64s\"", draft->source->folder,
                           word);
        *colon = '\0';
        FT_TRY(add_special(draft, word, table));
        ft_json_append(list, template_piece(word, colon[1] - '0'));
    }
    return FT_OK;
}

ft_status ft_component_template(const ft_tokenizer_draft *draft, const char *single,
                                const char *pair, json_t **out)
{
    char *copy[2] = { ft_strdup(single), ft_strdup(pair) };
    json_t *list[2] = { json_array(), json_array() }, *table = json_object();
    ft_status rc = copy[0] != NULL && copy[1] != NULL ? FT_OK : FT_ENOMEM;
    for (int i = 0; i < 2 && rc == FT_OK; i++)
        rc = parse_template(draft, copy[i], &list[i], &table);
    *out = rc == FT_OK && list[0] != NULL && list[1] != NULL && table != NULL
               ? json_pack("{ss sO sO sO}", "type", "TemplateProcessing", "single", list[0], "pair",
                           list[1], "special_tokens", table)
               : NULL;
    for (int i = 0; i < 2; i++) {
        free(copy[i]);
        json_decref(list[i]);
    }
    json_decref(table);
    if (rc == FT_ENOMEM || (rc == FT_OK && *out == NULL))
        return ft_fail(draft->source->err, FT_ENOMEM, "%s: no memory", draft->source->folder);
    return rc;
}
