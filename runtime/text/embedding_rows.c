/*
 * embedding_rows.c - compare the ids of a tokenizer with the rows of the embedding.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/text/embedding_rows.h"

#include "runtime/error.h"
#include "runtime/mem.h"
#include "runtime/text/tokenizer.h"

#include <inttypes.h>

enum { MAX_NAMED = 8 }; /* tokens that a note names */

/* A token for messages: at most 64 bytes of its text. */
typedef struct {
    const char *text;
    int bytes;
} token_name;

static token_name name_of(const ft_tokenizer *tokenizer, int32_t id)
{
    size_t bytes = 0;
    const char *text = ft_tokenizer_id_to_token(tokenizer, id, &bytes);
    return (token_name){ text != NULL ? text : "", (int) ft_min_size(bytes, 64) };
}

/* ---- The tokens of the model ---------------------------------------------------------------- */

/* Ids from here on are encoded as the unknown token. */
static int32_t unknown_from(const ft_token_model *model)
{
    return model->kind == FT_TOKEN_MODEL_BPE       ? model->bpe.unknown_from
           : model->kind == FT_TOKEN_MODEL_UNIGRAM ? model->unigram.unknown_from
                                                   : INT32_MAX;
}

/* The largest id that the model produces, or -1. */
static int32_t largest_id(const ft_token_model *model)
{
    const ft_vocabulary *vocabulary = &model->vocabulary;
    const int32_t end = unknown_from(model);
    int32_t largest = -1;
    for (size_t i = 0; i < vocabulary->count; i++) {
        const ft_vocabulary_token *token = &vocabulary->token[i];
        if (!token->foreign && token->id < end && token->id > largest)
            largest = token->id;
    }
    return largest;
}

static ft_status check_model(const ft_tokenizer *tokenizer, int32_t rows, ft_error *err)
{
    const int32_t id = largest_id(&tokenizer->model);
    if (id < rows)
        return FT_OK;
    const token_name name = name_of(tokenizer, id);
    return ft_fail(err, FT_EUNSUPPORTED,
                   "%s: model.vocab: \"%.*s\" has id %" PRId32 ", but the vocab_size of the model "
                   "is %" PRId32 ": take the tokenizer that was saved with these weights",
                   tokenizer->name, name.bytes, name.text, id, rows);
}

/* ---- The tokens of the post-processor ------------------------------------------------------- */

static ft_status check_template(const ft_tokenizer *tokenizer, const ft_template *template,
                                int32_t rows, ft_error *err)
{
    for (size_t i = 0; i < template->count; i++) {
        const int32_t id = template->piece[i].id;
        if (template->piece[i].kind != FT_TEMPLATE_SPECIAL || id < rows)
            continue;
        const token_name name = name_of(tokenizer, id);
        return ft_fail(err, FT_EUNSUPPORTED,
                       "%s: post_processor: adds \"%.*s\" with id %" PRId32 " to each text, "
                       "but the vocab_size of the model is %" PRId32,
                       tokenizer->name, name.bytes, name.text, id, rows);
    }
    return FT_OK;
}

/* ---- Added tokens --------------------------------------------------------------------------- */

/* The end of a note, where more text goes, and the room there. */
static char *end_of(ft_error *note, size_t *room)
{
    const size_t used = strlen(note->text);
    *room = sizeof note->text - used;
    return note->text + used;
}

static void note_token(const ft_tokenizer *tokenizer, int32_t id, bool first, ft_error *note)
{
    size_t room;
    char *end = end_of(note, &room);
    const token_name name = name_of(tokenizer, id);
    snprintf(end, room, "%s\"%.*s\" (%" PRId32 ")", first ? "" : ", ", name.bytes, name.text, id);
}

static void note_others(int32_t count, ft_error *note)
{
    size_t room;
    char *end = end_of(note, &room);
    snprintf(end, room, " and %" PRId32 " more", count);
}

static void note_added(const ft_tokenizer *tokenizer, int32_t rows, ft_error *note)
{
    const ft_vocabulary *vocabulary = &tokenizer->model.vocabulary;
    int32_t found = 0;
    *note = (ft_error){ .code = FT_EUNSUPPORTED };
    for (size_t i = 0; i < vocabulary->count; i++) {
        const ft_vocabulary_token *token = &vocabulary->token[i];
        if (!token->foreign || token->id < rows)
            continue;
        if (found < MAX_NAMED)
            note_token(tokenizer, token->id, found == 0, note);
        found++;
    }
    if (found > MAX_NAMED)
        note_others(found - MAX_NAMED, note);
}

ft_status ft_tokenizer_check_embeddings(const ft_tokenizer *tokenizer, int32_t rows, ft_error *note,
                                        ft_error *err)
{
    const ft_post_processor *p = &tokenizer->post_processor;
    FT_TRY(check_model(tokenizer, rows, err));
    FT_TRY(check_template(tokenizer, &p->single, rows, err));
    FT_TRY(check_template(tokenizer, &p->pair, rows, err));
    note_added(tokenizer, rows, note);
    return FT_OK;
}

/* ---- Encoding ------------------------------------------------------------------------------- */

void ft_tokenizer_set_embeddings(ft_tokenizer *tokenizer, int32_t rows)
{
    tokenizer->embedding_rows = rows;
}

ft_status ft_tokenizer_require_embeddings(const ft_tokenizer *tokenizer, const int32_t *ids,
                                          size_t count, ft_error *err)
{
    const int32_t rows = tokenizer->embedding_rows;
    size_t i = 0;
    while (i < count && (rows == 0 || ids[i] < rows))
        i++;
    if (i == count)
        return FT_OK;
    const token_name name = name_of(tokenizer, ids[i]);
    return ft_fail(err, FT_EUNSUPPORTED,
                   "text: its token %zu, \"%.*s\", has id %" PRId32 ", but the vocab_size of the "
                   "model is %" PRId32 ": leave it out of the text",
                   i, name.bytes, name.text, ids[i], rows);
}
