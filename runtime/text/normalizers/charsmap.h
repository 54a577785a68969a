/*
 * charsmap.h - Precompiled: the table of replacements that SentencePiece models carry.
 *
 * The table is a double array (Aoe 1989, in the layout of Darts-clone) whose keys are characters or
 * short sequences of them, followed by the replacements, each terminated by NUL.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_TEXT_NORMALIZERS_CHARSMAP_H
#define FT_RUNTIME_TEXT_NORMALIZERS_CHARSMAP_H

#include "runtime/text/aligned/aligned_text.h"

/* Zero-initialized means no replacements. */
typedef struct ft_charsmap {
    uint32_t *unit; /* [units]; owned */
    size_t units;
    char *replacement; /* [bytes], the last of which is NUL; owned */
    size_t bytes;
} ft_charsmap;

enum { FT_CHARSMAP_MAX_BYTES = 16 << 20 };

/*
 * Parse precompiled_charsmap: the size of the double array in bytes, the array, the replacements.
 * On failure `why` says what was expected. FT_EFORMAT; FT_ENOMEM.
 */
enum { FT_CHARSMAP_ERROR_SIZE = 96 };
FT_MUST_USE ft_status ft_charsmap_parse(ft_charsmap *out, const unsigned char *blob, size_t bytes,
                                        char why[FT_CHARSMAP_ERROR_SIZE]);
void ft_charsmap_fini(ft_charsmap *charsmap);

/*
 * Replace graphemes of fewer than 6 bytes as a whole, and otherwise each character, as the
 * `tokenizers` library does; false when out of memory or over the limit.
 */
FT_MUST_USE bool ft_charsmap_normalize(const ft_charsmap *charsmap, const ft_aligned_text *in,
                                       ft_aligned_buf *out);

#endif
