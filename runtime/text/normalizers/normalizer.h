/*
 * normalizer.h - text normalization: a list of steps.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_TEXT_NORMALIZERS_NORMALIZER_H
#define FT_RUNTIME_TEXT_NORMALIZERS_NORMALIZER_H

#include "runtime/base/json_reader.h"
#include "runtime/text/normalizers/bert.h"
#include "runtime/text/normalizers/charsmap.h"
#include "runtime/text/normalizers/forms.h"
#include "runtime/text/unicode/regex.h"

enum { FT_NORMALIZER_MAX_STEPS = 32 };

typedef struct ft_normalizer_step ft_normalizer_step;
typedef struct ft_normalizer_run ft_normalizer_run;

/*
 * Append the result of a step to *out. FT_ELIMIT if it exceeds out's limit, which sets
 * out->text.overflowed, or a regular expression its budget; FT_ENOMEM. Without text.
 */
typedef ft_status (*ft_normalize_fn)(const ft_normalizer_step *step, ft_normalizer_run *run,
                                     const ft_aligned_text *in, ft_aligned_buf *out);

/* A step, and the parameters that its function reads. */
struct ft_normalizer_step {
    ft_normalize_fn apply;
    ft_bert_normalizer bert;
    ft_normal_form form;
    ft_charsmap charsmap;
    ft_regex regex; /* Replace */
    char *content;  /* Prepend, Replace; owned */
    bool strip_left, strip_right;
};

/* Zero-initialized leaves the text unchanged. */
typedef struct ft_normalizer {
    ft_normalizer_step *step; /* [count]; owned */
    size_t count;
} ft_normalizer;

/* Parse the section "normalizer" of a tokenizer.json. Errors name what is not supported. */
FT_MUST_USE ft_status ft_normalizer_read_json(ft_normalizer *out, const ft_json_reader *file);
void ft_normalizer_fini(ft_normalizer *normalizer);

/* The state of normalizing one text; reusable. Initialize it with ft_normalizer_run_init(). */
struct ft_normalizer_run {
    ft_aligned_buf from, to;
    size_t growth_left; /* number of bytes that the steps may still add */
    size_t bytes;       /* of the text, for the budget of regular expressions */
    ft_regex_workspace regex;
    bool has_regex, tracks;
};

/* For a text of `bytes` bytes in all; `tracks` keeps the sources. */
void ft_normalizer_run_init(ft_normalizer_run *run, size_t bytes, bool tracks);
void ft_normalizer_run_fini(ft_normalizer_run *run);

/*
 * Normalize *text (valid UTF-8), which is replaced by the result: in *run, or the text itself.
 * Errors without text: FT_ELIMIT when the steps add more than ft_strbuf_growth_limit(bytes), which
 * sets run->to.text.overflowed, or a regular expression takes too long; FT_ENOMEM.
 */
FT_MUST_USE ft_status ft_normalizer_apply(const ft_normalizer *normalizer, ft_normalizer_run *run,
                                          ft_aligned_text *text);

#endif
