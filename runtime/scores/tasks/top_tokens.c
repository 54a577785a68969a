/*
 * top_tokens.c - insertion into a short sorted list.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/scores/tasks/top_tokens.h"

#include "kernels/math/elementary.h"
#include "runtime/mem.h"

#include <math.h>

/* Insert a token into the list of the best `found`, of which at most `count` stay. */
static size_t insert(ft_top_token *out, size_t found, size_t count, ft_top_token token)
{
    size_t at = found < count ? found : count - 1;
    for (; at > 0 && out[at - 1].probability < token.probability; at--)
        out[at] = out[at - 1];
    out[at] = token;
    return found < count ? found + 1 : count;
}

size_t ft_top_tokens_find(ft_top_token *out, size_t count, const float *logits, size_t vocabulary)
{
    size_t found = 0;
    float most = -INFINITY;
    double sum = 0.0;
    count = ft_min_size(ft_min_size(count, FT_TOP_TOKENS_MAX), vocabulary);
    for (size_t i = 0; i < vocabulary; i++)
        most = logits[i] > most ? logits[i] : most;
    for (size_t i = 0; i < vocabulary; i++) {
        double weight = ft_math_exp((double) logits[i] - (double) most);
        sum += weight;
        if (found < count || weight > out[count - 1].probability)
            found = insert(out, found, count, (ft_top_token){ (int32_t) i, weight });
    }
    for (size_t i = 0; i < found; i++)
        out[i].probability /= sum;
    return found;
}

int32_t ft_mask_token_id(const ft_tokenizer *tokenizer)
{
    int32_t id = ft_tokenizer_token_to_id(tokenizer, "[MASK]");
    return id >= 0 ? id : ft_tokenizer_token_to_id(tokenizer, "<mask>");
}
