/*
 * forms.h - Unicode normalization forms: NFC, NFD, NFKC, NFKD.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_TEXT_NORMALIZERS_FORMS_H
#define FT_RUNTIME_TEXT_NORMALIZERS_FORMS_H

#include "runtime/text/aligned/aligned_text.h"

typedef struct ft_normal_form {
    bool composed;   /* NFC, NFKC */
    bool compatible; /* NFKC, NFKD: characters that only look different become equal */
} ft_normal_form;

/* Append the form of `in` to *out; false when out of memory or over the limit. */
FT_MUST_USE bool ft_normalize_form(ft_normal_form form, const ft_aligned_text *in,
                                   ft_aligned_buf *out);

#endif
