/*
 * pre_tokenizer.h - text is cut into words, and words are respelled, in steps.
 *
 * The steps are smaller than the sections of a tokenizer.json: ByteLevel is a blank in front, a
 * split by a regular expression, and a spelling of bytes; Metaspace is another character for the
 * blank, one more of it in front, and a split before each.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_TEXT_PRE_TOKENIZER_H
#define FT_RUNTIME_TEXT_PRE_TOKENIZER_H

#include "runtime/text/unicode/regex.h"

enum { FT_PRETOKENIZE_MAX_STEPS = 12, FT_PRETOKENIZE_UTF8 = 5 };

typedef enum ft_pretokenize_kind {
    FT_PRETOKENIZE_BERT,   /* words and punctuation, without white space */
    FT_PRETOKENIZE_REGEX,  /* cut at matches */
    FT_PRETOKENIZE_DIGITS, /* cut at numbers */
    FT_PRETOKENIZE_CHAR,   /* cut at a character */
    FT_PRETOKENIZE_BLANKS, /* each blank becomes a character */
    FT_PRETOKENIZE_PREFIX, /* put a character before a text that does not start with it */
    FT_PRETOKENIZE_BYTES,  /* write each byte as the character that byte-level vocabularies use */
} ft_pretokenize_kind;

/* What becomes of the matches that a text is cut at. */
typedef enum ft_split {
    FT_SPLIT_ISOLATED,
    FT_SPLIT_REMOVED,
    FT_SPLIT_WITH_PREVIOUS,
    FT_SPLIT_WITH_NEXT,
    FT_SPLIT_CONTIGUOUS, /* matches that touch are one word */
} ft_split;

typedef struct ft_pretokenize_step {
    ft_pretokenize_kind kind;
    ft_split split;
    bool invert;                         /* cut at what does not match */
    bool only_first;                     /* PREFIX: where the whole text begins */
    ft_regex regex;                      /* REGEX */
    char character[FT_PRETOKENIZE_UTF8]; /* CHAR, BLANKS, PREFIX; UTF-8, terminated */
} ft_pretokenize_step;

/* All zero leaves text in one piece. */
typedef struct ft_pretokenizer {
    ft_pretokenize_step step[FT_PRETOKENIZE_MAX_STEPS];
    size_t count;
} ft_pretokenizer;

void ft_pretokenizer_fini(ft_pretokenizer *pretokenizer);

/* Cutting one text: memory of each step, and who takes the words. */
typedef struct ft_word_cutter {
    const ft_pretokenizer *pretokenizer;
    ft_text text[FT_PRETOKENIZE_MAX_STEPS];
    ft_regex_room regex[FT_PRETOKENIZE_MAX_STEPS];
    size_t growth; /* bytes that respelling may still add */
    bool grew;     /* it would have added more */
    ft_status (*take)(void *user, const char *word, size_t bytes);
    void *user;
} ft_word_cutter;

/*
 * Open with pretokenizer, take and user set and the rest zero; `bytes` is the size of all that
 * will be cut.  Errors, without text: FT_ENOMEM; FT_ELIMIT when a regular expression takes too
 * long or, and `grew` tells, respelling adds more than ft_text_growth(bytes); those of `take`.
 */
ft_status ft_word_cutter_init(ft_word_cutter *cutter, size_t bytes);
void ft_word_cutter_fini(ft_word_cutter *cutter);

/* Cut a text (valid UTF-8, not empty); `first` where nothing of the whole stands before it. */
ft_status ft_cut_words(ft_word_cutter *cutter, const char *text, size_t bytes, bool first);

#endif
