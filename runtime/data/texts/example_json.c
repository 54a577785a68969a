/*
 * example_json.c - which members of a JSON object hold the texts.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/data/texts/example_json.h"

#include "runtime/base/json_reader.h"
#include "runtime/data/texts/text_reader.h"
#include "runtime/error.h"
#include "runtime/mem.h"

#include <stdio.h>
#include <string.h>

/* The names that published datasets use; pairs first, as their objects often have a text too. */
static const char *const known_names[] = {
    "question,context",
    "premise,hypothesis",
    "sentence1,sentence2",
    "query,passage",
    "text,text_pair",
    "text",
    "sentence",
    "source",
    "prompt",
};

/* Those of texts and what models should make of them. */
static const char *const target_names[] = {
    "source,target",
    "prompt,completion",
};

enum { MAX_NAME = 64 };

/* Split "question,context" at its comma; the second name is "" without one. */
static void split_names(const char *names, char first[MAX_NAME], char second[MAX_NAME])
{
    const char *comma = strchr(names, ',');
    int bytes = comma == NULL ? (int) strlen(names) : (int) (comma - names);
    snprintf(first, MAX_NAME, "%.*s", bytes, names);
    snprintf(second, MAX_NAME, "%s", comma == NULL ? "" : comma + 1);
}

static bool has_names(const json_t *object, const char *names)
{
    char first[MAX_NAME], second[MAX_NAME];
    split_names(names, first, second);
    return json_object_get(object, first) != NULL &&
           (second[0] == '\0' || json_object_get(object, second) != NULL);
}

/* The first names of a list that an object has; NULL: none. */
static const char *find_names(const json_t *object, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (has_names(object, names[i]))
            return names[i];
    return NULL;
}

static ft_status choose_names(ft_example_fields *fields, const ft_json_reader *in)
{
    if (fields->names == NULL && fields->targets)
        fields->names = find_names(in->json, target_names, FT_COUNT(target_names));
    if (fields->names == NULL)
        fields->names = find_names(in->json, known_names, FT_COUNT(known_names));
    if (fields->names != NULL)
        return FT_OK;
    return ft_json_fail(in, FT_EFORMAT,
                        "found no text under a known name (text, sentence, source, prompt, or "
                        "question and context); name the field with --fields");
}

static ft_status copy_text(char **out, const ft_json_reader *in, const char *name)
{
    const char *text;
    FT_TRY(ft_json_read_string(in, name, &text));
    *out = ft_strdup(text);
    return *out == NULL ? ft_json_fail_no_memory(in) : FT_OK;
}

ft_status ft_example_parse(ft_example *out, ft_example_fields *fields, const ft_examples *list,
                           const char *line, ft_error *err)
{
    char label[256], first[MAX_NAME], second[MAX_NAME];
    ft_json_reader in = { .file = label, .err = err };
    snprintf(label, sizeof label, "%.200s: line %zu", list->name, list->count);
    FT_TRY(ft_json_load(&in, JSON_OBJECT, line, strlen(line), FT_TEXT_MAX_BYTES));
    out->json = in.json;
    FT_TRY(choose_names(fields, &in));
    split_names(fields->names, first, second);
    FT_TRY(copy_text(&out->text, &in, first));
    return second[0] == '\0' ? FT_OK : copy_text(&out->pair, &in, second);
}
