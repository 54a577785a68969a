/*
 * tokenizer.h - text to token ids, as a checkpoint's tokenizer.json says.
 *
 * Supported: WordPiece with BERT's normalizer and words, which BERT, DistilBERT and MiniLM use.
 * The sections "truncation" and "padding" are not followed: encoding returns all ids of the text,
 * and a maximum length is the caller's business.  "decoder" says nothing about ids.  Everything
 * else in the file that would change ids is followed or refused by name.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_TOKENIZER_H
#define FT_RUNTIME_TOKENIZER_H

#include "runtime/added_tokens.h"
#include "runtime/bert_normalizer.h"
#include "runtime/wordpiece.h"

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
    ft_added_tokens raw; /* found in the text as it came */
    ft_bert_normalizer normalizer;
    ft_added_tokens normalized; /* found in normalized text */
    ft_wordpiece model;
    ft_special_ids before, after;
};

/*
 * Open a tokenizer from the bytes of a tokenizer.json; `name` stands for the file in messages.
 * The bytes are not needed afterwards.  On failure *out is NULL.
 */
FT_MUST_USE ft_status ft_tokenizer_parse(ft_tokenizer **out, const char *name, const char *json,
                                         size_t bytes, ft_error *err);

#endif
