/*
 * post_processor_json.c - parse the section "post_processor": special tokens around the text.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/text/tokenizer_json.h"

#include "runtime/error.h"

#include <stdlib.h>
#include <string.h>

static ft_status append_id(ft_special_ids *ids, const ft_json_reader *in, int32_t id)
{
    int32_t *bigger = realloc(ids->id, (ids->count + 1) * sizeof *bigger);
    if (bigger == NULL)
        return ft_json_fail_no_memory(in);
    ids->id = bigger;
    ids->id[ids->count++] = id;
    return FT_OK;
}

/* ["[SEP]", 3]: only the id is used. */
static ft_status read_pair(ft_special_ids *ids, const ft_json_reader *in, const char *key)
{
    json_t *pair;
    int32_t id;
    FT_TRY(ft_json_read_array(in, key, &pair));
    FT_TRY(ft_json_read_token_id(in, key, json_array_get(pair, 1), &id));
    return append_id(ids, in, id);
}

static ft_status read_bert_processing(ft_tokenizer *t, const ft_json_reader *in)
{
    FT_TRY(FT_JSON_REJECT_UNKNOWN(in, "type", "sep", "cls"));
    FT_TRY(read_pair(&t->prefix_ids, in, "cls"));
    return read_pair(&t->suffix_ids, in, "sep");
}

/* The ids of a special token are in a table next to the template. */
static ft_status append_special(ft_special_ids *ids, const ft_json_reader *template,
                                const char *name)
{
    ft_json_reader table, entry;
    json_t *list, *value;
    size_t i;
    FT_TRY(ft_json_read_object(template, "special_tokens", &table));
    FT_TRY(ft_json_read_object(&table, name, &entry));
    FT_TRY(ft_json_read_array(&entry, "ids", &list));
    json_array_foreach(list, i, value)
    {
        int32_t id;
        FT_TRY(ft_json_read_token_id(&entry, "ids", value, &id));
        FT_TRY(append_id(ids, &entry, id));
    }
    return FT_OK;
}

/* {"SpecialToken": {"id": "[CLS]", "type_id": 0}}, or {"Sequence": {"id": "A", "type_id": 0}}. */
static ft_status read_piece(ft_tokenizer *t, const ft_json_reader *template,
                            const ft_json_reader *piece, bool *seen_text)
{
    ft_json_reader body;
    const char *id;
    const char *kind = json_object_get(piece->json, "Sequence") ? "Sequence" : "SpecialToken";
    FT_TRY(ft_json_read_object(piece, kind, &body));
    FT_TRY(FT_JSON_REJECT_UNKNOWN(piece, kind));
    FT_TRY(FT_JSON_REJECT_UNKNOWN(&body, "id", "type_id"));
    FT_TRY(ft_json_read_string(&body, "id", &id));
    const json_t *type = json_object_get(body.json, "type_id");
    if (!json_is_integer(type) || json_integer_value(type) != 0)
        return ft_json_fail_value(&body, FT_EUNSUPPORTED, "type_id", type, "0");
    if (strcmp(kind, "SpecialToken") == 0)
        return append_special(*seen_text ? &t->suffix_ids : &t->prefix_ids, template, id);
    if (strcmp(id, "A") != 0 || *seen_text)
        return ft_json_fail_value(&body, FT_EUNSUPPORTED, "id", json_object_get(body.json, "id"),
                                  "\"A\", once");
    *seen_text = true;
    return FT_OK;
}

/* The template "pair" is for two texts in one sequence, which is not supported. */
static ft_status read_template(ft_tokenizer *t, const ft_json_reader *in)
{
    json_t *single;
    bool seen_text = false;
    FT_TRY(FT_JSON_REJECT_UNKNOWN(in, "type", "single", "pair", "special_tokens"));
    FT_TRY(ft_json_read_array(in, "single", &single));
    for (size_t i = 0; i < json_array_size(single); i++) {
        ft_json_reader piece = ft_json_read_element(in, "single", i);
        FT_TRY(read_piece(t, in, &piece, &seen_text));
    }
    if (!seen_text)
        return ft_json_fail_value(in, FT_EUNSUPPORTED, "single", single, "one with sequence A");
    return FT_OK;
}

static ft_status read_post_step(void *to, const ft_json_reader *in)
{
    ft_tokenizer *t = to;
    const char *type;
    FT_TRY(ft_json_read_string(in, "type", &type));
    if (strcmp(type, "ByteLevel") == 0) /* changes offsets, but no ids */
        return FT_JSON_REJECT_UNKNOWN(in, "type", "add_prefix_space", "trim_offsets", "use_regex");
    if (t->prefix_ids.count + t->suffix_ids.count > 0)
        return ft_json_fail_type(in, "one step that adds tokens at most");
    if (strcmp(type, "BertProcessing") == 0)
        return read_bert_processing(t, in);
    if (strcmp(type, "TemplateProcessing") == 0)
        return read_template(t, in);
    return ft_json_fail_type(in, "BertProcessing, TemplateProcessing or ByteLevel");
}

ft_status ft_json_read_post_processor(ft_tokenizer *t, const ft_json_reader *file)
{
    return ft_json_read_pipeline(file, "post_processor", "processors", read_post_step, t);
}
