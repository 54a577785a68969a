/*
 * draft.c - collect the tokens of a tokenizer and assemble its tokenizer.json.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "convert/tokenizer/draft/draft.h"

#include "runtime/base/json_build.h"
#include "runtime/error.h"
#include "runtime/mem.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

void ft_tokenizer_draft_init(ft_tokenizer_draft *draft, const ft_tokenizer_source *source)
{
    *draft = (ft_tokenizer_draft){ .source = source,
                                   .normalizer = json_null(),
                                   .pre_tokenizer = json_null(),
                                   .post_processor = json_null(),
                                   .decoder = json_null() };
}

void ft_tokenizer_draft_fini(ft_tokenizer_draft *draft)
{
    ft_vocabulary_fini(&draft->vocabulary);
    json_decref(draft->added);
    json_decref(draft->normalizer);
    json_decref(draft->pre_tokenizer);
    json_decref(draft->model);
    json_decref(draft->post_processor);
    json_decref(draft->decoder);
    *draft = (ft_tokenizer_draft){ 0 };
}

static ft_status no_memory(const ft_tokenizer_draft *draft)
{
    return ft_fail(draft->source->err, FT_ENOMEM, "%s: no memory for its tokenizer",
                   draft->source->folder);
}

/* ---- Vocabulary ----------------------------------------------------------------------------- */

ft_status ft_tokenizer_draft_add_piece(ft_tokenizer_draft *draft, const char *text, size_t bytes,
                                       int32_t id, const char *place)
{
    ft_status rc = ft_vocabulary_add(&draft->vocabulary, text, bytes, id);
    if (rc == FT_EARG)
        return ft_fail(draft->source->err, FT_EFORMAT, "%s: \"%.*s\" is there twice", place,
                       (int) ft_min_size(bytes, 64), text);
    return rc == FT_OK ? FT_OK : no_memory(draft);
}

int32_t ft_tokenizer_draft_id(const ft_tokenizer_draft *draft, const char *text)
{
    const ft_vocabulary_token *token = ft_vocabulary_find(&draft->vocabulary, text, strlen(text));
    return token == NULL ? -1 : token->id;
}

/* ---- Added tokens --------------------------------------------------------------------------- */

/* `id` is the one that a file gives, or -1. */
static ft_status find_or_add(ft_tokenizer_draft *draft, const char *text, int64_t id,
                             const char *file, ft_vocabulary_token **out)
{
    ft_vocabulary *vocabulary = &draft->vocabulary;
    *out = ft_vocabulary_find(vocabulary, text, strlen(text));
    int64_t expected = *out != NULL ? (*out)->id : (int64_t) vocabulary->count;
    if (id >= 0 && id != expected)
        return ft_fail(draft->source->err, FT_EUNSUPPORTED,
                       "%s: \"%.64s\": found id %" PRId64 ", expected %" PRId64 ", %s", file, text,
                       id, expected, *out != NULL ? "as in the vocabulary" : "the next free one");
    if (*out != NULL)
        return FT_OK;
    if (expected > INT32_MAX ||
        ft_vocabulary_add(vocabulary, text, strlen(text), (int32_t) expected) != FT_OK)
        return no_memory(draft);
    *out = &vocabulary->token[vocabulary->count - 1];
    return FT_OK;
}

static ft_status add_token(ft_tokenizer_draft *draft, const char *text, int64_t id,
                           ft_match_flags flags, const char *file)
{
    ft_vocabulary_token *token = NULL;
    if (text[0] == '\0')
        return ft_fail(draft->source->err, FT_EFORMAT, "%s: an added token has no text", file);
    FT_TRY(find_or_add(draft, text, id, file, &token));
    if (token->added)
        return FT_OK;
    token->added = true;
    if (draft->added == NULL)
        draft->added = json_array();
    json_t *entry =
        json_pack("{si ss sb sb sb sb sb}", "id", (int) token->id, "content", text, "single_word",
                  flags.single_word, "lstrip", flags.lstrip, "rstrip", flags.rstrip, "normalized",
                  flags.normalized, "special", !flags.plain);
    if (flags.at_start)
        ft_json_set(&entry, "at_start", json_true());
    ft_json_append(&draft->added, entry);
    return draft->added == NULL ? no_memory(draft) : FT_OK;
}

ft_status ft_tokenizer_draft_add_token(ft_tokenizer_draft *draft, const char *text,
                                       ft_match_flags flags)
{
    return add_token(draft, text, -1, flags, "special_tokens_map.json");
}

/* A token with its id in one of the lists. */
typedef struct {
    int64_t id;
    const char *text;
    ft_match_flags flags;
} listed_token;

static int by_id(const void *a, const void *b)
{
    const listed_token *left = a, *right = b;
    return (left->id > right->id) - (left->id < right->id);
}

static ft_status add_sorted(ft_tokenizer_draft *draft, listed_token *list, size_t count,
                            const char *file)
{
    qsort(list, count, sizeof *list, by_id);
    for (size_t i = 0; i < count; i++)
        FT_TRY(add_token(draft, list[i].text, list[i].id, list[i].flags, file));
    return FT_OK;
}

/* "added_tokens_decoder": {"0": {"content": "[PAD]", "lstrip": false, ..., "special": true}}. */
static ft_status read_described(const ft_json_reader *in, const char *key, json_t *value,
                                listed_token *out)
{
    ft_json_reader token = *in;
    bool special;
    char *end;
    out->id = strtoll(key, &end, 10);
    if (*end != '\0' || end == key || out->id < 0 || out->id > INT32_MAX || !json_is_object(value))
        return ft_json_fail(in, FT_EFORMAT,
                            "added_tokens_decoder: found \"%.64s\", expected an id and an object",
                            key);
    token.json = value;
    snprintf(token.path, sizeof token.path, "added_tokens_decoder.%.16s.", key);
    FT_TRY(ft_json_read_string(&token, "content", &out->text));
    FT_TRY(ft_json_read_optional_bool(&token, "single_word", false, &out->flags.single_word));
    FT_TRY(ft_json_read_optional_bool(&token, "lstrip", false, &out->flags.lstrip));
    FT_TRY(ft_json_read_optional_bool(&token, "rstrip", false, &out->flags.rstrip));
    FT_TRY(ft_json_read_optional_bool(&token, "special", false, &special));
    out->flags.plain = !special;
    return ft_json_read_optional_bool(&token, "normalized", !special, &out->flags.normalized);
}

static ft_status read_all_described(const ft_json_reader *in, json_t *object, listed_token *list)
{
    const char *key;
    json_t *value;
    size_t count = 0;
    json_object_foreach(object, key, value) FT_TRY(read_described(in, key, value, &list[count++]));
    return FT_OK;
}

/* Whether a text has one of the roles of special tokens. */
static bool has_role(const ft_tokenizer_source *source, const char *text)
{
    static const char *const roles[] = { "unk_token", "bos_token", "eos_token", "sep_token",
                                         "pad_token", "cls_token", "mask_token" };
    for (size_t i = 0; i < FT_COUNT(roles); i++) {
        const char *name = ft_tokenizer_source_role(source, roles[i], NULL);
        if (name != NULL && strcmp(name, text) == 0)
            return true;
    }
    return false;
}

/* added_tokens.json: {"text": id}. */
static ft_status read_all_added(const ft_tokenizer_source *source, listed_token *list)
{
    const char *text;
    json_t *id;
    size_t count = 0;
    json_object_foreach(source->added_tokens, text, id)
    {
        if (!json_is_integer(id) || json_integer_value(id) < 0)
            return ft_fail(source->err, FT_EFORMAT, "added_tokens.json: \"%.64s\" has no id", text);
        bool special = has_role(source, text);
        list[count++] = (listed_token){ .id = json_integer_value(id),
                                        .text = text,
                                        .flags = { .plain = !special, .normalized = !special } };
    }
    return FT_OK;
}

ft_status ft_tokenizer_draft_add_listed(ft_tokenizer_draft *draft)
{
    const ft_tokenizer_source *source = draft->source;
    ft_json_reader in = { .json = source->config,
                          .file = "tokenizer_config.json",
                          .err = source->err };
    json_t *described = ft_json_get(&in, "added_tokens_decoder");
    const size_t n_described = json_object_size(described);
    const size_t n_added = json_object_size(source->added_tokens);
    if (described != NULL && !json_is_object(described))
        return ft_json_fail_member(&in, "added_tokens_decoder", "an object");
    listed_token *list = ft_calloc(n_described + n_added, sizeof *list);
    if (list == NULL)
        return no_memory(draft);
    ft_status rc = read_all_described(&in, described, list);
    if (rc == FT_OK)
        rc = add_sorted(draft, list, n_described, in.file);
    if (rc == FT_OK)
        rc = read_all_added(source, list + n_described);
    if (rc == FT_OK)
        rc = add_sorted(draft, list + n_described, n_added, "added_tokens.json");
    free(list);
    return rc;
}

static ft_status add_extra_of(ft_tokenizer_draft *draft, const json_t *list)
{
    size_t i;
    json_t *token;
    json_array_foreach(list, i, token)
    {
        const char *text =
            json_string_value(json_is_object(token) ? json_object_get(token, "content") : token);
        if (text == NULL)
            return ft_fail(draft->source->err, FT_EFORMAT,
                           "additional_special_tokens: element %zu is no token", i);
        FT_TRY(ft_tokenizer_draft_add_token(draft, text, (ft_match_flags){ 0 }));
    }
    return FT_OK;
}

ft_status ft_tokenizer_draft_add_extra(ft_tokenizer_draft *draft)
{
    static const char *const keys[] = { "additional_special_tokens", "extra_special_tokens" };
    for (size_t i = 0; i < FT_COUNT(keys); i++) {
        FT_TRY(add_extra_of(draft, json_object_get(draft->source->config, keys[i])));
        FT_TRY(add_extra_of(draft, json_object_get(draft->source->special_map, keys[i])));
    }
    return FT_OK;
}

/* ---- Result --------------------------------------------------------------------------------- */

static int added_by_id(const void *a, const void *b)
{
    json_int_t left = json_integer_value(json_object_get(*(json_t *const *) a, "id"));
    json_int_t right = json_integer_value(json_object_get(*(json_t *const *) b, "id"));
    return (left > right) - (left < right);
}

/* The array in the order of ids, as the `tokenizers` library writes it; takes `list` over. */
static json_t *sort_added(json_t *list)
{
    size_t count = json_array_size(list);
    json_t **token = ft_calloc(count, sizeof *token), *sorted = json_array();
    for (size_t i = 0; i < count && token != NULL; i++)
        token[i] = json_array_get(list, i);
    if (token != NULL)
        qsort(token, count, sizeof(json_t *), added_by_id);
    for (size_t i = 0; i < count; i++)
        ft_json_append(&sorted, token == NULL ? NULL : json_incref(token[i]));
    free(token);
    json_decref(list);
    return sorted;
}

json_t *ft_tokenizer_draft_finish(ft_tokenizer_draft *draft)
{
    json_t *file = json_pack("{ss sn sn}", "version", "1.0", "truncation", "padding");
    json_t *added = sort_added(draft->added);
    draft->added = NULL;
    ft_json_set(&file, "added_tokens", added);
    ft_json_set(&file, "normalizer", draft->normalizer);
    ft_json_set(&file, "pre_tokenizer", draft->pre_tokenizer);
    ft_json_set(&file, "post_processor", draft->post_processor);
    ft_json_set(&file, "decoder", draft->decoder);
    ft_json_set(&file, "model", draft->model);
    draft->normalizer = draft->pre_tokenizer = draft->post_processor = NULL;
    draft->decoder = draft->model = NULL;
    return file;
}
