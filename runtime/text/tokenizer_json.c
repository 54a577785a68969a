/*
 * tokenizer_json.c - parse tokenizer.json section by section, and reject unknown fields.
 *
 * An ignored field could change every id, so objects may have no members other than those listed
 * here. Fields have no defaults, except those that old files lack.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/text/tokenizer_json.h"

#include "runtime/error.h"
#include "runtime/mem.h"
#include "runtime/text/tables/vocabulary_json.h"

#include <stdlib.h>
#include <string.h>

/* ---- Fields ------------------------------------------------------------------------------- */

/* A member that must be null or missing, or "" where that means the same. */
static ft_status require_null(const ft_json_reader *in, const char *key)
{
    const json_t *value = ft_json_get(in, key);
    const char *text = json_string_value(value);
    if (value == NULL || (text != NULL && text[0] == '\0'))
        return FT_OK;
    return ft_json_fail_value(in, FT_EUNSUPPORTED, key, value, "null");
}

/* ---- Model -------------------------------------------------------------------------------- */

/* The id of the token that "unk_token" names. */
static ft_status read_unk_token(const ft_vocabulary *vocabulary, const ft_json_reader *in,
                                int32_t *id)
{
    const char *text;
    FT_TRY(ft_json_read_string(in, "unk_token", &text));
    const ft_vocabulary_token *token = ft_vocabulary_find(vocabulary, text, strlen(text));
    if (token == NULL)
        return ft_json_fail_member(in, "unk_token", "a token of the vocabulary");
    *id = token->id;
    return FT_OK;
}

static ft_status fill_trie(ft_trie *trie, const ft_vocabulary *vocabulary, const ft_json_reader *in)
{
    for (size_t i = 0; i < vocabulary->count; i++) {
        const ft_vocabulary_token *token = &vocabulary->token[i];
        ft_status rc =
            ft_trie_add(trie, ft_vocabulary_token_text(vocabulary, token), token->bytes, token->id);
        if (rc == FT_ELIMIT)
            return ft_json_fail(in, rc, "model.vocab: more than 2^24 prefixes of tokens");
        if (rc != FT_OK)
            return ft_json_fail_no_memory(in);
    }
    return FT_OK;
}

/* Tables are located by their unescaped names. */
static ft_status require_table(const ft_json_reader *in, const char *key, ft_json_span span,
                               const char *found)
{
    if (span.end > 0)
        return FT_OK;
    return ft_json_fail(in, FT_EUNSUPPORTED,
                        "model.%s: found %s whose name has escapes, expected plain letters", key,
                        found);
}

static ft_status read_wordpiece(ft_tokenizer *t, const ft_json_reader *in)
{
    ft_wordpiece *model = &t->model.wordpiece;
    const char *prefix;
    int64_t limit;
    t->model.kind = FT_TOKEN_MODEL_WORDPIECE;
    FT_TRY(FT_JSON_REJECT_UNKNOWN(in, "type", "unk_token", "continuing_subword_prefix",
                                  "max_input_chars_per_word", "vocab"));
    FT_TRY(read_unk_token(&t->model.vocabulary, in, &model->unknown));
    FT_TRY(ft_json_read_string(in, "continuing_subword_prefix", &prefix));
    FT_TRY(ft_json_read_integer(in, "max_input_chars_per_word", 0, INT64_MAX, &limit));
    FT_TRY(fill_trie(&model->trie, &t->model.vocabulary, in));
    model->max_word_chars = (size_t) limit;
    model->has_continuation =
        ft_trie_walk(&model->trie, prefix, strlen(prefix), &model->continuation);
    return FT_OK;
}

static ft_status read_bpe(ft_tokenizer *t, const ft_json_reader *in,
                          const ft_tokenizer_tables *tables)
{
    ft_bpe *model = &t->model.bpe;
    json_t *merges;
    t->model.kind = FT_TOKEN_MODEL_BPE;
    model->unknown = -1;
    FT_TRY(FT_JSON_REJECT_UNKNOWN(in, "type", "dropout", "unk_token", "continuing_subword_prefix",
                                  "end_of_word_suffix", "fuse_unk", "byte_fallback",
                                  "ignore_merges", "vocab", "merges"));
    FT_TRY(require_null(in, "dropout"));
    FT_TRY(require_null(in, "continuing_subword_prefix"));
    FT_TRY(require_null(in, "end_of_word_suffix"));
    FT_TRY(ft_json_read_optional_bool(in, "fuse_unk", false, &model->fuse_unknown));
    FT_TRY(ft_json_read_optional_bool(in, "byte_fallback", false, &model->byte_fallback));
    FT_TRY(ft_json_read_optional_bool(in, "ignore_merges", false, &model->ignore_merges));
    if (ft_json_get(in, "unk_token") != NULL)
        FT_TRY(read_unk_token(&t->model.vocabulary, in, &model->unknown));
    FT_TRY(ft_json_read_array(in, "merges", &merges));
    FT_TRY(require_table(in, "merges", tables->merges, "an array"));
    return ft_json_read_merges(tables, &t->model.vocabulary, model, in->err);
}

/* Old files have no model.type; it follows from the other fields. */
static ft_status read_model(ft_tokenizer *t, const ft_json_reader *file,
                            const ft_tokenizer_tables *tables)
{
    ft_json_reader in, vocabulary;
    FT_TRY(ft_json_read_object(file, "model", &in));
    FT_TRY(ft_json_read_object(&in, "vocab", &vocabulary));
    FT_TRY(require_table(&in, "vocab", tables->vocab, "an object"));
    const json_t *type = json_object_get(in.json, "type");
    const char *name = json_object_get(in.json, "merges") != NULL ? "BPE" : "WordPiece";
    if (type != NULL)
        FT_TRY(ft_json_read_string(&in, "type", &name));
    if (strcmp(name, "BPE") != 0 && strcmp(name, "WordPiece") != 0)
        return ft_json_fail_value(&in, FT_EUNSUPPORTED, "type", type, "WordPiece or BPE");
    FT_TRY(ft_json_read_vocabulary(tables, &t->model.vocabulary, in.err));
    return strcmp(name, "BPE") == 0 ? read_bpe(t, &in, tables) : read_wordpiece(t, &in);
}

/* ---- The file ----------------------------------------------------------------------------- */

static ft_status read_file(ft_tokenizer *t, const ft_json_reader *file,
                           const ft_tokenizer_tables *tables)
{
    if (!json_is_object(file->json))
        return ft_json_fail(file, FT_EFORMAT, "found a JSON array, expected a JSON object");
    FT_TRY(FT_JSON_REJECT_UNKNOWN(file, "version", "truncation", "padding", "added_tokens",
                                  "normalizer", "pre_tokenizer", "post_processor", "decoder",
                                  "model"));
    const json_t *version = json_object_get(file->json, "version");
    if (version != NULL && (!json_is_string(version) || strcmp(json_string_value(version), "1.0")))
        return ft_json_fail_value(file, FT_EUNSUPPORTED, "version", version, "\"1.0\"");
    FT_TRY(read_model(t, file, tables));
    FT_TRY(ft_normalizer_read_json(&t->normalizer, file));
    FT_TRY(ft_pretokenizer_read_json(&t->pretokenizer, file));
    FT_TRY(ft_json_read_added_tokens(t, file));
    FT_TRY(ft_post_processor_read_json(&t->post_processor, file));
    return ft_decoder_read_json(&t->decoder_config, file);
}

/* Parse everything except the tables; errors give positions in the whole file. */
static ft_status parse_rest(ft_json_reader *file, const ft_tokenizer_tables *tables)
{
    json_error_t why;
    ft_strbuf rest = { 0 };
    if (!ft_tokenizer_tables_strip(tables, &rest))
        return ft_json_fail_no_memory(file);
    file->json = ft_json_parse(rest.data, rest.bytes, JSON_REJECT_DUPLICATES, &why);
    ft_strbuf_fini(&rest);
    if (file->json != NULL)
        return FT_OK;
    if (why.line < 0) /* not a syntax error: jansson ran out of memory */
        return ft_json_fail_no_memory(file);
    int line, column;
    ft_tokenizer_tables_line_column(tables, (size_t) why.position, &line, &column);
    return ft_json_fail(file, FT_EFORMAT, "line %d, column %d: not valid JSON: %s", line, column,
                        why.text);
}

ft_status ft_tokenizer_read_json(ft_tokenizer *tokenizer, const char *name, const char *json,
                                 size_t bytes, ft_error *err)
{
    ft_json_reader file = { .file = name, .err = err };
    ft_tokenizer_tables tables = { .file = name, .json = json, .bytes = bytes };
    ft_tokenizer_tables_find(&tables);
    ft_status rc = parse_rest(&file, &tables);
    if (rc == FT_OK)
        rc = read_file(tokenizer, &file, &tables);
    json_decref(file.json);
    return rc;
}
