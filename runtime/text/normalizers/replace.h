/*
 * replace.h - normalizers that insert text: Prepend and Replace.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_TEXT_NORMALIZERS_REPLACE_H
#define FT_RUNTIME_TEXT_NORMALIZERS_REPLACE_H

#include "runtime/text/aligned/aligned_text.h"
#include "runtime/text/unicode/regex.h"

/* Prepend `content` to a text that is not empty; false when out of memory or over the limit. */
FT_MUST_USE bool ft_normalize_prepend(const ft_aligned_text *in, const char *content,
                                      ft_aligned_buf *out);

/*
 * Replace each match by `content`. Errors without text: FT_ELIMIT beyond out's limit, which sets
 * out->text.overflowed, or beyond the budget of matching; FT_ENOMEM.
 */
FT_MUST_USE ft_status ft_normalize_replace(const ft_aligned_text *in, const ft_regex *pattern,
                                           ft_regex_workspace *workspace, const char *content,
                                           ft_aligned_buf *out);

#endif
