/*
 * bert.h - BERT's normalizer and pre-tokenizer.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_TEXT_NORMALIZERS_BERT_H
#define FT_RUNTIME_TEXT_NORMALIZERS_BERT_H

#include "runtime/text/aligned/aligned_text.h"

/* The steps, in the order in which they apply. All false leaves the text unchanged. */
typedef struct ft_bert_normalizer {
    bool clean_text;           /* remove NUL, U+FFFD, control characters; white space becomes " " */
    bool handle_chinese_chars; /* put spaces around CJK ideographs */
    bool strip_accents;        /* decompose, remove nonspacing marks */
    bool lowercase;
} ft_bert_normalizer;

/*
 * Normalize `text` (valid UTF-8) into *out, which is overwritten and whose memory is reused.
 * FT_ENOMEM, without error text, when out of memory.
 */
ft_status ft_bert_normalize(const ft_bert_normalizer *normalizer, const char *text, size_t bytes,
                            ft_strbuf *out);

/* Append the same with sources; false when out of memory or over the limit. */
FT_MUST_USE bool ft_bert_normalize_aligned(const ft_bert_normalizer *normalizer,
                                           const ft_aligned_text *in, ft_aligned_buf *out);

/*
 * The next word of normalized text between *at and `end`: a punctuation character, or a run of
 * characters between punctuation and white space. Returns its length in bytes, 0 at the end; *word
 * is its start, and *at is advanced past it.
 */
size_t ft_bert_next_word(const char **at, const char *end, const char **word);

#endif
