/*
 * unicode.h - character properties as in the Hugging Face `tokenizers` library.
 *
 * Token ids are part of a trained model, so these properties match that library, whatever Unicode
 * version the installed utf8proc has.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_TEXT_UNICODE_UNICODE_H
#define FT_RUNTIME_TEXT_UNICODE_UNICODE_H

#include <stdbool.h>
#include <stdint.h>

/* White_Space: tab to carriage return, next line, and the separators. */
bool ft_char_is_space(uint32_t c);

/* A control, format or private use character (Cc, Cf, Co), including white space. */
bool ft_char_is_control(uint32_t c);

/* A nonspacing mark (Mn), such as a combining accent. */
bool ft_char_is_mark(uint32_t c);

/* A mark of any category (Mn, Mc, Me). */
bool ft_char_is_any_mark(uint32_t c);

/* Punctuation (P*), and the ASCII symbols. */
bool ft_char_is_punctuation(uint32_t c);

/* A number of any category (Nd, Nl, No). */
bool ft_char_is_numeric(uint32_t c);

/* The CJK ideographs that BERT puts spaces around. */
bool ft_char_is_ideograph(uint32_t c);

/* Whether `\w` of a regular expression matches. */
bool ft_char_is_word(uint32_t c);

/* The canonical combining class; 0 for a starter, across which marks are not reordered. */
uint8_t ft_char_combining_class(uint32_t c);

/*
 * Full canonical decomposition into `out`; returns the number of characters, at least 1. The array
 * fits the longest decomposition in Unicode.
 */
enum { FT_CHAR_MAX_DECOMPOSED = 4 };
int ft_char_decompose(uint32_t c, uint32_t out[FT_CHAR_MAX_DECOMPOSED]);

/* Full compatibility decomposition, the same way. */
enum { FT_CHAR_MAX_COMPATIBLE = 18 };
int ft_char_decompose_compatible(uint32_t c, uint32_t out[FT_CHAR_MAX_COMPATIBLE]);

/* The canonical composition of two characters, or 0. */
uint32_t ft_char_compose(uint32_t first, uint32_t second);

/* Full lowercase mapping, context-free, into `out`; returns the number of characters. */
enum { FT_CHAR_MAX_LOWERED = 2 };
int ft_char_lower(uint32_t c, uint32_t out[FT_CHAR_MAX_LOWERED]);

#endif
