/*
 * token_list.h - the tokens of a text: their ids and, if wanted, the bytes that they come from.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_TEXT_MODELS_TOKEN_LIST_H
#define FT_RUNTIME_TEXT_MODELS_TOKEN_LIST_H

#include "runtime/text/aligned/byte_range.h"

#include <stdbool.h>
#include <stddef.h>

#pragma GCC visibility push(default) /* linked by the tools: FT_PRIVATE */

/* Zero-initialize it, or with { .has_ranges = true }; free with ft_token_list_fini(). */
typedef struct ft_token_list {
    int32_t *id;          /* [count] */
    ft_byte_range *range; /* [count] if has_ranges */
    int32_t *word;        /* [count] if has_ranges: the number of words before its own */
    int32_t words;        /* words so far; the pipeline counts them */
    size_t count, capacity;
    bool has_ranges;
    bool out_of_memory; /* once true, tokens are discarded */
} ft_token_list;

/* Make room for one more token; false, and sets out_of_memory, if there is none. */
bool ft_token_list_grow(ft_token_list *list);
void ft_token_list_fini(ft_token_list *list);

/* Append a token. A model counts `start` and `end` in bytes from the start of its word. */
static inline void ft_token_list_append(ft_token_list *list, int32_t id, size_t start, size_t end)
{
    if (list->count == list->capacity && !ft_token_list_grow(list))
        return;
    list->id[list->count] = id;
    if (list->has_ranges) {
        list->range[list->count] = (ft_byte_range){ (uint32_t) start, (uint32_t) end };
        list->word[list->count] = list->words;
    }
    list->count++;
}

#pragma GCC visibility pop

#endif
