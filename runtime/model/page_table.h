/*
 * page_table.h - page allocation of a paged KV cache.
 *
 * Each sequence slot has a row of page numbers that grows with its sequence; released pages return
 * to a free list.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_MODEL_PAGE_TABLE_H
#define FT_RUNTIME_MODEL_PAGE_TABLE_H

#include "kernels/kv_cache.h"

typedef struct ft_pages {
    size_t seats, most; /* slots, and pages per slot */
    int32_t *free;      /* [count]: stack of free pages, of which the first `num_free` are valid */
    size_t count, nfree;
    int32_t *list; /* [slots, max_pages]: the first used[i] entries of row i are in use */
    size_t *taken; /* [slots] */
} ft_pages;

/* `count` pages for slots with a maximum number of pages each.  Free with ft_pages_fini(). */
FT_MUST_USE ft_status ft_pages_init(ft_pages *pages, size_t count, size_t seats, size_t most,
                                    ft_error *err);
void ft_pages_fini(ft_pages *pages);

/* Release all pages of all slots. */
void ft_pages_clear(ft_pages *pages);

/* Reserve pages for `tokens` tokens in total; false, and nothing changes, if too few are free. */
bool ft_pages_reserve(ft_pages *pages, size_t seat, size_t tokens);

/* Release all pages of a slot. */
void ft_pages_release(ft_pages *pages, size_t seat);

/* The slot's row [max_pages]; unused entries are 0. */
const int32_t *ft_pages_of(const ft_pages *pages, size_t seat);

#endif
