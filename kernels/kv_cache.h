/*
 * kv_cache.h - where the keys and values of earlier tokens lie.
 *
 * A cache is a pool of pages.  A page holds FT_PAGE_TOKENS tokens of one sequence; each sequence
 * has a list of its pages in order, so memory is what the tokens need and a page that is given back
 * fits anybody.  As a value of a plan a cache is a matrix with one row a token: keys, values, and
 * where they are codes, a scale for each token and head.
 *
 * Inside a page the tokens of one head lie side by side, so that attention, which works on one
 * head at a time, reads long runs of memory.  The same inline code serves host and device.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_KV_CACHE_H
#define FT_KERNELS_KV_CACHE_H

#include "kernels/layout.h"

enum { FT_PAGE_TOKENS = 64 };

FT_HOST_DEVICE size_t ft_pages_for_tokens(size_t tokens)
{
    return (tokens + FT_PAGE_TOKENS - 1) / FT_PAGE_TOKENS;
}

/* The place of token `position` of a sequence: `pages` is its list.  The page that holds it. */
FT_HOST_DEVICE size_t ft_cache_page(const int32_t *pages, size_t position)
{
    return (size_t) pages[position / FT_PAGE_TOKENS];
}

/* Row of (head, token of the page) of page `page`, in rows of one head: times head_size, elements.
 */
FT_HOST_DEVICE size_t ft_cache_row(size_t page, size_t head, size_t heads, size_t token)
{
    return (page * heads + head) * FT_PAGE_TOKENS + token;
}

/* The same for a token by its position in the sequence. */
FT_HOST_DEVICE size_t ft_cache_token_row(const int32_t *pages, size_t position, size_t head,
                                         size_t heads)
{
    return ft_cache_row(ft_cache_page(pages, position), head, heads, position % FT_PAGE_TOKENS);
}

#endif
