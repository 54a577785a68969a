/*
 * token_ids.h - where encoders put token ids: the caller's array, and a count that goes on behind
 * its end, so that one pass tells how much room would have been enough.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_TEXT_MODELS_TOKEN_IDS_H
#define FT_RUNTIME_TEXT_MODELS_TOKEN_IDS_H

#include <stddef.h>
#include <stdint.h>

typedef struct ft_token_ids {
    int32_t *id;     /* the caller's; may be NULL when capacity is 0 */
    size_t capacity; /* ids that it can hold */
    size_t count;    /* ids that there are */
} ft_token_ids;

static inline void ft_token_ids_put(ft_token_ids *ids, int32_t id)
{
    if (ids->count < ids->capacity)
        ids->id[ids->count] = id;
    ids->count++;
}

#endif
