/*
 * characters.h - normalizers that look at one character at a time, and Strip.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_TEXT_NORMALIZERS_CHARACTERS_H
#define FT_RUNTIME_TEXT_NORMALIZERS_CHARACTERS_H

#include "runtime/text/aligned/aligned_text.h"

/* All append to *out and return false when out of memory or over the limit. */

/* Lowercase: the full mapping. */
FT_MUST_USE bool ft_normalize_lowercase(const ft_aligned_text *in, ft_aligned_buf *out);

/* StripAccents: without combining marks; usually after NFD. */
FT_MUST_USE bool ft_normalize_strip_accents(const ft_aligned_text *in, ft_aligned_buf *out);

/* Nmt: without control characters; white space and invisible characters become spaces. */
FT_MUST_USE bool ft_normalize_nmt(const ft_aligned_text *in, ft_aligned_buf *out);

/* ByteLevel: each byte becomes the character of byte-level vocabularies. */
FT_MUST_USE bool ft_normalize_bytes(const ft_aligned_text *in, ft_aligned_buf *out);

/* Strip: without white space at the ends. */
FT_MUST_USE bool ft_normalize_strip(const ft_aligned_text *in, bool left, bool right,
                                    ft_aligned_buf *out);

/* Copy the characters that `keep` accepts. */
FT_MUST_USE bool ft_normalize_filter(const ft_aligned_text *in, bool (*keep)(uint32_t c),
                                     ft_aligned_buf *out);

#endif
