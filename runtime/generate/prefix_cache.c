/*
 * prefix_cache.c - a hash table of the blocks whose pages hold keys and values.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/generate/prefix_cache.h"

#include "runtime/error.h"
#include "runtime/mem.h"

#include <stdlib.h>
#include <string.h>

typedef struct block {
    uint64_t number; /* 0: the page holds no block */
    uint64_t before; /* number of the block before it; 0: none */
    int32_t next;    /* page of the next block in the bucket; -1: none */
    int32_t token[FT_PAGE_TOKENS];
} block;

struct ft_prefix_cache {
    ft_page_table *pages;
    block *block;     /* [pages] */
    int32_t *bucket;  /* [buckets]: page of the first block; -1: none */
    size_t buckets;   /* a power of two */
    uint64_t numbers; /* given so far */
};

bool ft_prefix_cache_applies(const ft_session *session)
{
    if (session->plan.encoder_ops > 0)
        return false;
    for (int i = 0; i < session->plan.nop; i++)
        if (session->plan.op[i].attr.rope_positions > 0)
            return false;
    return true;
}

/* ---- Buckets ------------------------------------------------------------------------------ */

static int32_t *bucket_of(const ft_prefix_cache *cache, uint64_t before, const int32_t *token)
{
    const uint64_t multiplier = 0x9e3779b97f4a7c15u; /* 2^64 / golden ratio */
    uint64_t hash = before * multiplier;
    for (size_t i = 0; i < FT_PAGE_TOKENS; i++) {
        hash = (hash ^ (uint32_t) token[i]) * multiplier;
        hash ^= hash >> 32;
    }
    return &cache->bucket[hash & (cache->buckets - 1)];
}

static int32_t find(const ft_prefix_cache *cache, uint64_t before, const int32_t *token)
{
    int32_t page = *bucket_of(cache, before, token);
    while (page >= 0 && (cache->block[page].before != before ||
                         memcmp(cache->block[page].token, token, sizeof cache->block->token) != 0))
        page = cache->block[page].next;
    return page;
}

static void insert(ft_prefix_cache *cache, int32_t page, uint64_t before, const int32_t *token)
{
    int32_t *bucket = bucket_of(cache, before, token);
    block *b = &cache->block[page];
    b->number = ++cache->numbers;
    b->before = before;
    b->next = *bucket;
    memcpy(b->token, token, sizeof b->token);
    *bucket = page;
}

/* The page gets other contents. */
static void forget(void *user, int32_t page)
{
    ft_prefix_cache *cache = user;
    block *b = &cache->block[page];
    int32_t *link = bucket_of(cache, b->before, b->token);
    while (*link != page)
        link = &cache->block[*link].next;
    *link = b->next;
    b->number = 0;
}

/* ------------------------------------------------------------------------------------------- */

ft_status ft_prefix_cache_new(ft_prefix_cache **out, ft_page_table *pages, ft_error *err)
{
    ft_prefix_cache *cache = *out = ft_calloc(1, sizeof *cache);
    if (cache == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for a prefix cache");
    cache->pages = pages;
    for (cache->buckets = 1; cache->buckets < pages->count;)
        cache->buckets *= 2;
    cache->block = ft_calloc(pages->count, sizeof *cache->block);
    cache->bucket = ft_calloc(cache->buckets, sizeof *cache->bucket);
    if (cache->block == NULL || cache->bucket == NULL) {
        ft_prefix_cache_free(cache);
        *out = NULL;
        return ft_fail(err, FT_ENOMEM, "no memory for a prefix cache of %zu pages", pages->count);
    }
    memset(cache->bucket, -1, cache->buckets * sizeof *cache->bucket);
    ft_page_table_clear(pages);
    pages->on_taken = forget;
    pages->user = cache;
    return FT_OK;
}

void ft_prefix_cache_free(ft_prefix_cache *cache)
{
    if (cache == NULL)
        return;
    if (cache->pages->user == cache) {
        ft_page_table_clear(cache->pages);
        cache->pages->on_taken = NULL;
        cache->pages->user = NULL;
    }
    free(cache->block);
    free(cache->bucket);
    free(cache);
}

ft_prefix ft_prefix_cache_share(ft_prefix_cache *cache, size_t slot, const int32_t *prompt,
                                size_t count)
{
    ft_prefix prefix = { .blocks = 0 };
    size_t most = (count - 1) / FT_PAGE_TOKENS;
    while (prefix.blocks < most) {
        int32_t page = find(cache, prefix.last, prompt + prefix.blocks * FT_PAGE_TOKENS);
        if (page < 0)
            break;
        ft_page_table_share(cache->pages, slot, page);
        prefix.last = cache->block[page].number;
        prefix.blocks++;
    }
    return prefix;
}

/* Where another page holds the same block, the sequence goes on as if it had that page. */
void ft_prefix_cache_add(ft_prefix_cache *cache, ft_prefix *prefix, size_t slot,
                         const int32_t *tokens, size_t count)
{
    const int32_t *row = ft_page_table_row(cache->pages, slot);
    for (; prefix->blocks < count / FT_PAGE_TOKENS; prefix->blocks++) {
        const int32_t *token = tokens + prefix->blocks * FT_PAGE_TOKENS;
        int32_t page = find(cache, prefix->last, token);
        if (page < 0) {
            page = row[prefix->blocks];
            insert(cache, page, prefix->last, token);
            ft_page_table_keep(cache->pages, page);
        }
        prefix->last = cache->block[page].number;
    }
}
