/*
 * sentencepiece.h - read a model file of SentencePiece: tokenizer.model, spiece.model, source.spm.
 *
 * Such a file is a protobuf message: the pieces with scores and types, how the model was trained,
 * and how text is normalized.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CONVERT_TOKENIZER_SENTENCEPIECE_SENTENCEPIECE_H
#define FT_CONVERT_TOKENIZER_SENTENCEPIECE_SENTENCEPIECE_H

#include "runtime/ft.h"

typedef enum ft_piece_type {
    FT_PIECE_NORMAL = 1,
    FT_PIECE_UNKNOWN = 2, /* "<unk>" */
    FT_PIECE_CONTROL = 3, /* "<s>": never found in text */
    FT_PIECE_USER_DEFINED = 4,
    FT_PIECE_UNUSED = 5, /* decoded, but never found in text */
    FT_PIECE_BYTE = 6,   /* "<0x41>" */
} ft_piece_type;

typedef struct ft_piece {
    const char *text; /* in the file; valid UTF-8, not empty, not zero-terminated */
    size_t bytes;     /* 1 to FT_PIECE_MAX_BYTES */
    float score;      /* finite */
    ft_piece_type type;
} ft_piece;

enum {
    FT_PIECE_MAX_BYTES = 1024,     /* the trainer's default is 16 characters */
    FT_PIECES_MAX_COUNT = 1 << 22, /* the largest published models have 2^18 */
};

typedef enum ft_sentencepiece_kind {
    FT_SENTENCEPIECE_UNIGRAM = 1,
    FT_SENTENCEPIECE_BPE = 2,
} ft_sentencepiece_kind;

typedef struct ft_sentencepiece {
    const char *file; /* for messages */
    ft_piece *piece;
    size_t count, capacity;
    /* trainer_spec */
    int32_t kind;
    int32_t unk_id; /* index of a piece of type UNKNOWN, the only one */
    bool byte_fallback, whitespace_as_suffix;
    /* normalizer_spec */
    const char *charsmap; /* in the file; not zero-terminated */
    size_t charsmap_bytes;
    bool add_dummy_prefix, remove_extra_whitespaces, escape_whitespaces;
    bool denormalizes; /* denormalizer_spec has a charsmap */
} ft_sentencepiece;

/*
 * Read the bytes of a model file, to which the result points. `name` is its name in messages, which
 * give the place in bytes. On failure too, free with ft_sentencepiece_fini().
 * FT_EFORMAT: not such a file. FT_EUNSUPPORTED: pieces are neither of Unigram nor of BPE, or mark
 * spaces in another way. FT_ELIMIT: too many or too long pieces.
 */
FT_MUST_USE ft_status ft_sentencepiece_read(ft_sentencepiece *model, const char *name,
                                            const char *data, size_t bytes, ft_error *err);
void ft_sentencepiece_fini(ft_sentencepiece *model);

#endif
