/*
 * draft.h - a tokenizer.json that is being written: its vocabulary, added tokens and components.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CONVERT_TOKENIZER_DRAFT_DRAFT_H
#define FT_CONVERT_TOKENIZER_DRAFT_DRAFT_H

#include "convert/tokenizer/draft/source.h"
#include "runtime/text/models/vocabulary.h"

/* The tokenizer's class sets the components, which are owned; NULL means out of memory. */
typedef struct ft_tokenizer_draft {
    const ft_tokenizer_source *source;
    ft_vocabulary vocabulary; /* of the model and the added tokens */
    json_t *added;            /* array of added tokens */
    json_t *normalizer, *pre_tokenizer, *model, *post_processor, *decoder;
} ft_tokenizer_draft;

/* Empty, with null for each component but the model. */
void ft_tokenizer_draft_init(ft_tokenizer_draft *draft, const ft_tokenizer_source *source);
void ft_tokenizer_draft_fini(ft_tokenizer_draft *draft);

/* ---- Vocabulary ----------------------------------------------------------------------------- */

/* Add a piece of the model; FT_EFORMAT, with `place` in the text, when its text is there already.
 */
FT_MUST_USE ft_status ft_tokenizer_draft_add_piece(ft_tokenizer_draft *draft, const char *text,
                                                   size_t bytes, int32_t id, const char *place);

/* The id of a text; -1 when there is none. */
int32_t ft_tokenizer_draft_id(const ft_tokenizer_draft *draft, const char *text);

/* ---- Added tokens --------------------------------------------------------------------------- */

/* How an added token is matched; zero is a special token that is matched as it is. */
typedef struct ft_match_flags {
    bool single_word, lstrip, rstrip, normalized, plain;
    bool at_start; /* of the text only */
} ft_match_flags;

/*
 * Add the tokens that tokenizer_config.json (added_tokens_decoder) and added_tokens.json list, each
 * with an id that is the vocabulary's or the next free one, else FT_EUNSUPPORTED.
 */
FT_MUST_USE ft_status ft_tokenizer_draft_add_listed(ft_tokenizer_draft *draft);

/* Add a token unless it is added already; one that is not in the vocabulary gets the next id. */
FT_MUST_USE ft_status ft_tokenizer_draft_add_token(ft_tokenizer_draft *draft, const char *text,
                                                   ft_match_flags flags);

/* Add those of additional_special_tokens or extra_special_tokens. */
FT_MUST_USE ft_status ft_tokenizer_draft_add_extra(ft_tokenizer_draft *draft);

/* ---- Result --------------------------------------------------------------------------------- */

/* The whole file; NULL when out of memory. The components move into it. */
json_t *ft_tokenizer_draft_finish(ft_tokenizer_draft *draft);

#endif
