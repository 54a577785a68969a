/*
 * encoded_examples.h - examples as token sequences, and as a dataset for a model.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_DATA_ENCODED_EXAMPLES_H
#define FT_RUNTIME_DATA_ENCODED_EXAMPLES_H

#include "runtime/data/dataset.h"
#include "runtime/data/texts/examples.h"

/* Which texts of an example are encoded. */
typedef enum ft_example_side {
    FT_SIDE_BOTH,   /* its text, and the pair if there is one */
    FT_SIDE_TEXT,   /* its text alone */
    FT_SIDE_TARGET, /* its pair alone, as a target: see ft_tokenizer_encode_target() */
} ft_example_side;

typedef struct ft_example_encoding_options {
    bool truncate;      /* to the model's max_seq_length; else a longer text is FT_ELIMIT */
    int64_t max_length; /* truncate to this many tokens, if less; 0: no limit */
    bool offsets;       /* keep where the tokens come from */
    const char *prompt; /* stands before each text; NULL: none.  A pair in one row has none. */

    /*
     * Split the second text of a pair into windows that overlap by `stride` tokens, so that every
     * window with its first text has at most max_length tokens: questions and long contexts.
     */
    bool windows;
    size_t stride;

    bool separate; /* each text of a pair is a row of its own, the second after the first */
    ft_example_side side;
} ft_example_encoding_options;

/* One row per example, or per window of one; the windows of an example follow each other. */
typedef struct ft_encoded_examples {
    ft_encoding **row; /* [count]; owned */
    size_t *example;   /* [count]: index of the example */
    size_t count, capacity;
    size_t truncated; /* examples of which tokens were left out */
} ft_encoded_examples;

/*
 * Encode all examples. FT_ELIMIT: a text is longer than the model's positions; FT_EUNSUPPORTED: a
 * prompt for a pair in one row. Errors name file and line. Free with ft_encoded_examples_fini(),
 * also after a failure.
 */
FT_MUST_USE ft_status ft_examples_encode(ft_encoded_examples *out, const ft_examples *examples,
                                         const ft_tokenizer *tokenizer, const ft_model *model,
                                         const ft_example_encoding_options *options, ft_error *err);
void ft_encoded_examples_fini(ft_encoded_examples *encoded);

/* Tokens of the longest row; at least 1. */
size_t ft_encoded_examples_longest(const ft_encoded_examples *encoded);

/* A dataset with one row per encoding, right-padded to the longest one; type ids if the model reads
 * them. */
FT_MUST_USE ft_status ft_dataset_from_encodings(ft_dataset *out, const ft_encoded_examples *encoded,
                                                const ft_model *model, ft_error *err);

#endif
