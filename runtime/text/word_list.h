/*
 * word_list.h - a word-level tokenizer: a vocabulary of whole words.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_TEXT_WORD_LIST_H
#define FT_RUNTIME_TEXT_WORD_LIST_H

#include "runtime/ft.h"

/*
 * Create a tokenizer from a vocab.json, {"word": id, ...}. Text is split at white space, each piece
 * is a word or <unk>, and the word of id `end` is appended; decoding joins words by spaces. The
 * words of `special` [specials] are special tokens, which decoding can skip.
 *
 * FT_EUNSUPPORTED: subword pieces, as of SentencePiece; FT_EFORMAT: not a word list.
 */
FT_MUST_USE ft_status ft_word_level_tokenizer_open(ft_tokenizer **out, const char *json,
                                                   size_t bytes, int32_t end,
                                                   const int32_t *special, size_t n_special,
                                                   ft_error *err);

#endif
