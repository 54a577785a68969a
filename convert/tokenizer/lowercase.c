/*
 * lowercase.c - put the normalizer Lowercase first.
 *
 * Source: Transformer of sentence-transformers 6.2, which changes the tokenizer's pipeline so.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "convert/tokenizer/lowercase.h"

#include "runtime/base/json_reader.h"
#include "runtime/error.h"

#include <stdlib.h>
#include <string.h>

static bool has_type(const json_t *step, const char *type)
{
    const char *found = json_string_value(json_object_get(step, "type"));
    return found != NULL && strcmp(found, type) == 0;
}

/* The steps of a normalizer, which may be null or missing, in a new list; NULL: out of memory. */
static json_t *list_steps(json_t *normalizer)
{
    json_t *list = json_object_get(normalizer, "normalizers"), *steps = json_array();
    bool fine = !json_is_object(normalizer) ||
                (has_type(normalizer, "Sequence") ? json_array_extend(steps, list)
                                                  : json_array_append(steps, normalizer)) == 0;
    if (fine)
        return steps;
    json_decref(steps);
    return NULL;
}

static bool has_step(const json_t *steps, const char *type)
{
    size_t i;
    json_t *step;
    json_array_foreach(steps, i, step)
    {
        if (has_type(step, type))
            return true;
    }
    return false;
}

/* false: out of memory. */
static bool add_lowercase(json_t *tokenizer)
{
    json_t *steps = list_steps(json_object_get(tokenizer, "normalizer"));
    if (has_step(steps, "Lowercase")) {
        json_decref(steps);
        return true;
    }
    bool fine = json_array_insert_new(steps, 0, json_pack("{s:s}", "type", "Lowercase")) == 0;
    json_t *sequence = json_pack("{s:s, s:o}", "type", "Sequence", "normalizers", steps);
    return json_object_set_new(tokenizer, "normalizer", sequence) == 0 && fine;
}

/* A Sequence without steps is left to the tokenizer's reader. */
static bool is_sequence_of_steps(const json_t *normalizer)
{
    return !has_type(normalizer, "Sequence") ||
           json_is_array(json_object_get(normalizer, "normalizers"));
}

ft_status ft_tokenizer_lowercase(ft_json_file *tokenizer, ft_error *err)
{
    json_error_t why;
    json_t *json = ft_json_parse(tokenizer->text, tokenizer->bytes, 0, &why);
    if (json == NULL)
        return ft_fail(err, FT_EFORMAT, "tokenizer.json: line %d: %s", why.line, why.text);
    if (!json_is_object(json) || !is_sequence_of_steps(json_object_get(json, "normalizer"))) {
        json_decref(json);
        return FT_OK;
    }
    char *text = add_lowercase(json) ? json_dumps(json, JSON_COMPACT) : NULL;
    json_decref(json);
    if (text == NULL)
        return ft_fail(err, FT_ENOMEM, "tokenizer.json: no memory to add a Lowercase");
    free(tokenizer->text);
    *tokenizer = (ft_json_file){ text, strlen(text) };
    return FT_OK;
}
