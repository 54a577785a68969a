/*
 * tokenize.h - declarations shared by the parts of ft-tokenize.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_TOOLS_TOKENIZE_TOKENIZE_H
#define FT_RUNTIME_TOOLS_TOKENIZE_TOKENIZE_H

#include "runtime/text/chat_template.h"
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

    const char *chat;          /* a file of messages */
    const char *chat_template; /* a Jinja file; NULL: that of the input */
    const char *bos_token, *eos_token;
    int64_t date; /* ft_chat_options.date */
    bool no_generation_prompt, ids;
} ft_tokenize;

/* Open the tokenizers that the command line names; of a checkpoint, both are the same. */
FT_MUST_USE ft_status ft_tokenize_open(ft_translator *out, const ft_tokenize *options,
                                       ft_error *err);

/* Whether the input is a tokenizer.json, by its name. */
bool ft_tokenize_is_json(const char *input);

/* Encode the texts of a file, and print one JSON value a line. */
FT_MUST_USE ft_status ft_tokenize_encode(const ft_tokenize *options, const ft_tokenizer *tokenizer,
                                         ft_error *err);

/*
 * Render the conversation of a JSON file, and print the text as it is, or its token ids.
 * `tokenizer` may be NULL where ids are not asked for.
 */
FT_MUST_USE ft_status ft_tokenize_chat(const ft_tokenize *options, const ft_tokenizer *tokenizer,
                                       ft_error *err);

/* Decode lines of token ids, and print one text a line. */
FT_MUST_USE ft_status ft_tokenize_decode(const ft_tokenize *options, const ft_tokenizer *tokenizer,
                                         ft_error *err);

#endif
