/*
 * token_ids.h - output of encoders: the caller's array, and a count that continues beyond its
 * capacity, so that one pass also tells the required capacity.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_TEXT_MODELS_TOKEN_IDS_H
#define FT_RUNTIME_TEXT_MODELS_TOKEN_IDS_H

#include <stddef.h>
#include <stdint.h>

typedef struct ft_token_ids {
    int32_t *id;     /* caller-allocated; may be NULL when capacity is 0 */
    size_t capacity; /* of the array */
    size_t count;    /* all ids, including those that did not fit */
} ft_token_ids;

static inline void ft_token_ids_append(ft_token_ids *ids, int32_t id)
{
    if (ids->count < ids->capacity)
        ids->id[ids->count] = id;
    ids->count++;
}

#endif
