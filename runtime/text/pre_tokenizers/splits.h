/*
 * splits.h - the steps that split a piece.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_TEXT_PRE_TOKENIZERS_SPLITS_H
#define FT_RUNTIME_TEXT_PRE_TOKENIZERS_SPLITS_H

#include "runtime/text/pre_tokenizers/pre_tokenizer.h"

/* At matches of step.regex, at characters that step.matches accepts, at step.character. */
ft_status ft_split_at_regex(const ft_piece *in);
ft_status ft_split_at_characters(const ft_piece *in);
ft_status ft_split_at_character(const ft_piece *in);

/* BertPreTokenizer: words and punctuation characters, without white space. */
ft_status ft_split_bert(const ft_piece *in);

/* Whitespace: runs of word characters and runs of others, without white space. */
ft_status ft_split_whitespace(const ft_piece *in);

/* UnicodeScripts: runs of characters of one script. */
ft_status ft_split_scripts(const ft_piece *in);

/* FixedLength: parts of step.length characters. */
ft_status ft_split_fixed_length(const ft_piece *in);

#endif
