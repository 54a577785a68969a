/*
 * kv_cache.h - layout of the paged KV cache.
 *
 * The cache is a pool of pages.  A page holds FT_PAGE_TOKENS tokens of one sequence, and each
 * sequence has a page table in token order.  Memory use is therefore proportional to the number of
 * tokens, and any sequence can reuse a released page.  As a value of a plan the cache is a matrix
 * with one row per token: keys, values and, if they are int8, a scale for each token and head.
 *
 * Inside a page the tokens of one head are contiguous, so that attention, which processes one head
 * at a time, reads memory sequentially.  Host and device use the same inline code.
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

/* The page that holds token `position` of a sequence; `pages` is its page table. */
FT_HOST_DEVICE size_t ft_cache_page(const int32_t *pages, size_t position)
{
    return (size_t) pages[position / FT_PAGE_TOKENS];
}

/* Row of (head, token in the page) of page `page`; multiply by head_size for the element offset. */
FT_HOST_DEVICE size_t ft_cache_row(size_t page, size_t head, size_t heads, size_t token)
{
    return (page * heads + head) * FT_PAGE_TOKENS + token;
}

/* The same for a token given by its position in the sequence. */
FT_HOST_DEVICE size_t ft_cache_token_row(const int32_t *pages, size_t position, size_t head,
                                         size_t heads)
{
    return ft_cache_row(ft_cache_page(pages, position), head, heads, position % FT_PAGE_TOKENS);
}

#endif
