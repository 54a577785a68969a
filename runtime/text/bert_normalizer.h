/*
 * bert_normalizer.h - the text that BERT's vocabularies are made of, and its words.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_TEXT_BERT_NORMALIZER_H
#define FT_RUNTIME_TEXT_BERT_NORMALIZER_H

#include "runtime/base/strbuf.h"

/* The steps, in the order in which they are taken.  All false leaves the text as it is. */
typedef struct ft_bert_normalizer {
    bool clean_text;           /* drop NUL, U+FFFD and control characters; make white space " " */
    bool handle_chinese_chars; /* put spaces around ideographs */
    bool strip_accents;        /* decompose, drop nonspacing marks */
    bool lowercase;
} ft_bert_normalizer;

/*
 * Normalize `text` (valid UTF-8) into *out, whose old content is overwritten and whose memory is
 * reused.  FT_ENOMEM, without text, when there is not enough.
 */
ft_status ft_bert_normalize(const ft_bert_normalizer *normalizer, const char *text, size_t bytes,
                            ft_text *out);

/*
 * The next word of normalized text between *at and `end`: a punctuation character, or what stands
 * between punctuation and white space.  Returns its bytes, 0 when there is none; *word is where it
 * starts and *at moves behind it.
 */
size_t ft_bert_next_word(const char **at, const char *end, const char **word);

#endif
