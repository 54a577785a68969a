/*
 * pre_tokenizer.h - pre-tokenization: split text into words and transform them, in steps.
 *
 * The steps are smaller than the sections of a tokenizer.json. ByteLevel is a prepended space, a
 * split by a regular expression, and a byte-to-character mapping; Metaspace is a replacement of
 * spaces by another character, one more of it in front, and a split before each.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_TEXT_PRE_TOKENIZER_H
#define FT_RUNTIME_TEXT_PRE_TOKENIZER_H

#include "runtime/text/unicode/regex.h"

enum { FT_PRETOKENIZE_MAX_STEPS = 12, FT_PRETOKENIZE_CHAR_SIZE = 5 };

typedef enum ft_pretokenize_kind {
    FT_PRETOKENIZE_BERT,   /* BertPreTokenizer: words and punctuation, without white space */
    FT_PRETOKENIZE_REGEX,  /* split at matches */
    FT_PRETOKENIZE_DIGITS, /* split at numbers */
    FT_PRETOKENIZE_CHAR,   /* split at a character */
    FT_PRETOKENIZE_REPLACE_SPACES, /* replace each space by a character */
    FT_PRETOKENIZE_PREPEND,        /* prepend a character to a text that does not start with it */
    FT_PRETOKENIZE_BYTE_LEVEL,     /* map each byte to the character of byte-level vocabularies */
} ft_pretokenize_kind;

/* The behavior of a split, as in the `tokenizers` library. */
typedef enum ft_split_behavior {
    FT_SPLIT_ISOLATED,
    FT_SPLIT_REMOVED,
    FT_SPLIT_MERGED_WITH_PREVIOUS,
    FT_SPLIT_MERGED_WITH_NEXT,
    FT_SPLIT_CONTIGUOUS, /* adjacent matches are merged */
} ft_split_behavior;

typedef struct ft_pretokenize_step {
    ft_pretokenize_kind kind;
    ft_split_behavior split;
    bool invert;                              /* split at what does not match */
    bool only_first;                          /* PREPEND: only at the start of the whole text */
    ft_regex regex;                           /* REGEX */
    char character[FT_PRETOKENIZE_CHAR_SIZE]; /* CHAR, REPLACE_SPACES, PREPEND; UTF-8,
                                                 zero-terminated */
} ft_pretokenize_step;

/* Zero-initialized leaves the text unsplit. */
typedef struct ft_pretokenizer {
    ft_pretokenize_step step[FT_PRETOKENIZE_MAX_STEPS];
    size_t count;
} ft_pretokenizer;

void ft_pretokenizer_fini(ft_pretokenizer *pretokenizer);

/* The state for one text: buffers of each step, and the callback that receives the words. */
typedef struct ft_word_splitter {
    const ft_pretokenizer *pretokenizer;
    ft_strbuf text[FT_PRETOKENIZE_MAX_STEPS];
    ft_regex_workspace regex[FT_PRETOKENIZE_MAX_STEPS];
    size_t growth_left; /* number of bytes that the steps may still add */
    bool overflowed;    /* the limit was exceeded */
    ft_status (*on_word)(void *user, const char *word, size_t bytes);
    void *user;
} ft_word_splitter;

/*
 * Initialize with pretokenizer, on_word and user set and the rest zero; `bytes` is the total size
 * of the text. Errors, without text: FT_ENOMEM; FT_ELIMIT when a regular expression exceeds its
 * time limit or, if `overflowed` is set, the steps add more than ft_strbuf_growth_limit(bytes);
 * errors of `on_word`.
 */
ft_status ft_word_splitter_init(ft_word_splitter *splitter, size_t bytes);
void ft_word_splitter_fini(ft_word_splitter *splitter);

/* Split a text (valid UTF-8, not empty); `first` if it is the start of the whole text. */
ft_status ft_word_splitter_run(ft_word_splitter *splitter, const char *text, size_t bytes,
                               bool first);

#endif
