/*
 * exact_match.h - whether a text is its reference; white space around either does not count.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_SCORES_METRICS_EXACT_MATCH_H
#define FT_RUNTIME_SCORES_METRICS_EXACT_MATCH_H

#include "runtime/ft.h"

#pragma GCC visibility push(default) /* linked by the tools: FT_PRIVATE */

/* Compare two texts (valid UTF-8) after Python's str.strip(). */
bool ft_texts_match(const char *a, size_t a_bytes, const char *b, size_t b_bytes);

#pragma GCC visibility pop

#endif
