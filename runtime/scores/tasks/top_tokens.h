/*
 * top_tokens.h - the most probable tokens at a position of a masked language model.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_SCORES_TASKS_TOP_TOKENS_H
#define FT_RUNTIME_SCORES_TASKS_TOP_TOKENS_H

#include "runtime/ft.h"

#pragma GCC visibility push(default) /* linked by the tools: FT_PRIVATE */

enum { FT_TOP_TOKENS_MAX = 100 };

typedef struct ft_top_token {
    int32_t id;
    double probability;
} ft_top_token;

/*
 * The `count` most probable of `vocabulary` tokens, best first, the smaller id first among equal
 * ones. Returns their number, at most FT_TOP_TOKENS_MAX.
 */
size_t ft_top_tokens_find(ft_top_token *out, size_t count, const float *logits, size_t vocabulary);

/* The id of the mask token: "[MASK]" or "<mask>"; -1: the tokenizer has none. */
int32_t ft_mask_token_id(const ft_tokenizer *tokenizer);

#pragma GCC visibility pop

#endif
