/*
 * page_table.h - who owns which page of a cache.
 *
 * Each seat has a list of pages that grows with its text; pages that a seat gives back serve
 * others.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_MODEL_PAGE_TABLE_H
#define FT_RUNTIME_MODEL_PAGE_TABLE_H

#include "kernels/kv_cache.h"

typedef struct ft_pages {
    size_t seats, most; /* most: pages of one seat */
    int32_t *free;      /* [count]: the first `nfree` are nobody's */
    size_t count, nfree;
    int32_t *list; /* [seats, most]: the first taken[i] of row i are in use */
    size_t *taken; /* [seats] */
} ft_pages;

/* `count` pages for `seats` sequences of at most `most` pages each.  Free with ft_pages_fini(). */
FT_MUST_USE ft_status ft_pages_init(ft_pages *pages, size_t count, size_t seats, size_t most,
                                    ft_error *err);
void ft_pages_fini(ft_pages *pages);

/* Take all pages back, as if nobody had ever had one. */
void ft_pages_clear(ft_pages *pages);

/* Let the seat have room for so many tokens; false, and nothing changes, where pages are lacking.
 */
bool ft_pages_reserve(ft_pages *pages, size_t seat, size_t tokens);

/* Give back all pages of a seat. */
void ft_pages_release(ft_pages *pages, size_t seat);

/* The seat's list, `most` numbers; those that it does not use yet are 0. */
const int32_t *ft_pages_of(const ft_pages *pages, size_t seat);

#endif
