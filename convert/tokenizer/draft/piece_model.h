/*
 * piece_model.h - the sections "model", "normalizer", "pre_tokenizer" and "decoder" of a tokenizer
 * that comes from SentencePiece.
 *
 * SentencePiece's ids are the positions of pieces in its file. Most classes have other ids: a list
 * of entries in the order of their ids says where each piece goes.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CONVERT_TOKENIZER_DRAFT_PIECE_MODEL_H
#define FT_CONVERT_TOKENIZER_DRAFT_PIECE_MODEL_H

#include "convert/tokenizer/draft/components.h"
#include "convert/tokenizer/sentencepiece/sentencepiece.h"

/* The text is borrowed. */
typedef struct ft_piece_entry {
    const char *text;
    size_t bytes;
    double score;
    bool found;  /* in text; else it is only decoded */
    bool normal; /* BPE may merge it */
} ft_piece_entry;

/* The tokens of a model; the index is the id. Zero-initialized means empty. */
typedef struct ft_piece_list {
    ft_piece_entry *entry;
    size_t count, capacity;
    size_t n_tokens; /* entries from here on split text, but are encoded as unknown; 0: none */
} ft_piece_list;

void ft_piece_list_fini(ft_piece_list *list);

/* Append piece `index` of a model, or a token of score 0 that it does not have. */
FT_MUST_USE bool ft_piece_list_add(ft_piece_list *list, const ft_sentencepiece *model,
                                   size_t index);
FT_MUST_USE bool ft_piece_list_add_token(ft_piece_list *list, const char *text);

/* Append a token that text does not contain. */
FT_MUST_USE bool ft_piece_list_add_decoded(ft_piece_list *list, const char *text, size_t bytes);

/* Append pieces `from` to the last of a model. */
FT_MUST_USE bool ft_piece_list_add_from(ft_piece_list *list, const ft_sentencepiece *model,
                                        size_t from);

/*
 * Set the draft's model and vocabulary. `unk` is the text of the unknown token.
 * FT_EFORMAT: two entries have the same text, or there is no such unknown token. FT_ELIMIT: more
 * than 2^23 pairs of pieces can be merged.
 */
FT_MUST_USE ft_status ft_piece_model_set(ft_tokenizer_draft *draft, const ft_sentencepiece *model,
                                         const ft_piece_list *list, const char *unk);

/* Set the draft's normalizer, pre-tokenizer and decoder as normalizer_spec asks. */
FT_MUST_USE ft_status ft_piece_pipeline_set(ft_tokenizer_draft *draft,
                                            const ft_sentencepiece *model);

/* Add pieces of types CONTROL and USER_DEFINED that are in the vocabulary as added tokens. */
FT_MUST_USE ft_status ft_piece_added_set(ft_tokenizer_draft *draft, const ft_sentencepiece *model);

#endif
