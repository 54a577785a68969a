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

#pragma GCC visibility push(default) /* linked by the tools: FT_PRIVATE */

typedef struct ft_page_table {
    size_t num_slots, max_pages; /* slots, and pages per slot */
    int32_t *free; /* [count]: stack of free pages, of which the first `num_free` are valid */
    size_t count, num_free;
    int32_t *list;   /* [slots, max_pages]: the first used[i] entries of row i are in use */
    size_t *used;    /* [slots] */
    uint64_t clears; /* times that all pages were released: what slots held before is lost */
} ft_page_table;

/* `count` pages for slots with a maximum number of pages each.  Free with ft_page_table_fini(). */
FT_MUST_USE ft_status ft_page_table_init(ft_page_table *pages, size_t count, size_t num_slots,
                                         size_t max_pages, ft_error *err);
void ft_page_table_fini(ft_page_table *pages);

/* Release all pages of all slots. */
void ft_page_table_clear(ft_page_table *pages);

/* Reserve pages for `tokens` tokens in total; false, and nothing changes, if too few are free. */
bool ft_page_table_reserve(ft_page_table *pages, size_t slot, size_t tokens);

/* Release all pages of a slot. */
void ft_page_table_release(ft_page_table *pages, size_t slot);

/* The slot's row [max_pages]; unused entries are 0. */
const int32_t *ft_page_table_row(const ft_page_table *pages, size_t slot);

#pragma GCC visibility pop

#endif
