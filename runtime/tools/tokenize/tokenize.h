/*
 * tokenize.h - declarations shared by the parts of ft-tokenize.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_TOOLS_TOKENIZE_TOKENIZE_H
#define FT_RUNTIME_TOOLS_TOKENIZE_TOKENIZE_H

#include "runtime/text/translator.h"

/* The command line. */
typedef struct ft_tokenize {
    const char *input; /* an artifact, a checkpoint or a tokenizer.json */
    const char *texts; /* a file; "-" is standard input */
    const char *fields;
    bool pairs, whole_file;
    bool offsets, type_ids, tokens; /* members to print beside the ids */
    bool no_special_tokens;
    bool decode, keep_special; /* keep special tokens when decoding */
    int64_t max_length;        /* 0: no limit */
    ft_language_pair languages;
} ft_tokenize;

/* Open the tokenizers that the command line names; of a checkpoint, both are the same. */
FT_MUST_USE ft_status ft_tokenize_open(ft_translator *out, const ft_tokenize *options,
                                       ft_error *err);

/* Encode the texts of a file, and print one JSON value a line. */
FT_MUST_USE ft_status ft_tokenize_encode(const ft_tokenize *options, const ft_tokenizer *tokenizer,
                                         ft_error *err);

/* Decode lines of token ids, and print one text a line. */
FT_MUST_USE ft_status ft_tokenize_decode(const ft_tokenize *options, const ft_tokenizer *tokenizer,
                                         ft_error *err);

#endif
