/*
 * prefix_cache.h - prompts that begin alike share KV cache pages instead of computing them.
 *
 * Keys and values depend on the tokens up to their own alone, so a page is known by its 64 tokens
 * and those before them.  A block is such a page: the block before it, by a number that is never
 * used again, and its tokens, which are compared; a hash only finds it.  So the shared page has the
 * bits that the prompt would compute.
 *
 * The page table keeps the pages of ended sequences until their memory is needed.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_GENERATE_PREFIX_CACHE_H
#define FT_RUNTIME_GENERATE_PREFIX_CACHE_H

#include "runtime/model/session.h"

typedef struct ft_prefix_cache ft_prefix_cache;

/* The blocks of a sequence that the cache knows. */
typedef struct ft_prefix {
    size_t blocks; /* number of them: the first ones */
    uint64_t last; /* number of the last one; 0: none */
} ft_prefix;

/*
 * Whether keys depend on the tokens before them alone: not with a source that they attend to, nor
 * where RoPE depends on the length of the prompt.
 */
bool ft_prefix_cache_applies(const ft_session *session);

/*
 * A cache for a page table, which it empties.  It outlives neither the table nor a call of
 * ft_page_table_clear().  ft_prefix_cache_free() accepts NULL.
 */
FT_MUST_USE ft_status ft_prefix_cache_new(ft_prefix_cache **out, ft_page_table *pages,
                                          ft_error *err);
void ft_prefix_cache_free(ft_prefix_cache *cache);

/*
 * Append to the empty row of a slot the pages of the first blocks of a prompt [count] that are
 * known, but never those of all its tokens, because the last one gives the first new token.
 */
ft_prefix ft_prefix_cache_share(ft_prefix_cache *cache, size_t slot, const int32_t *prompt,
                                size_t count);

/* Add the full blocks of a slot's sequence, whose first `count` tokens are in its pages. */
void ft_prefix_cache_add(ft_prefix_cache *cache, ft_prefix *prefix, size_t slot,
                         const int32_t *tokens, size_t count);

#endif
