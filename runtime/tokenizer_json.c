/*
 * tokenizer_json.c - reads tokenizer.json section by section, and refuses what it does not know.
 *
 * A field that is passed over in silence could change every id, so objects may have no members
 * but those named here.  Two habits of the `tokenizers` library matter: fields have no defaults,
 * except that "strip_accents" follows "lowercase"; and an added token has the id that the
 * vocabulary gives it or the next free one, whatever its own "id" says, so a file in which they
 * differ is refused.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/tokenizer_json.h"

#include "runtime/error.h"
#include "runtime/json_section.h"
#include "runtime/mem.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Model -------------------------------------------------------------------------------- */

static ft_status read_id(const ft_section *in, const char *key, const json_t *value, int32_t *id)
{
    int64_t wide;
    ft_status rc = ft_section_integer(in, key, value, INT32_MAX, &wide);
    *id = (int32_t) wide;
    return rc;
}

static ft_status read_vocabulary(ft_trie *trie, const ft_section *in)
{
    const char *token;
    json_t *value;
    json_object_foreach(in->json, token, value)
    {
        int32_t id;
        FT_TRY(read_id(in, token, value, &id));
        ft_status rc = ft_trie_add(trie, token, strlen(token), id);
        if (rc == FT_ELIMIT)
            return ft_fail(in->err, rc, "%s: model.vocab: more than 2^24 prefixes of tokens",
                           in->file);
        if (rc != FT_OK)
            return ft_section_no_memory(in);
    }
    return FT_OK;
}

/* Old files have no model.type; its fields tell what it is. */
static ft_status read_model(ft_wordpiece *model, const ft_section *file, ft_section *vocabulary)
{
    ft_section in;
    const char *unknown, *prefix;
    int64_t limit;
    FT_TRY(ft_section_object(file, "model", &in));
    if (json_object_get(in.json, "type") != NULL)
        FT_TRY(ft_section_type(&in, "WordPiece"));
    FT_TRY(FT_SECTION_ONLY(&in, "type", "unk_token", "continuing_subword_prefix",
                           "max_input_chars_per_word", "vocab"));
    FT_TRY(ft_section_string(&in, "unk_token", &unknown));
    FT_TRY(ft_section_string(&in, "continuing_subword_prefix", &prefix));
    FT_TRY(ft_section_integer(&in, "max_input_chars_per_word",
                              json_object_get(in.json, "max_input_chars_per_word"), INT64_MAX,
                              &limit));
    FT_TRY(ft_section_object(&in, "vocab", vocabulary));
    FT_TRY(read_vocabulary(&model->trie, vocabulary));
    FT_TRY(
        read_id(vocabulary, unknown, json_object_get(vocabulary->json, unknown), &model->unknown));
    model->max_word_chars = (size_t) limit;
    model->has_rest = ft_trie_follow(&model->trie, prefix, strlen(prefix), &model->rest);
    return FT_OK;
}

/* ---- Normalizer and words ----------------------------------------------------------------- */

/* A sequence of one is that one, and a sequence of none is null. */
static ft_status unwrap_sequence(ft_section *in)
{
    json_t *list;
    FT_TRY(FT_SECTION_ONLY(in, "type", "normalizers"));
    FT_TRY(ft_section_array(in, "normalizers", &list));
    if (json_array_size(list) > 1)
        return ft_section_wrong(in, FT_EUNSUPPORTED, "normalizers", list, "at most one of them");
    *in = ft_section_element(in, "normalizers", 0);
    return FT_OK;
}

static ft_status read_normalizer(ft_bert_normalizer *steps, const ft_section *file)
{
    ft_section in;
    const json_t *section = json_object_get(file->json, "normalizer");
    if (section == NULL || json_is_null(section))
        return FT_OK;
    FT_TRY(ft_section_object(file, "normalizer", &in));
    const char *type = json_string_value(json_object_get(in.json, "type"));
    if (type != NULL && strcmp(type, "Sequence") == 0)
        FT_TRY(unwrap_sequence(&in));
    if (in.json == NULL)
        return FT_OK;

    FT_TRY(ft_section_type(&in, "BertNormalizer"));
    FT_TRY(FT_SECTION_ONLY(&in, "type", "clean_text", "handle_chinese_chars", "strip_accents",
                           "lowercase"));
    FT_TRY(ft_section_bool(&in, "clean_text", &steps->clean_text));
    FT_TRY(ft_section_bool(&in, "handle_chinese_chars", &steps->handle_chinese_chars));
    FT_TRY(ft_section_bool(&in, "lowercase", &steps->lowercase));
    const json_t *strip = json_object_get(in.json, "strip_accents");
    if (strip != NULL && !json_is_null(strip))
        return ft_section_bool(&in, "strip_accents", &steps->strip_accents);
    steps->strip_accents = steps->lowercase;
    return FT_OK;
}

static ft_status read_pre_tokenizer(const ft_section *file)
{
    ft_section in;
    FT_TRY(ft_section_object(file, "pre_tokenizer", &in));
    FT_TRY(ft_section_type(&in, "BertPreTokenizer"));
    return FT_SECTION_ONLY(&in, "type");
}

/* ---- Added tokens ------------------------------------------------------------------------- */

typedef struct {
    const char *content; /* the JSON's */
    ft_added_token token;
    bool normalized;
} added_token;

static ft_status read_added_token(added_token *out, const ft_section *in)
{
    bool special; /* matters to decoding only */
    FT_TRY(FT_SECTION_ONLY(in, "id", "content", "single_word", "lstrip", "rstrip", "normalized",
                           "special"));
    FT_TRY(ft_section_string(in, "content", &out->content));
    FT_TRY(read_id(in, "id", json_object_get(in->json, "id"), &out->token.id));
    FT_TRY(ft_section_bool(in, "single_word", &out->token.single_word));
    FT_TRY(ft_section_bool(in, "lstrip", &out->token.lstrip));
    FT_TRY(ft_section_bool(in, "rstrip", &out->token.rstrip));
    FT_TRY(ft_section_bool(in, "normalized", &out->normalized));
    return ft_section_bool(in, "special", &special);
}

/* What the tokens added so far have taken. */
typedef struct {
    json_t *contents, *ids; /* sets: objects whose keys count */
    int64_t next_id;        /* of a token that the vocabulary does not have */
} added_so_far;

/* Put `key` into a set; `key` must be new, and `what` it is goes into the message. */
static ft_status take(json_t *set, const char *key, const ft_section *in, const char *what)
{
    if (json_object_get(set, key) != NULL)
        return ft_fail(in->err, FT_EUNSUPPORTED, "%s: %s%s: \"%.64s\" is another added token's",
                       in->file, in->path, what, key);
    return json_object_set_new(set, key, json_true()) == 0 ? FT_OK : ft_section_no_memory(in);
}

/* The id must be the vocabulary's, or the next one that is free. */
static ft_status check_added_id(added_so_far *so_far, const added_token *added,
                                const ft_section *in, json_t *vocabulary)
{
    char id[16];
    const json_t *known = json_object_get(vocabulary, added->content);
    int64_t expected = known == NULL ? so_far->next_id++ : json_integer_value(known);
    if (added->token.id != expected)
        return ft_fail(in->err, FT_EUNSUPPORTED,
                       "%s: %sid: found %" PRId32 ", expected %" PRId64 ", %s", in->file, in->path,
                       added->token.id, expected,
                       known == NULL ? "the next free one" : "as in the vocabulary");
    snprintf(id, sizeof id, "%" PRId32, added->token.id);
    FT_TRY(take(so_far->ids, id, in, "id"));
    return take(so_far->contents, added->content, in, "content");
}

/* Empty contents match everywhere, and of equal ones the library picks any: refuse both. */
static ft_status add_content(ft_added_tokens *set, const char *content, size_t bytes,
                             const added_token *added, const ft_section *in)
{
    int32_t other;
    if (bytes == 0)
        return ft_fail(in->err, FT_EUNSUPPORTED, "%s: %scontent: \"%.64s\" is empty%s", in->file,
                       in->path, added->content, added->normalized ? " when normalized" : "");
    if (ft_trie_longest(&set->trie, FT_TRIE_ROOT, content, bytes, &other) == bytes)
        return ft_fail(in->err, FT_EUNSUPPORTED,
                       "%s: %scontent: \"%.64s\" normalizes to the same text as another", in->file,
                       in->path, added->content);
    ft_status rc = ft_added_tokens_add(set, content, bytes, added->token);
    if (rc == FT_ELIMIT)
        return ft_fail(in->err, rc, "%s: added_tokens: more than 2^24 prefixes", in->file);
    return rc == FT_OK ? FT_OK : ft_section_no_memory(in);
}

/* A token that is looked for in normalized text is normalized itself. */
static ft_status add_token(ft_tokenizer *t, const added_token *added, const ft_section *in)
{
    size_t bytes = strlen(added->content);
    if (!added->normalized)
        return add_content(&t->raw, added->content, bytes, added, in);
    ft_text normal = { 0 };
    ft_status rc = ft_bert_normalize(&t->normalizer, added->content, bytes, &normal);
    if (rc == FT_OK)
        rc = add_content(&t->normalized, normal.data, normal.bytes, added, in);
    else
        rc = ft_section_no_memory(in);
    ft_text_fini(&normal);
    return rc;
}

static ft_status read_added_list(ft_tokenizer *t, const ft_section *file, size_t count,
                                 json_t *vocabulary, added_so_far *so_far)
{
    for (size_t i = 0; i < count; i++) {
        ft_section in = ft_section_element(file, "added_tokens", i);
        added_token added;
        FT_TRY(read_added_token(&added, &in));
        FT_TRY(check_added_id(so_far, &added, &in, vocabulary));
        FT_TRY(add_token(t, &added, &in));
    }
    return FT_OK;
}

static ft_status read_added_tokens(ft_tokenizer *t, const ft_section *file, json_t *vocabulary)
{
    json_t *list;
    if (json_object_get(file->json, "added_tokens") == NULL)
        return FT_OK;
    FT_TRY(ft_section_array(file, "added_tokens", &list));
    added_so_far so_far = { .contents = json_object(),
                            .ids = json_object(),
                            .next_id = (int64_t) json_object_size(vocabulary) };
    ft_status rc;
    if (so_far.contents != NULL && so_far.ids != NULL)
        rc = read_added_list(t, file, json_array_size(list), vocabulary, &so_far);
    else
        rc = ft_section_no_memory(file);
    json_decref(so_far.contents);
    json_decref(so_far.ids);
    return rc;
}

/* ---- Special tokens around the text ------------------------------------------------------- */

static ft_status append_id(ft_special_ids *ids, const ft_section *in, int32_t id)
{
    int32_t *bigger = realloc(ids->id, (ids->count + 1) * sizeof *bigger);
    if (bigger == NULL)
        return ft_section_no_memory(in);
    ids->id = bigger;
    ids->id[ids->count++] = id;
    return FT_OK;
}

/* ["[SEP]", 3]: the id counts. */
static ft_status read_pair(ft_special_ids *ids, const ft_section *in, const char *key)
{
    json_t *pair;
    int32_t id;
    FT_TRY(ft_section_array(in, key, &pair));
    FT_TRY(read_id(in, key, json_array_get(pair, 1), &id));
    return append_id(ids, in, id);
}

static ft_status read_bert_processing(ft_tokenizer *t, const ft_section *in)
{
    FT_TRY(FT_SECTION_ONLY(in, "type", "sep", "cls"));
    FT_TRY(read_pair(&t->before, in, "cls"));
    return read_pair(&t->after, in, "sep");
}

/* The ids of a template's special token stand in a table beside the template. */
static ft_status append_special(ft_special_ids *ids, const ft_section *template, const char *name)
{
    ft_section table, entry;
    json_t *list, *value;
    size_t i;
    FT_TRY(ft_section_object(template, "special_tokens", &table));
    FT_TRY(ft_section_object(&table, name, &entry));
    FT_TRY(ft_section_array(&entry, "ids", &list));
    json_array_foreach(list, i, value)
    {
        int32_t id;
        FT_TRY(read_id(&entry, "ids", value, &id));
        FT_TRY(append_id(ids, &entry, id));
    }
    return FT_OK;
}

/* {"SpecialToken": {"id": "[CLS]", "type_id": 0}}, or {"Sequence": {"id": "A", "type_id": 0}}. */
static ft_status read_piece(ft_tokenizer *t, const ft_section *template, const ft_section *piece,
                            bool *seen_text)
{
    ft_section body;
    const char *id;
    const char *kind = json_object_get(piece->json, "Sequence") ? "Sequence" : "SpecialToken";
    FT_TRY(ft_section_object(piece, kind, &body));
    FT_TRY(FT_SECTION_ONLY(piece, kind));
    FT_TRY(FT_SECTION_ONLY(&body, "id", "type_id"));
    FT_TRY(ft_section_string(&body, "id", &id));
    const json_t *type = json_object_get(body.json, "type_id");
    if (!json_is_integer(type) || json_integer_value(type) != 0)
        return ft_section_wrong(&body, FT_EUNSUPPORTED, "type_id", type, "0");
    if (strcmp(kind, "SpecialToken") == 0)
        return append_special(*seen_text ? &t->after : &t->before, template, id);
    if (strcmp(id, "A") != 0 || *seen_text)
        return ft_section_wrong(&body, FT_EUNSUPPORTED, "id", json_object_get(body.json, "id"),
                                "\"A\", once");
    *seen_text = true;
    return FT_OK;
}

/* The template "pair" is for two texts in one sequence, which encoding does not make. */
static ft_status read_template(ft_tokenizer *t, const ft_section *in)
{
    json_t *single;
    bool seen_text = false;
    FT_TRY(FT_SECTION_ONLY(in, "type", "single", "pair", "special_tokens"));
    FT_TRY(ft_section_array(in, "single", &single));
    for (size_t i = 0; i < json_array_size(single); i++) {
        ft_section piece = ft_section_element(in, "single", i);
        FT_TRY(read_piece(t, in, &piece, &seen_text));
    }
    if (!seen_text)
        return ft_section_wrong(in, FT_EUNSUPPORTED, "single", single, "one with sequence A");
    return FT_OK;
}

static ft_status read_post_processor(ft_tokenizer *t, const ft_section *file)
{
    ft_section in;
    const char *type;
    const json_t *section = json_object_get(file->json, "post_processor");
    if (section == NULL || json_is_null(section))
        return FT_OK;
    FT_TRY(ft_section_object(file, "post_processor", &in));
    FT_TRY(ft_section_string(&in, "type", &type));
    if (strcmp(type, "BertProcessing") == 0)
        return read_bert_processing(t, &in);
    if (strcmp(type, "TemplateProcessing") == 0)
        return read_template(t, &in);
    return ft_section_wrong(&in, FT_EUNSUPPORTED, "type", json_object_get(in.json, "type"),
                            "BertProcessing or TemplateProcessing");
}

/* ---- The file ----------------------------------------------------------------------------- */

static ft_status read_file(ft_tokenizer *t, const ft_section *file)
{
    ft_section vocabulary;
    if (!json_is_object(file->json))
        return ft_fail(file->err, FT_EFORMAT, "%s: found an array, expected an object", file->file);
    FT_TRY(FT_SECTION_ONLY(file, "version", "truncation", "padding", "added_tokens", "normalizer",
                           "pre_tokenizer", "post_processor", "decoder", "model"));
    const json_t *version = json_object_get(file->json, "version");
    if (version != NULL && (!json_is_string(version) || strcmp(json_string_value(version), "1.0")))
        return ft_section_wrong(file, FT_EUNSUPPORTED, "version", version, "\"1.0\"");
    FT_TRY(read_model(&t->model, file, &vocabulary));
    FT_TRY(read_normalizer(&t->normalizer, file));
    FT_TRY(read_pre_tokenizer(file));
    FT_TRY(read_added_tokens(t, file, vocabulary.json));
    return read_post_processor(t, file);
}

ft_status ft_tokenizer_read_json(ft_tokenizer *tokenizer, const char *name, const char *json,
                                 size_t bytes, ft_error *err)
{
    json_error_t why;
    ft_section file = { .file = name, .err = err };
    file.json = json_loadb(json, bytes, JSON_REJECT_DUPLICATES, &why);
    if (file.json == NULL && why.line < 0) /* no syntax error: jansson found no memory */
        return ft_section_no_memory(&file);
    if (file.json == NULL)
        return ft_fail(err, FT_EFORMAT, "%s: line %d, column %d: %s", name, why.line, why.column,
                       why.text);
    ft_status rc = read_file(tokenizer, &file);
    json_decref(file.json);
    return rc;
}
