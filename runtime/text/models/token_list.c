/*
 * token_list.c - growing the arrays of a token list.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/text/models/token_list.h"

#include "runtime/mem.h"

#include <stdlib.h>

enum { MIN_CAPACITY = 64 };

static bool grow(ft_token_list *list)
{
    size_t capacity = list->capacity, same = capacity, again = capacity;
    int32_t *id = ft_array_grow(list->id, &capacity, MIN_CAPACITY, sizeof *id);
    list->id = id != NULL ? id : list->id;
    if (id == NULL)
        return false;
    if (list->has_ranges) {
        ft_byte_range *range = ft_array_grow(list->range, &same, MIN_CAPACITY, sizeof *range);
        list->range = range != NULL ? range : list->range;
        int32_t *word = ft_array_grow(list->word, &again, MIN_CAPACITY, sizeof *word);
        list->word = word != NULL ? word : list->word;
        if (range == NULL || word == NULL)
            return false;
    }
    list->capacity = capacity;
    return true;
}

bool ft_token_list_grow(ft_token_list *list)
{
    list->out_of_memory = list->out_of_memory || !grow(list);
    return !list->out_of_memory;
}

void ft_token_list_fini(ft_token_list *list)
{
    free(list->id);
    free(list->range);
    free(list->word);
    *list = (ft_token_list){ 0 };
}
