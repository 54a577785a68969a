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

bool ft_token_list_grow(ft_token_list *list)
{
    size_t capacity = list->capacity, range_capacity = list->capacity;
    int32_t *id = list->out_of_memory
                      ? NULL
                      : ft_array_grow(list->id, &capacity, MIN_CAPACITY, sizeof *id);
    list->id = id != NULL ? id : list->id;
    if (id != NULL && list->has_ranges) {
        ft_byte_range *range =
            ft_array_grow(list->range, &range_capacity, MIN_CAPACITY, sizeof *range);
        list->range = range != NULL ? range : list->range;
        capacity = range_capacity;
    }
    list->out_of_memory |= capacity == list->capacity;
    list->capacity = capacity;
    return !list->out_of_memory;
}

void ft_token_list_fini(ft_token_list *list)
{
    free(list->id);
    free(list->range);
    *list = (ft_token_list){ 0 };
}
