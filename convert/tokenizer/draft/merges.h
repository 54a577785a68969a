/*
 * merges.h - the merges of a BPE model that SentencePiece has trained.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CONVERT_TOKENIZER_DRAFT_MERGES_H
#define FT_CONVERT_TOKENIZER_DRAFT_MERGES_H

#include "convert/tokenizer/draft/piece_model.h"

/*
 * SentencePiece stores no merges: it merges any two neighbours whose concatenation is a piece, the
 * one of the highest score first. Derive the list of all such pairs as transformers orders it:
 * by the score of the merged piece, then the lengths of its left and its right part in characters,
 * each descending; then by ids. `vocabulary` has the entries of `list`.
 * FT_ELIMIT: more than 2^23 pairs.
 */
FT_MUST_USE ft_status ft_merges_derive(json_t **merges, const ft_vocabulary *vocabulary,
                                       const ft_piece_list *list, const char *file, ft_error *err);

#endif
