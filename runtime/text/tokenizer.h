/*
 * tokenizer.h - encode text to token ids and back by a checkpoint's tokenizer.json.
 *
 * Supported: WordPiece, with BERT's normalizer and pre-tokenizer (BERT, DistilBERT, MiniLM); and
 * BPE, byte-level (Llama 3, Qwen2, GPT-2) or over characters with byte fallback (Llama 2, Mistral).
 * The sections "truncation" and "padding" are ignored: encoding returns all ids of the text, and
 * the caller applies a maximum length. Everything else in the file that would change ids is
 * supported or rejected by name; an unsupported decoder is rejected when it is first used.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_TEXT_TOKENIZER_H
#define FT_RUNTIME_TEXT_TOKENIZER_H

#include "runtime/text/added_tokens.h"
#include "runtime/text/decode.h"
#include "runtime/text/models/model.h"
#include "runtime/text/normalizer.h"
#include "runtime/text/pre_tokenizer.h"

enum {
    FT_TOKENIZER_MAX_FILE = 64 << 20, /* bytes of tokenizer.json */
    FT_TOKENIZER_MAX_TEXT = 1 << 30,  /* bytes of one text: positions in it fit 32 bits */
};

/* Special tokens added before or after each text: "[CLS]" and "[SEP]". */
typedef struct ft_special_ids {
    int32_t *id;
    size_t count;
} ft_special_ids;

/* Immutable after opening. */
struct ft_tokenizer {
    char *name;               /* file name for messages; owned */
    ft_added_tokens raw;      /* matched in the original text */
    ft_normalizer normalizer;
    ft_added_tokens normalized; /* matched in normalized text */
    ft_pretokenizer pretokenizer;
    ft_token_model model;
    ft_special_ids prefix_ids, suffix_ids;
    ft_decoder_config decoder_config;
};

/*
 * Open a tokenizer from the bytes of a tokenizer.json, which are not needed afterwards; `name` is
 * the file name in messages. On failure *out is NULL.
 */
FT_MUST_USE ft_status ft_tokenizer_parse(ft_tokenizer **out, const char *name, const char *json,
                                         size_t bytes, ft_error *err);

#endif
