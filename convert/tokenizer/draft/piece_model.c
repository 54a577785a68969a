/*
 * piece_model.c - models of type Unigram and BPE from the pieces of SentencePiece.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "convert/tokenizer/draft/piece_model.h"

#include "convert/tokenizer/draft/merges.h"
#include "runtime/base/json_build.h"
#include "runtime/error.h"
#include "runtime/mem.h"

#include <stdlib.h>
#include <string.h>

enum { MIN_CAPACITY = 1024 };

static ft_status no_memory(const ft_tokenizer_draft *draft, const ft_sentencepiece *model)
{
    return ft_fail(draft->source->err, FT_ENOMEM, "%s: no memory for its tokenizer", model->file);
}

/* ---- Lists of pieces ------------------------------------------------------------------------ */

void ft_piece_list_fini(ft_piece_list *list)
{
    free(list->entry);
    *list = (ft_piece_list){ 0 };
}

static bool append(ft_piece_list *list, ft_piece_entry entry)
{
    if (list->count == list->capacity) {
        ft_piece_entry *grown =
            ft_array_grow(list->entry, &list->capacity, MIN_CAPACITY, sizeof *grown);
        if (grown == NULL)
            return false;
        list->entry = grown;
    }
    list->entry[list->count++] = entry;
    return true;
}

bool ft_piece_list_add(ft_piece_list *list, const ft_sentencepiece *model, size_t index)
{
    const ft_piece *piece = &model->piece[index];
    return append(list, (ft_piece_entry){ .text = piece->text,
                                          .bytes = piece->bytes,
                                          .score = (double) piece->score,
                                          .found = piece->type != FT_PIECE_UNUSED &&
                                                   piece->type != FT_PIECE_BYTE,
                                          .normal = piece->type == FT_PIECE_NORMAL });
}

bool ft_piece_list_add_token(ft_piece_list *list, const char *text)
{
    return append(list, (ft_piece_entry){ .text = text, .bytes = strlen(text), .found = true });
}

bool ft_piece_list_add_decoded(ft_piece_list *list, const char *text, size_t bytes)
{
    return append(list, (ft_piece_entry){ .text = text, .bytes = bytes });
}

bool ft_piece_list_add_from(ft_piece_list *list, const ft_sentencepiece *model, size_t from)
{
    for (size_t i = from; i < model->count; i++)
        if (!ft_piece_list_add(list, model, i))
            return false;
    return true;
}

/* ---- Models --------------------------------------------------------------------------------- */

static ft_status add_pieces(ft_tokenizer_draft *draft, const ft_sentencepiece *model,
                            const ft_piece_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        const ft_piece_entry *entry = &list->entry[i];
        FT_TRY(ft_tokenizer_draft_add_piece(draft, entry->text, entry->bytes, (int32_t) i,
                                            model->file));
    }
    return FT_OK;
}

/* [["<unk>", 0.0], ["the", -3.5], ["<2fr>", null]] */
static json_t *scored_vocabulary(const ft_piece_list *list)
{
    json_t *vocab = json_array();
    for (size_t i = 0; i < list->count; i++) {
        const ft_piece_entry *entry = &list->entry[i];
        json_t *score = entry->found ? json_real(entry->score) : json_null();
        ft_json_append(&vocab, json_pack("[s%o]", entry->text, entry->bytes, score));
    }
    return vocab;
}

static json_t *unigram(const ft_sentencepiece *model, const ft_piece_list *list, int32_t unk)
{
    return json_pack("{ss si so sb}", "type", "Unigram", "unk_id", (int) unk, "vocab",
                     scored_vocabulary(list), "byte_fallback", model->byte_fallback);
}

/* {"<unk>": 0, "the": 259} */
static json_t *numbered_vocabulary(const ft_vocabulary *vocabulary)
{
    json_t *vocab = json_object();
    for (size_t i = 0; i < vocabulary->count && vocab != NULL; i++) {
        const ft_vocabulary_token *token = &vocabulary->token[i];
        char *text = strndup(ft_vocabulary_token_text(vocabulary, token), token->bytes);
        ft_json_set(&vocab, text != NULL ? text : "",
                    text != NULL ? json_integer(token->id) : NULL);
        free(text);
    }
    return vocab;
}

static json_t *bpe(const ft_tokenizer_draft *draft, const ft_sentencepiece *model, const char *unk,
                   json_t *merges)
{
    return json_pack("{ss sn ss sn sn sb sb sb so so}", "type", "BPE", "dropout", "unk_token", unk,
                     "continuing_subword_prefix", "end_of_word_suffix", "fuse_unk", 1,
                     "byte_fallback", model->byte_fallback, "ignore_merges", 0, "vocab",
                     numbered_vocabulary(&draft->vocabulary), "merges", merges);
}

/* tokens that split text only: see ft-artifact(5) */
static void set_n_tokens(json_t **model, const ft_piece_list *list)
{
    if (list->n_tokens > 0 && list->n_tokens < list->count)
        ft_json_set(model, "unknown_from", json_integer((json_int_t) list->n_tokens));
}

ft_status ft_piece_model_set(ft_tokenizer_draft *draft, const ft_sentencepiece *model,
                             const ft_piece_list *list, const char *unk)
{
    json_t *merges;
    FT_TRY(add_pieces(draft, model, list));
    int32_t unk_id = ft_tokenizer_draft_id(draft, unk);
    if (unk_id < 0)
        return ft_fail(draft->source->err, FT_EFORMAT, "%s: has no unknown token \"%.64s\"",
                       model->file, unk);
    if (model->kind == FT_SENTENCEPIECE_UNIGRAM) {
        draft->model = unigram(model, list, unk_id);
    } else {
        FT_TRY(
            ft_merges_derive(&merges, &draft->vocabulary, list, model->file, draft->source->err));
        draft->model = bpe(draft, model, unk, merges);
    }
    set_n_tokens(&draft->model, list);
    return draft->model == NULL ? no_memory(draft, model) : FT_OK;
}

ft_status ft_piece_added_set(ft_tokenizer_draft *draft, const ft_sentencepiece *model)
{
    for (size_t i = 0; i < model->count; i++) {
        const ft_piece *piece = &model->piece[i];
        char text[FT_PIECE_MAX_BYTES + 1];
        bool user = piece->type == FT_PIECE_USER_DEFINED;
        if (!user && piece->type != FT_PIECE_CONTROL)
            continue;
        memcpy(text, piece->text, piece->bytes);
        text[piece->bytes] = '\0';
        if (ft_tokenizer_draft_id(draft, text) >= 0)
            FT_TRY(ft_tokenizer_draft_add_token(draft, text, (ft_match_flags){ .plain = user }));
    }
    return FT_OK;
}
