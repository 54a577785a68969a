/*
 * page_table.c - page allocation of a paged KV cache.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/model/page_table.h"

#include "runtime/error.h"
#include "runtime/mem.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

ft_status ft_page_table_init(ft_page_table *pages, size_t count, size_t num_slots, size_t max_pages,
                             ft_error *err)
{
    size_t entries;
    memset(pages, 0, sizeof *pages);
    if (count > INT32_MAX || !ft_checked_mul(num_slots, max_pages, &entries))
        return ft_fail(err, FT_ELIMIT, "a cache of %zu pages for %zu sequences is too large", count,
                       num_slots);
    pages->num_slots = num_slots;
    pages->max_pages = max_pages;
    pages->count = count;
    pages->free = ft_calloc(count, sizeof *pages->free);
    pages->list = ft_calloc(entries, sizeof *pages->list);
    pages->used = ft_calloc(num_slots, sizeof *pages->used);
    if (pages->free == NULL || pages->list == NULL || pages->used == NULL) {
        ft_page_table_fini(pages);
        return ft_fail(err, FT_ENOMEM, "no memory for a table of %zu pages", count);
    }
    ft_page_table_clear(pages);
    return FT_OK;
}

void ft_page_table_clear(ft_page_table *pages)
{
    memset(pages->list, 0, pages->num_slots * pages->max_pages * sizeof *pages->list);
    memset(pages->used, 0, pages->num_slots * sizeof *pages->used);
    pages->num_free = pages->count;
    pages->clears++;
    for (size_t i = 0; i < pages->count; i++) /* lower pages are allocated first */
        pages->free[i] = (int32_t) (pages->count - 1 - i);
}

void ft_page_table_fini(ft_page_table *pages)
{
    free(pages->free);
    free(pages->list);
    free(pages->used);
    memset(pages, 0, sizeof *pages);
}

bool ft_page_table_reserve(ft_page_table *pages, size_t slot, size_t tokens)
{
    size_t needed = ft_pages_for_tokens(tokens), *used = &pages->used[slot];
    assert(slot < pages->num_slots);
    if (needed > pages->max_pages || (needed > *used && needed - *used > pages->num_free))
        return false;
    while (*used < needed)
        pages->list[slot * pages->max_pages + (*used)++] = pages->free[--pages->num_free];
    return true;
}

void ft_page_table_release(ft_page_table *pages, size_t slot)
{
    int32_t *list = pages->list + slot * pages->max_pages;
    assert(slot < pages->num_slots);
    while (pages->used[slot] > 0) {
        int32_t *last_page = &list[--pages->used[slot]];
        pages->free[pages->num_free++] = *last_page;
        *last_page = 0;
    }
}

const int32_t *ft_page_table_row(const ft_page_table *pages, size_t slot)
{
    return pages->list + slot * pages->max_pages;
}
