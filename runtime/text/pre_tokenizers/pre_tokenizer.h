/*
 * pre_tokenizer.h - pre-tokenization: split text into words and transform them, in steps.
 *
 * The steps are smaller than the sections of a tokenizer.json. ByteLevel is a prepended space, a
 * split by a regular expression, and a byte-to-character mapping; Metaspace is a replacement of
 * spaces by another character, one more of it in front, and a split before each.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_TEXT_PRE_TOKENIZERS_PRE_TOKENIZER_H
#define FT_RUNTIME_TEXT_PRE_TOKENIZERS_PRE_TOKENIZER_H

#include "runtime/base/json_reader.h"
#include "runtime/text/aligned/aligned_text.h"
#include "runtime/text/unicode/regex.h"

enum { FT_PRETOKENIZE_MAX_STEPS = 24, FT_PRETOKENIZE_CHAR_SIZE = 5 };

/* The behavior of a split, as in the `tokenizers` library. */
typedef enum ft_split_behavior {
    FT_SPLIT_ISOLATED,
    FT_SPLIT_REMOVED,
    FT_SPLIT_MERGED_WITH_PREVIOUS,
    FT_SPLIT_MERGED_WITH_NEXT,
    FT_SPLIT_CONTIGUOUS, /* adjacent matches are merged */
} ft_split_behavior;

typedef struct ft_pretokenize_step ft_pretokenize_step;
typedef struct ft_word_splitter ft_word_splitter;

/* The input of a step: a part of the text. */
typedef struct ft_piece {
    ft_word_splitter *splitter;
    size_t step;
    ft_aligned_text text; /* not empty */
    bool first;           /* it is the start of the whole text; not used with sources */
} ft_piece;

/* Split or transform a piece, and pass the parts to the next step. */
typedef ft_status (*ft_pretokenize_fn)(const ft_piece *in);

/* A step, and the parameters that its function reads. */
struct ft_pretokenize_step {
    ft_pretokenize_fn apply;
    ft_split_behavior split;
    bool invert;     /* split at what does not match */
    bool only_first; /* prepend only at the start of the whole text */
    ft_regex regex;
    bool (*matches)(uint32_t c);              /* split at these characters */
    char character[FT_PRETOKENIZE_CHAR_SIZE]; /* UTF-8, zero-terminated */
    size_t length;                            /* characters per part */
};

/* Zero-initialized leaves the text unsplit. */
typedef struct ft_pretokenizer {
    ft_pretokenize_step step[FT_PRETOKENIZE_MAX_STEPS];
    size_t count;
} ft_pretokenizer;

/* Whether a step treats the start of the whole text in a special way. */
bool ft_pretokenizer_has_only_first(const ft_pretokenizer *pretokenizer);

/* Parse the section "pre_tokenizer" of a tokenizer.json. Errors name what is not supported. */
FT_MUST_USE ft_status ft_pretokenizer_read_json(ft_pretokenizer *out, const ft_json_reader *file);
void ft_pretokenizer_fini(ft_pretokenizer *pretokenizer);

/* The state for one text: buffers of each step, and the callback that receives the words. */
struct ft_word_splitter {
    const ft_pretokenizer *pretokenizer;
    ft_aligned_buf text[FT_PRETOKENIZE_MAX_STEPS];
    ft_regex_workspace regex; /* of all steps; no step is between two matches when it passes on */
    bool has_regex;
    size_t growth_left; /* number of bytes that the steps may still add */
    bool tracks;        /* keep the sources of transformed text */
    bool overflowed;    /* the limit was exceeded */
    ft_status (*on_word)(void *user, const ft_aligned_text *word);
    void *user;
};

/*
 * Initialize with pretokenizer, tracks, on_word and user set and the rest zero; `bytes` is the
 * total size of the text. Errors, without text: FT_ENOMEM; FT_ELIMIT when a regular expression
 * exceeds its time limit or, if `overflowed` is set, the steps add more than
 * ft_strbuf_growth_limit(bytes); errors of `on_word`.
 */
ft_status ft_word_splitter_init(ft_word_splitter *splitter, size_t bytes);
void ft_word_splitter_fini(ft_word_splitter *splitter);

/* Split a text (valid UTF-8, not empty); `first` if it is the start of the whole text. */
ft_status ft_word_splitter_run(ft_word_splitter *splitter, const ft_aligned_text *text, bool first);

/* ---- For the steps -------------------------------------------------------------------------- */

static inline const ft_pretokenize_step *ft_piece_step(const ft_piece *in)
{
    return &in->splitter->pretokenizer->step[in->step];
}

/* Pass [start, end) of a piece to the next step, unless it is empty. */
ft_status ft_piece_pass_on(const ft_piece *in, size_t start, size_t end);

/* Pass what `function` makes of a piece to the next step. */
ft_status ft_piece_transform(const ft_piece *in,
                             bool (*function)(const ft_piece *in, ft_aligned_buf *out));

#endif
