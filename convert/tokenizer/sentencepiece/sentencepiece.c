/*
 * sentencepiece.c - the fields of sentencepiece_model.proto that decide how text is split.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "convert/tokenizer/sentencepiece/sentencepiece.h"

#include "convert/tokenizer/sentencepiece/wire.h"
#include "runtime/base/utf8.h"
#include "runtime/error.h"
#include "runtime/mem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MIN_CAPACITY = 1024 };

/* ---- Pieces --------------------------------------------------------------------------------- */

static ft_status check_piece(const ft_wire_reader *reader, const ft_piece *piece, size_t index,
                             int32_t type)
{
    const unsigned char *at = reader->at;
    if (piece->bytes == 0)
        return ft_wire_fail(reader, at, FT_EFORMAT, "piece %zu has no text", index);
    if (piece->bytes > FT_PIECE_MAX_BYTES)
        return ft_wire_fail(reader, at, FT_ELIMIT, "piece %zu: %zu bytes, expected at most %d",
                            index, piece->bytes, FT_PIECE_MAX_BYTES);
    if (ft_utf8_valid_prefix(piece->text, piece->bytes) < piece->bytes ||
        memchr(piece->text, '\0', piece->bytes) != NULL)
        return ft_wire_fail(reader, at, FT_EFORMAT, "piece %zu is not valid UTF-8", index);
    if (!isfinite(piece->score))
        return ft_wire_fail(reader, at, FT_EFORMAT, "piece %zu has no finite score", index);
    if (type < FT_PIECE_NORMAL || type > FT_PIECE_BYTE)
        return ft_wire_fail(reader, at, FT_EFORMAT, "piece %zu: found type %d, expected 1 to 6",
                            index, (int) type);
    return FT_OK;
}

/* message SentencePiece { string piece = 1; float score = 2; Type type = 3; } */
static ft_status read_piece(const ft_wire_reader *reader, size_t index, ft_piece *piece)
{
    ft_wire_reader in = *reader;
    ft_wire_field field;
    int32_t type = FT_PIECE_NORMAL;
    bool more;
    *piece = (ft_piece){ .text = "" };
    for (;;) {
        FT_TRY(ft_wire_next(&in, &field, &more));
        if (!more)
            break;
        if (field.number == 1)
            FT_TRY(ft_wire_string(&in, &field, &piece->text, &piece->bytes));
        else if (field.number == 2)
            FT_TRY(ft_wire_float(&in, &field, &piece->score));
        else if (field.number == 3)
            FT_TRY(ft_wire_int32(&in, &field, &type));
    }
    piece->type = (ft_piece_type) type;
    return check_piece(reader, piece, index, type);
}

static ft_status add_piece(ft_sentencepiece *model, const ft_wire_reader *in)
{
    if (model->count == FT_PIECES_MAX_COUNT)
        return ft_wire_fail(in, in->at, FT_ELIMIT, "more than %d pieces", FT_PIECES_MAX_COUNT);
    if (model->count == model->capacity) {
        ft_piece *piece =
            ft_array_grow(model->piece, &model->capacity, MIN_CAPACITY, sizeof *piece);
        if (piece == NULL)
            return ft_fail(in->err, FT_ENOMEM, "%s: no memory", in->file);
        model->piece = piece;
    }
    FT_TRY(read_piece(in, model->count, &model->piece[model->count]));
    model->count++;
    return FT_OK;
}

/* ---- Settings ------------------------------------------------------------------------------- */

static ft_status read_trainer(ft_sentencepiece *model, ft_wire_reader in)
{
    ft_wire_field field;
    for (bool more = true;;) {
        FT_TRY(ft_wire_next(&in, &field, &more));
        if (!more)
            return FT_OK;
        if (field.number == 3)
            FT_TRY(ft_wire_int32(&in, &field, &model->kind));
        else if (field.number == 24)
            FT_TRY(ft_wire_bool(&in, &field, &model->whitespace_as_suffix));
        else if (field.number == 35)
            FT_TRY(ft_wire_bool(&in, &field, &model->byte_fallback));
    }
}

static ft_status read_normalizer(ft_sentencepiece *model, ft_wire_reader in)
{
    ft_wire_field field;
    for (bool more = true;;) {
        FT_TRY(ft_wire_next(&in, &field, &more));
        if (!more)
            return FT_OK;
        if (field.number == 2)
            FT_TRY(ft_wire_string(&in, &field, &model->charsmap, &model->charsmap_bytes));
        else if (field.number == 3)
            FT_TRY(ft_wire_bool(&in, &field, &model->add_dummy_prefix));
        else if (field.number == 4)
            FT_TRY(ft_wire_bool(&in, &field, &model->remove_extra_whitespaces));
        else if (field.number == 5)
            FT_TRY(ft_wire_bool(&in, &field, &model->escape_whitespaces));
    }
}

static ft_status read_denormalizer(ft_sentencepiece *model, ft_wire_reader in)
{
    ft_wire_field field;
    for (bool more = true;;) {
        FT_TRY(ft_wire_next(&in, &field, &more));
        if (!more)
            return FT_OK;
        model->denormalizes |= field.number == 2 && field.size > 0;
    }
}

/* ---- The file ------------------------------------------------------------------------------- */

/* message ModelProto: pieces = 1, trainer_spec = 2, normalizer_spec = 3, denormalizer_spec = 5. */
static ft_status read_fields(ft_sentencepiece *model, ft_wire_reader *in)
{
    ft_wire_field field;
    ft_wire_reader nested;
    for (bool more = true;;) {
        FT_TRY(ft_wire_next(in, &field, &more));
        if (!more)
            return FT_OK;
        if (field.number > 5 || field.number == 4)
            continue;
        FT_TRY(ft_wire_open(in, &field, &nested));
        if (field.number == 1)
            FT_TRY(add_piece(model, &nested));
        else if (field.number == 2)
            FT_TRY(read_trainer(model, nested));
        else if (field.number == 3)
            FT_TRY(read_normalizer(model, nested));
        else
            FT_TRY(read_denormalizer(model, nested));
    }
}

static ft_status find_unknown(ft_sentencepiece *model, ft_error *err)
{
    size_t found = 0;
    for (size_t i = 0; i < model->count; i++)
        if (model->piece[i].type == FT_PIECE_UNKNOWN) {
            model->unk_id = (int32_t) i;
            found++;
        }
    if (found == 1)
        return FT_OK;
    return ft_fail(err, FT_EFORMAT, "%s: found %zu pieces of type UNKNOWN in %zu, expected one",
                   model->file, found, model->count);
}

static ft_status check_settings(const ft_sentencepiece *model, ft_error *err)
{
    if (model->kind != FT_SENTENCEPIECE_UNIGRAM && model->kind != FT_SENTENCEPIECE_BPE)
        return ft_fail(err, FT_EUNSUPPORTED,
                       "%s: trainer_spec.model_type: found %d, expected 1 (unigram) or 2 (bpe)",
                       model->file, (int) model->kind);
    if (model->whitespace_as_suffix)
        return ft_fail(err, FT_EUNSUPPORTED,
                       "%s: trainer_spec.treat_whitespace_as_suffix: found true, expected false",
                       model->file);
    if (!model->escape_whitespaces)
        return ft_fail(err, FT_EUNSUPPORTED,
                       "%s: normalizer_spec.escape_whitespaces: found false, expected true",
                       model->file);
    if (model->denormalizes)
        return ft_fail(err, FT_EUNSUPPORTED,
                       "%s: denormalizer_spec: found a precompiled_charsmap, expected none",
                       model->file);
    return FT_OK;
}

ft_status ft_sentencepiece_read(ft_sentencepiece *model, const char *name, const char *data,
                                size_t bytes, ft_error *err)
{
    const unsigned char *start = (const unsigned char *) data;
    ft_wire_reader in = {
        .file = name, .start = start, .at = start, .end = start + bytes, .err = err
    };
    *model = (ft_sentencepiece){ .file = name,
                                 .kind = FT_SENTENCEPIECE_UNIGRAM,
                                 .charsmap = "",
                                 .add_dummy_prefix = true,
                                 .remove_extra_whitespaces = true,
                                 .escape_whitespaces = true };
    FT_TRY(read_fields(model, &in));
    FT_TRY(find_unknown(model, err));
    return check_settings(model, err);
}

void ft_sentencepiece_fini(ft_sentencepiece *model)
{
    free(model->piece);
    *model = (ft_sentencepiece){ 0 };
}
