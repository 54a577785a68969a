/*
 * tokenizer.h - encode text to token ids and back by a checkpoint's tokenizer.json.
 *
 * The sections "truncation" and "padding" are ignored: encoding returns all ids of the text unless
 * the caller asks for a maximum length. Everything else in the file that would change ids is
 * supported or rejected by name; an unsupported decoder is rejected when it is first used.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_TEXT_TOKENIZER_H
#define FT_RUNTIME_TEXT_TOKENIZER_H

#include "runtime/text/added_tokens.h"
#include "runtime/text/decoders/decode.h"
#include "runtime/text/languages/languages.h"
#include "runtime/text/models/model.h"
#include "runtime/text/normalizers/normalizer.h"
#include "runtime/text/post_processors/post_processor.h"
#include "runtime/text/pre_tokenizers/pre_tokenizer.h"

enum {
    FT_TOKENIZER_MAX_FILE = 64 << 20, /* bytes of tokenizer.json */
    FT_TOKENIZER_MAX_TEXT = 1 << 30,  /* bytes of one text: positions in it fit 32 bits */
};

/* Immutable after opening. */
struct ft_tokenizer {
    char *name;          /* file name for messages; owned */
    ft_added_tokens raw; /* matched in the original text */
    ft_normalizer normalizer;
    ft_added_tokens normalized; /* matched in normalized text */
    ft_pretokenizer pretokenizer;
    ft_token_model model;
    ft_post_processor post_processor;
    ft_decoder_config decoder_config;
    int32_t embedding_rows; /* ids from here on are an error; 0: unknown (embedding_rows.h) */
};

#pragma GCC visibility push(default) /* linked by the tools: FT_PRIVATE */

/*
 * Open a tokenizer from the bytes of a tokenizer.json, which are not needed afterwards; `name` is
 * the file name in messages. On failure *out is NULL.
 */
FT_MUST_USE ft_status ft_tokenizer_parse(ft_tokenizer **out, const char *name, const char *json,
                                         size_t bytes, ft_error *err);

/*
 * Put the token of a language where languages.json says: in place of the default source language,
 * or in front of the text. Only before the tokenizer is shared. FT_EFORMAT: there is no place.
 */
FT_MUST_USE ft_status ft_tokenizer_set_language(ft_tokenizer *tokenizer,
                                                const ft_languages *languages,
                                                const ft_language *language, ft_error *err);

/* Put the token of the target language where targets have one, else in front of them. */
FT_MUST_USE ft_status ft_tokenizer_set_target_language(ft_tokenizer *tokenizer,
                                                       const ft_languages *languages, int32_t id,
                                                       ft_error *err);

/*
 * Encode a text that an encoder-decoder is to generate, as the text_target of transformers: the
 * labels, which end with the EOS token. Truncated to max_length tokens; 0: not. The errors of
 * ft_tokenizer_encode_text().
 */
FT_MUST_USE ft_status ft_tokenizer_encode_target(const ft_tokenizer *tokenizer, const char *text,
                                                 size_t bytes, size_t max_length, ft_encoding **out,
                                                 ft_error *err);

/* ---- The parts of encoding ------------------------------------------------------------------ */

/*
 * Append the tokens of a text without special tokens around it; their ranges, if the list has them,
 * are bytes of the text. `untrusted` as in ft_encode_options, NULL: none.
 */
FT_MUST_USE ft_status ft_encode_tokens(const ft_tokenizer *tokenizer, const char *text,
                                       size_t bytes, const uint8_t *untrusted,
                                       ft_token_list *tokens, ft_error *err);

/* Tokens [start, end) of a list. */
typedef struct ft_token_part {
    const ft_token_list *list;
    size_t start, end;
} ft_token_part;

/*
 * Put special tokens, if wanted, around one part, or around two if pair.list is not NULL.
 * FT_EUNSUPPORTED without a template for pairs, or for a token without an embedding in the model.
 */
FT_MUST_USE ft_status ft_post_process(const ft_tokenizer *tokenizer, ft_token_part text,
                                      ft_token_part pair, bool special_tokens, ft_encoding **out,
                                      ft_error *err);

/* Number of special tokens around one text, or a pair. */
size_t ft_tokenizer_special_tokens(const ft_tokenizer *tokenizer, bool pair);

#pragma GCC visibility pop

#endif
