/*
 * tokenizer.h - text to token ids and back, as a checkpoint's tokenizer.json says.
 *
 * Supported: WordPiece, with BERT's normalizer and words (BERT, DistilBERT, MiniLM); and BPE, over
 * bytes (Llama 3, Qwen2, GPT-2) or over characters with bytes to fall back on (Llama 2, Mistral).
 * The sections "truncation" and "padding" are not followed: encoding returns all ids of the text,
 * and a maximum length is the caller's business.  Everything else in the file that would change
 * ids is followed or refused by name; a decoder that is not known is refused when it is needed.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_TEXT_TOKENIZER_H
#define FT_RUNTIME_TEXT_TOKENIZER_H

#include "runtime/text/added_tokens.h"
#include "runtime/text/models/bpe.h"
#include "runtime/text/decode.h"
#include "runtime/text/normalizer.h"
#include "runtime/text/pre_tokenizer.h"
#include "runtime/text/models/wordpiece.h"

enum {
    FT_TOKENIZER_MAX_FILE = 64 << 20, /* bytes of tokenizer.json */
    FT_TOKENIZER_MAX_TEXT = 1 << 30,  /* bytes of one text: positions in it fit 32 bits */
};

/* Ids that go before and behind each text: "[CLS]" and "[SEP]". */
typedef struct ft_special_ids {
    int32_t *id;
    size_t count;
} ft_special_ids;

/* Read-only once it is open. */
struct ft_tokenizer {
    char *name;               /* of the file, in messages; its own */
    ft_vocabulary vocabulary; /* of the model, and the added tokens */
    ft_added_tokens raw;      /* found in the text as it came */
    ft_normalizer normalizer;
    ft_added_tokens normalized; /* found in normalized text */
    ft_pretokenizer pretokenizer;
    bool is_bpe; /* which of the two models it is */
    ft_wordpiece wordpiece;
    ft_bpe bpe;
    ft_special_ids before, after;
    ft_decoding decoding;
};

/*
 * Open a tokenizer from the bytes of a tokenizer.json; `name` stands for the file in messages.
 * The bytes are not needed afterwards.  On failure *out is NULL.
 */
FT_MUST_USE ft_status ft_tokenizer_parse(ft_tokenizer **out, const char *name, const char *json,
                                         size_t bytes, ft_error *err);

#endif
