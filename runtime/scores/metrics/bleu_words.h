/*
 * bleu_words.h - the tokenizer 13a of WMT's mteval script: words, with punctuation split off.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_SCORES_METRICS_BLEU_WORDS_H
#define FT_RUNTIME_SCORES_METRICS_BLEU_WORDS_H

#include "runtime/base/strbuf.h"

/* Replace *out by `text` with spaces around each token; false when out of memory. */
FT_MUST_USE bool ft_bleu_split(const char *text, size_t bytes, ft_strbuf *out);

#endif
