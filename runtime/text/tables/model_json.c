/*
 * model_json.c - read the settings of each kind of model, and its tables.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/text/tables/model_json.h"

#include "runtime/error.h"
#include "runtime/mem.h"

#include <string.h>

/* ---- Fields ------------------------------------------------------------------------------- */

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

/* Where the tokens start that the model splits text into, but does not have; see ft-artifact(5). */
static ft_status read_unknown_from(const ft_json_reader *in, int32_t *id)
{
    return ft_json_read_optional_int32(in, "unknown_from", 0, INT32_MAX, INT32_MAX, id);
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

/* ---- WordPiece and WordLevel -------------------------------------------------------------- */

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

static ft_status read_wordpiece(ft_token_model *model, const ft_json_reader *in,
                                const ft_tokenizer_tables *tables)
{
    ft_wordpiece *wordpiece = &model->wordpiece;
    const char *prefix;
    int64_t limit;
    model->kind = FT_TOKEN_MODEL_WORDPIECE;
    FT_TRY(FT_JSON_REJECT_UNKNOWN(in, "type", "unk_token", "continuing_subword_prefix",
                                  "max_input_chars_per_word", "vocab"));
    FT_TRY(ft_json_read_vocabulary(tables, &model->vocabulary, in->err));
    FT_TRY(read_unk_token(&model->vocabulary, in, &wordpiece->unknown));
    FT_TRY(ft_json_read_string(in, "continuing_subword_prefix", &prefix));
    FT_TRY(ft_json_read_integer(in, "max_input_chars_per_word", 0, INT64_MAX, &limit));
    FT_TRY(fill_trie(&wordpiece->trie, &model->vocabulary, in));
    wordpiece->max_word_chars = (size_t) limit;
    wordpiece->has_continuation =
        ft_trie_walk(&wordpiece->trie, prefix, strlen(prefix), &wordpiece->continuation);
    return FT_OK;
}

static ft_status read_word_level(ft_token_model *model, const ft_json_reader *in,
                                 const ft_tokenizer_tables *tables)
{
    model->kind = FT_TOKEN_MODEL_WORD_LEVEL;
    FT_TRY(FT_JSON_REJECT_UNKNOWN(in, "type", "unk_token", "vocab"));
    FT_TRY(ft_json_read_vocabulary(tables, &model->vocabulary, in->err));
    return read_unk_token(&model->vocabulary, in, &model->word_level.unknown);
}

/* ---- BPE ---------------------------------------------------------------------------------- */

/* Training drops merges at random; encoding must not. */
static ft_status require_no_dropout(const ft_json_reader *in)
{
    const json_t *dropout = ft_json_get(in, "dropout");
    if (dropout == NULL || (json_is_number(dropout) && json_number_value(dropout) == 0))
        return FT_OK;
    return ft_json_fail_value(in, FT_EUNSUPPORTED, "dropout", dropout, "null or 0");
}

/*
 * A copy of an optional string; NULL where it is missing, null or empty. The library cuts prefixes
 * off by their number of characters, counted in bytes, so they must be ASCII.
 */
static ft_status read_affix(const ft_json_reader *in, const char *key, char **out)
{
    enum { MAX_AFFIX = 64 };
    const char *text;
    if (ft_json_get(in, key) == NULL)
        return FT_OK;
    FT_TRY(ft_json_read_string(in, key, &text));
    size_t bytes = strlen(text);
    for (size_t i = 0; i < bytes; i++)
        if ((text[i] & 0x80) != 0 || i == MAX_AFFIX)
            return ft_json_fail_value(in, FT_EUNSUPPORTED, key, json_object_get(in->json, key),
                                      "at most 64 ASCII characters");
    *out = bytes > 0 ? ft_strdup(text) : NULL;
    return bytes > 0 && *out == NULL ? ft_json_fail_no_memory(in) : FT_OK;
}

static ft_status read_bpe(ft_token_model *model, const ft_json_reader *in,
                          const ft_tokenizer_tables *tables)
{
    ft_bpe *bpe = &model->bpe;
    json_t *merges;
    model->kind = FT_TOKEN_MODEL_BPE;
    bpe->unknown = -1;
    FT_TRY(FT_JSON_REJECT_UNKNOWN(in, "type", "dropout", "unk_token", "continuing_subword_prefix",
                                  "end_of_word_suffix", "fuse_unk", "byte_fallback",
                                  "ignore_merges", "vocab", "merges", "unknown_from"));
    FT_TRY(require_no_dropout(in));
    FT_TRY(ft_json_read_vocabulary(tables, &model->vocabulary, in->err));
    FT_TRY(read_affix(in, "continuing_subword_prefix", &bpe->prefix));
    FT_TRY(read_affix(in, "end_of_word_suffix", &bpe->suffix));
    FT_TRY(ft_json_read_optional_bool(in, "fuse_unk", false, &bpe->fuse_unknown));
    FT_TRY(ft_json_read_optional_bool(in, "byte_fallback", false, &bpe->byte_fallback));
    FT_TRY(ft_json_read_optional_bool(in, "ignore_merges", false, &bpe->ignore_merges));
    FT_TRY(read_unknown_from(in, &bpe->unknown_from));
    if (ft_json_get(in, "unk_token") != NULL)
        FT_TRY(read_unk_token(&model->vocabulary, in, &bpe->unknown));
    else if (bpe->unknown_from < INT32_MAX)
        return ft_json_fail_member(in, "unk_token", "a token, which unknown_from needs");
    FT_TRY(ft_json_read_array(in, "merges", &merges));
    FT_TRY(require_table(in, "merges", tables->merges, "an array"));
    return ft_json_read_merges(tables, &model->vocabulary, bpe, in->err);
}

/* ---- Unigram ------------------------------------------------------------------------------ */

static ft_status read_unigram(ft_token_model *model, const ft_json_reader *in,
                              const ft_tokenizer_tables *tables)
{
    ft_unigram *unigram = &model->unigram;
    int64_t unknown;
    model->kind = FT_TOKEN_MODEL_UNIGRAM;
    FT_TRY(FT_JSON_REJECT_UNKNOWN(in, "type", "unk_id", "vocab", "byte_fallback", "unknown_from"));
    FT_TRY(ft_json_read_scores(tables, &model->vocabulary, unigram, in->err));
    FT_TRY(ft_json_read_integer(in, "unk_id", 0, (int64_t) model->vocabulary.count - 1, &unknown));
    unigram->unknown = (int32_t) unknown;
    FT_TRY(read_unknown_from(in, &unigram->unknown_from));
    return ft_json_read_optional_bool(in, "byte_fallback", false, &unigram->byte_fallback);
}

/* ---- The model ---------------------------------------------------------------------------- */

static const struct {
    const char *name;
    char open; /* of the vocabulary */
    ft_status (*read)(ft_token_model *model, const ft_json_reader *in,
                      const ft_tokenizer_tables *tables);
} kinds[] = {
    { "BPE", '{', read_bpe },
    { "Unigram", '[', read_unigram },
    { "WordLevel", '{', read_word_level },
    { "WordPiece", '{', read_wordpiece },
};

/* Old files have no model.type; it follows from the other fields. */
static ft_status find_name(const ft_json_reader *in, const char **name)
{
    *name = json_is_array(json_object_get(in->json, "vocab")) ? "Unigram"
            : json_object_get(in->json, "merges") != NULL     ? "BPE"
                                                              : "WordPiece";
    return json_object_get(in->json, "type") == NULL ? FT_OK
                                                     : ft_json_read_string(in, "type", name);
}

ft_status ft_json_read_model(ft_token_model *model, const ft_json_reader *file,
                             const ft_tokenizer_tables *tables)
{
    ft_json_reader in;
    const char *name;
    FT_TRY(ft_json_read_object(file, "model", &in));
    FT_TRY(find_name(&in, &name));
    for (size_t i = 0; i < FT_COUNT(kinds); i++) {
        if (strcmp(kinds[i].name, name) != 0)
            continue;
        const json_t *vocab = json_object_get(in.json, "vocab");
        bool array = kinds[i].open == '[';
        if (array ? !json_is_array(vocab) : !json_is_object(vocab))
            return ft_json_fail_member(&in, "vocab", array ? "an array" : "an object");
        FT_TRY(require_table(&in, "vocab", tables->vocab, array ? "an array" : "an object"));
        return kinds[i].read(model, &in, tables);
    }
    return ft_json_fail_value(&in, FT_EUNSUPPORTED, "type", json_object_get(in.json, "type"),
                              "BPE, Unigram, WordLevel or WordPiece");
}
