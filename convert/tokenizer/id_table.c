/*
 * id_table.c - SentencePiece splits the text and vocab.json gives the ids: Marian and M2M100.
 *
 * The table has tokens that the pieces have not: those of the other language, which are only
 * decoded. And the pieces may have some that the table has not: they stand behind the tokens of the
 * table, where the encoder reads the unknown token.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "convert/tokenizer/tokenizer_class.h"
#include "convert/tokenizer/draft/piece_file.h"
#include "convert/tokenizer/draft/special_names.h"
#include "convert/tokenizer/draft/vocabulary_files.h"
#include "runtime/error.h"
#include "runtime/mem.h"

#include <inttypes.h>
#include <string.h>

/* The table with the pieces of a model. */
typedef struct {
    const ft_tokenizer_source *source;
    ft_tokenizer_draft ids; /* the tokens of the table by their ids */
    json_t *vocab;          /* the same, which owns the texts */
    ft_piece_file file;
    ft_vocabulary piece; /* the pieces by their positions */
    ft_piece_list list;
} id_table;

static ft_status no_memory(const id_table *table)
{
    return ft_fail(table->source->err, FT_ENOMEM, "%s: no memory for its tokenizer",
                   table->source->folder);
}

static void close_table(id_table *table)
{
    ft_tokenizer_draft_fini(&table->ids);
    json_decref(table->vocab);
    ft_piece_file_close(&table->file);
    ft_vocabulary_fini(&table->piece);
    ft_piece_list_fini(&table->list);
}

/* ---- The table ------------------------------------------------------------------------------ */

static ft_status check_gaps(const id_table *table, const char *name)
{
    const ft_vocabulary *ids = &table->ids.vocabulary;
    const ft_vocabulary_token *last =
        ids->count == 0
            ? NULL
            : &ids->token[ids->by_id == NULL ? ids->count - 1 : ids->by_id[ids->count - 1]];
    if (last != NULL && (size_t) last->id == ids->count - 1)
        return FT_OK;
    return ft_fail(table->source->err, FT_EUNSUPPORTED,
                   "%s: found id %" PRId32 " in %zu tokens, expected the ids from 0 on", name,
                   last == NULL ? 0 : last->id, ids->count);
}

static ft_status index_pieces(id_table *table)
{
    const ft_sentencepiece *model = &table->file.model;
    for (size_t i = 0; i < model->count; i++) {
        const ft_piece *piece = &model->piece[i];
        ft_status rc = ft_vocabulary_add(&table->piece, piece->text, piece->bytes, (int32_t) i);
        if (rc == FT_EARG)
            return ft_fail(table->source->err, FT_EFORMAT, "%s: piece %zu: \"%.*s\" is there twice",
                           model->file, i, (int) ft_min_size(piece->bytes, 64), piece->text);
        if (rc != FT_OK)
            return no_memory(table);
    }
    return FT_OK;
}

static ft_status open_table(id_table *table, const ft_tokenizer_source *source, const char *ids,
                            const char *pieces)
{
    table->source = source;
    table->ids.source = source;
    FT_TRY(ft_vocab_json_read(&table->ids, ids, &table->vocab));
    FT_TRY(check_gaps(table, ids));
    FT_TRY(ft_piece_file_open(&table->file, source, pieces));
    return index_pieces(table);
}

/* Whether text can contain a piece: not the unknown and the control pieces. */
static bool is_found(const ft_piece *piece)
{
    return piece->type != FT_PIECE_UNKNOWN && piece->type != FT_PIECE_CONTROL;
}

/* A token of the table with the score of its piece, or for decoding only. */
static ft_status add_token(id_table *table, const ft_vocabulary_token *token)
{
    const ft_vocabulary *ids = &table->ids.vocabulary;
    const char *text = ft_vocabulary_token_text(ids, token);
    const ft_vocabulary_token *piece = ft_vocabulary_find(&table->piece, text, token->bytes);
    if (piece != NULL && is_found(&table->file.model.piece[piece->id]))
        return ft_piece_list_add(&table->list, &table->file.model, (size_t) piece->id)
                   ? FT_OK
                   : no_memory(table);
    return ft_piece_list_add_decoded(&table->list, text, token->bytes) ? FT_OK : no_memory(table);
}

static ft_status add_tokens(id_table *table)
{
    const ft_vocabulary *ids = &table->ids.vocabulary;
    for (size_t i = 0; i < ids->count; i++)
        FT_TRY(add_token(table, ft_vocabulary_at(ids, (int32_t) i)));
    return FT_OK;
}

/* The pieces that the table has not. */
static ft_status add_unknown_pieces(id_table *table)
{
    const ft_sentencepiece *model = &table->file.model;
    table->list.n_tokens = table->list.count;
    for (size_t i = 0; i < model->count; i++) {
        const ft_piece *piece = &model->piece[i];
        if (is_found(piece) &&
            ft_vocabulary_find(&table->ids.vocabulary, piece->text, piece->bytes) == NULL &&
            !ft_piece_list_add(&table->list, model, i))
            return no_memory(table);
    }
    return FT_OK;
}

/* ---- Marian --------------------------------------------------------------------------------- */

/* ">>fra<<", the language that a multilingual model translates into, at the start of a text. */
static ft_status add_marian_languages(ft_tokenizer_draft *draft, const id_table *table)
{
    const char *text;
    json_t *id;
    json_object_foreach(table->vocab, text,
                        id) if (ft_language_form_matches(&ft_marian_languages, text))
        FT_TRY(ft_tokenizer_draft_add_token(draft, text, (ft_match_flags){ .at_start = true }));
    return FT_OK;
}

static ft_status build_marian(ft_tokenizer_draft *draft, id_table *table)
{
    ft_special_names names = { .unk = "<unk>", .eos = "</s>", .pad = "<pad>" };
    char single[2 * FT_SPECIAL_NAME_MAX], pair[2 * FT_SPECIAL_NAME_MAX];
    FT_TRY(ft_special_names_read(&names, draft->source));
    FT_TRY(ft_special_names_require(draft->source, "unk_token", names.unk));
    FT_TRY(ft_special_names_require(draft->source, "eos_token", names.eos));
    FT_TRY(add_tokens(table));
    FT_TRY(add_unknown_pieces(table));
    FT_TRY(ft_piece_model_set(draft, &table->file.model, &table->list, names.unk));
    FT_TRY(ft_piece_pipeline_set(draft, &table->file.model));
    FT_TRY(ft_special_names_add(draft, &names, false));
    FT_TRY(add_marian_languages(draft, table));
    snprintf(single, sizeof single, "$A:0 %s:0", names.eos);
    snprintf(pair, sizeof pair, "$A:0 $B:0 %s:0", names.eos);
    return ft_component_template(draft, single, pair, &draft->post_processor);
}

static ft_status build_marian_from(ft_tokenizer_draft *draft, const char *ids, const char *pieces)
{
    id_table table = { 0 };
    ft_status rc = open_table(&table, draft->source, ids, pieces);
    if (rc == FT_OK)
        rc = build_marian(draft, &table);
    close_table(&table);
    return rc;
}

ft_status ft_marian_build(ft_tokenizer_draft *draft, const ft_tokenizer_class *class)
{
    return build_marian_from(draft, class->files[2], class->files[0]);
}

/* Models with two vocabularies have a table for each. */
ft_status ft_marian_build_target(ft_tokenizer_draft *draft, const ft_tokenizer_class *class)
{
    bool separate;
    FT_TRY(ft_tokenizer_source_bool(draft->source, "separate_vocabs", false, &separate));
    return build_marian_from(draft, separate ? "target_vocab.json" : class->files[2],
                             class->files[1]);
}

/* ---- M2M100 --------------------------------------------------------------------------------- */

enum { MAX_MADE_UP = 1024, MADE_UP_SIZE = 24 };

/* fairseq pads its vocabulary with made-up words, which follow the languages. */
static ft_status add_m2m100_tokens(id_table *table, const ft_language_form *form,
                                   char (*made_up)[MADE_UP_SIZE], int32_t n_made_up)
{
    bool added = true;
    for (size_t i = 0; form->code[i] != NULL; i++)
        added =
            added && ft_piece_list_add_decoded(&table->list, form->code[i], strlen(form->code[i]));
    for (int32_t i = 0; i < n_made_up; i++)
        added = added && ft_piece_list_add_decoded(&table->list, made_up[i], strlen(made_up[i]));
    return added ? FT_OK : no_memory(table);
}

static ft_status build_m2m100(ft_tokenizer_draft *draft, id_table *table,
                              const ft_language_form *form)
{
    ft_special_names names = {
        .unk = "<unk>", .bos = "<s>", .eos = "</s>", .sep = "</s>", .pad = "<pad>"
    };
    char made_up[MAX_MADE_UP][MADE_UP_SIZE], single[4 * FT_SPECIAL_NAME_MAX];
    char pair[4 * FT_SPECIAL_NAME_MAX];
    const char *language;
    int32_t n_made_up;
    const ft_tokenizer_source *source = draft->source;
    FT_TRY(ft_special_names_read(&names, source));
    FT_TRY(ft_special_names_require(source, "unk_token", names.unk));
    FT_TRY(ft_special_names_require(source, "eos_token", names.eos));
    FT_TRY(ft_tokenizer_source_count(source, "num_madeup_words", MAX_MADE_UP, 8, &n_made_up));
    for (int32_t i = 0; i < n_made_up; i++)
        snprintf(made_up[i], MADE_UP_SIZE, "madeupword%04d", (int) i);
    FT_TRY(add_tokens(table));
    FT_TRY(add_m2m100_tokens(table, form, made_up, n_made_up));
    FT_TRY(add_unknown_pieces(table));
    FT_TRY(ft_piece_model_set(draft, &table->file.model, &table->list, names.unk));
    FT_TRY(ft_piece_pipeline_set(draft, &table->file.model));
    FT_TRY(ft_special_names_add(draft, &names, false));
    for (size_t i = 0; form->code[i] != NULL; i++)
        FT_TRY(ft_tokenizer_draft_add_token(draft, form->code[i], (ft_match_flags){ 0 }));
    FT_TRY(ft_tokenizer_source_string(source, "src_lang", "en", &language));
    if (strlen(language) > 16)
        language = "";
    snprintf(single, sizeof single, "__%s__:0 $A:0 %s:0", language, names.eos);
    snprintf(pair, sizeof pair, "__%s__:0 $A:0 $B:0 %s:0", language, names.eos);
    return ft_component_template(draft, single, pair, &draft->post_processor);
}

/* The languages of two generations of models. */
static ft_status find_form(const ft_tokenizer_source *source, const ft_language_form **form)
{
    const char *codes;
    FT_TRY(ft_tokenizer_source_string(source, "language_codes", "m2m100", &codes));
    *form = strcmp(codes, "wmt21") == 0 ? &ft_wmt21_languages : &ft_m2m100_languages;
    if (*form == &ft_wmt21_languages || strcmp(codes, "m2m100") == 0)
        return FT_OK;
    return ft_fail(source->err, FT_EUNSUPPORTED,
                   "tokenizer_config.json: language_codes: found \"%.64s\", expected \"m2m100\" or "
                   "\"wmt21\"",
                   codes);
}

ft_status ft_m2m100_build(ft_tokenizer_draft *draft, const ft_tokenizer_class *class)
{
    id_table table = { 0 };
    const ft_language_form *form = NULL;
    FT_TRY(find_form(draft->source, &form));
    ft_status rc = open_table(&table, draft->source, class->files[1], class->files[0]);
    if (rc == FT_OK)
        rc = build_m2m100(draft, &table, form);
    close_table(&table);
    return rc;
}
