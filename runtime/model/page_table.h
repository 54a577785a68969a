/*
 * page_table.h - page allocation of a paged KV cache.
 *
 * Each sequence slot has a row of page numbers that grows with its sequence.  Several rows may
 * share a page, which then holds a part of a prompt that they have in common.  A released page
 * returns to a free list; but one that is kept stays as it is until all free pages are used, and
 * then the page that has been unused longest is taken.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_MODEL_PAGE_TABLE_H
#define FT_RUNTIME_MODEL_PAGE_TABLE_H

#include "kernels/kv_cache.h"

#pragma GCC visibility push(default) /* linked by the tools: FT_PRIVATE */

/* A page.  Kept pages that no slot uses are in a list, longest unused first. */
typedef struct ft_page {
    uint32_t uses; /* rows that have it */
    bool kept;
    int32_t older, newer; /* neighbours in the list; -1: none */
} ft_page;

typedef struct ft_page_table {
    size_t num_slots, max_pages; /* slots, and pages per slot */
    int32_t *free; /* [count]: stack of free pages, of which the first `num_free` are valid */
    size_t count, num_free;
    int32_t *list;   /* [slots, max_pages]: the first used[i] entries of row i are in use */
    size_t *used;    /* [slots] */
    uint64_t clears; /* times that all pages were released: what slots held before is lost */

    ft_page *page; /* [count] */
    int32_t oldest, newest;
    size_t num_unused;                          /* kept pages that no slot uses */
    void (*on_taken)(void *user, int32_t page); /* a kept page gets new contents; NULL: nobody
                                                   keeps pages */
    void *user;
} ft_page_table;

/* `count` pages for slots with a maximum number of pages each.  Free with ft_page_table_fini(). */
FT_MUST_USE ft_status ft_page_table_init(ft_page_table *pages, size_t count, size_t num_slots,
                                         size_t max_pages, ft_error *err);
void ft_page_table_fini(ft_page_table *pages);

/* Release all pages of all slots, and keep none. */
void ft_page_table_clear(ft_page_table *pages);

/* Reserve pages for `tokens` tokens in total; false, and nothing changes, if too few are free. */
bool ft_page_table_reserve(ft_page_table *pages, size_t slot, size_t tokens);

/* Append a page that is in use or kept to a row, which has room for it. */
void ft_page_table_share(ft_page_table *pages, size_t slot, int32_t page);

/* Keep a page that is in use after its release, until its memory is needed. */
void ft_page_table_keep(ft_page_table *pages, int32_t page);

/* Release all pages of a slot; of kept ones the last page of the row becomes the oldest. */
void ft_page_table_release(ft_page_table *pages, size_t slot);

/* Pages that a row may get. */
static inline size_t ft_page_table_available(const ft_page_table *pages)
{
    return pages->num_free + pages->num_unused;
}

/* The slot's row [max_pages]; unused entries are 0. */
const int32_t *ft_page_table_row(const ft_page_table *pages, size_t slot);

#pragma GCC visibility pop

#endif
