/*
 * vocabulary_files.h - vocabularies of other forms than SentencePiece's: vocab.txt, one token a
 * line; vocab.json, {"token": id}; merges.txt, one pair a line.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CONVERT_TOKENIZER_DRAFT_VOCABULARY_FILES_H
#define FT_CONVERT_TOKENIZER_DRAFT_VOCABULARY_FILES_H

#include "convert/tokenizer/draft/draft.h"

/*
 * Read tokens whose ids are their line numbers from 0. Lines end with LF or CRLF; the last one may
 * be without. Adds them to the draft's vocabulary, and to *vocab as {"token": id}. Of equal lines
 * the last one counts.
 */
FT_MUST_USE ft_status ft_vocab_txt_read(ft_tokenizer_draft *draft, const char *file,
                                        json_t **vocab);

/* The same for a JSON object of tokens and ids, each id once. */
FT_MUST_USE ft_status ft_vocab_json_read(ft_tokenizer_draft *draft, const char *file,
                                         json_t **vocab);

/*
 * Read pairs of tokens of the draft, separated by one space, into *merges as [["a", "b"]]. A first
 * line "#version" and empty lines are skipped. FT_EFORMAT names the line that is no pair, or whose
 * tokens or merged token are not in the vocabulary.
 */
FT_MUST_USE ft_status ft_merges_txt_read(const ft_tokenizer_draft *draft, const char *file,
                                         json_t **merges);

#endif
