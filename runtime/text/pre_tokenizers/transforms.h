/*
 * transforms.h - the steps that transform a piece.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_TEXT_PRE_TOKENIZERS_TRANSFORMS_H
#define FT_RUNTIME_TEXT_PRE_TOKENIZERS_TRANSFORMS_H

#include "runtime/text/pre_tokenizers/pre_tokenizer.h"

/* Replace each space by step.character. */
ft_status ft_replace_spaces(const ft_piece *in);

/* Prepend step.character to a piece that does not start with it. */
ft_status ft_prepend_character(const ft_piece *in);

/* Map each byte to the character of byte-level vocabularies. */
ft_status ft_bytes_to_chars(const ft_piece *in);

#endif
