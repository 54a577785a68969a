/*
 * word_list.h - a vocabulary of whole words as a tokenizer.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_TEXT_WORD_LIST_H
#define FT_RUNTIME_TEXT_WORD_LIST_H

#include "runtime/ft.h"

/*
 * Make a tokenizer of a vocab.json, {"word": id, ...}.  Text is cut at white space, each piece is a
 * word or <unk>, and the word of `end` stands behind; decoding puts blanks between words.  The
 * words of `special` [specials] are left out of text for people.
 *
 * FT_EUNSUPPORTED: pieces of words, as SentencePiece makes them; FT_EFORMAT: no list of words.
 */
FT_MUST_USE ft_status ft_word_list_open(ft_tokenizer **out, const char *json, size_t bytes,
                                        int32_t end, const int32_t *special, size_t specials,
                                        ft_error *err);

#endif
