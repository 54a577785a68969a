/*
 * prefix_cache-t.c - prompts that begin alike share pages, and pages are taken again when needed.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/generate/prefix_cache.h"
#include "runtime/mem.h"
#include "tests/lib/random.h"
#include "tests/tap/tap.h"

#include <string.h>

enum { PAGES = 8, SLOTS = 3, ROW = 6, BLOCK = FT_PAGE_TOKENS, TOKENS = ROW * BLOCK };

static ft_error err;

/* Tokens whose blocks are numbered: a block of a prompt has its number in all of its tokens. */
static void write_blocks(int32_t *tokens, size_t count, const int *blocks)
{
    for (size_t i = 0; i < count * BLOCK; i++)
        tokens[i] = blocks[i / BLOCK];
}

/* A prompt in a slot, computed and added; returns how many of its blocks were shared. */
static size_t run(ft_prefix_cache *cache, ft_page_table *pages, size_t slot, const int32_t *tokens,
                  size_t count)
{
    ft_prefix prefix = ft_prefix_cache_share(cache, slot, tokens, count);
    size_t shared = prefix.blocks;
    if (!ft_page_table_reserve(pages, slot, count))
        bail_out("%zu tokens find too few pages", count);
    ft_prefix_cache_add(cache, &prefix, slot, tokens, count);
    return shared;
}

static void test_sharing(ft_prefix_cache *cache, ft_page_table *pages)
{
    int32_t a[TOKENS], b[TOKENS], c[TOKENS];
    write_blocks(a, 3, (int[]){ 1, 2, 3 });
    write_blocks(b, 3, (int[]){ 1, 2, 4 });
    write_blocks(c, 3, (int[]){ 5, 2, 3 });
    is_int((long long) run(cache, pages, 0, a, 3 * BLOCK), 0, "a first prompt shares nothing");
    is_int((long long) run(cache, pages, 1, b, 3 * BLOCK), 2,
           "a prompt shares the blocks that it begins with");
    ok(memcmp(ft_page_table_row(pages, 0), ft_page_table_row(pages, 1), 2 * sizeof(int32_t)) == 0,
       "they are the same pages");
    ft_page_table_release(pages, 1);
    is_int((long long) run(cache, pages, 1, c, 3 * BLOCK), 0,
           "equal blocks behind another beginning are not shared");
    ft_page_table_release(pages, 1);
    is_int((long long) run(cache, pages, 1, a, 3 * BLOCK), 2,
           "a prompt is never shared completely");
    ft_page_table_release(pages, 0);
    ft_page_table_release(pages, 1);
    is_int((long long) run(cache, pages, 0, a, 3 * BLOCK - 1), 2,
           "pages of ended sequences are still shared");
    ft_page_table_release(pages, 0);
    is_int((long long) ft_page_table_available(pages), PAGES, "all of them are available");
}

static void test_eviction(ft_prefix_cache *cache, ft_page_table *pages)
{
    int32_t a[TOKENS], b[TOKENS];
    write_blocks(a, 4, (int[]){ 11, 12, 13, 14 });
    write_blocks(b, 6, (int[]){ 21, 22, 23, 24, 25, 26 });
    run(cache, pages, 0, a, 4 * BLOCK);
    ft_page_table_release(pages, 0);
    run(cache, pages, 1, b, 6 * BLOCK);
    is_int((long long) ft_page_table_available(pages), 2, "six of eight pages are in use");
    is_int((long long) ft_prefix_cache_share(cache, 0, a, 4 * BLOCK).blocks, 2,
           "the last pages of a prompt are taken before its first ones");
    ok(!ft_page_table_reserve(pages, 0, 3 * BLOCK), "pages in use are not taken");
    ft_page_table_release(pages, 0);
    ft_page_table_release(pages, 1);
}

/* Page contents stand for keys and values: what is shared must be what would be computed. */
static void test_random(ft_prefix_cache *cache, ft_page_table *pages)
{
    uint64_t contents[PAGES];
    int wrong = 0;
    size_t shared = 0;
    rng chance = { 4 };
    for (int round = 0; round < 3000; round++) {
        int32_t tokens[TOKENS];
        int blocks[ROW];
        size_t count = 1 + rng_below(&chance, 4), slot = rng_below(&chance, SLOTS);
        for (size_t i = 0; i < count; i++)
            blocks[i] = (int) rng_below(&chance, 3);
        write_blocks(tokens, count, blocks);
        ft_page_table_release(pages, slot);
        ft_prefix prefix = ft_prefix_cache_share(cache, slot, tokens, count * BLOCK);
        if (!ft_page_table_reserve(pages, slot, count * BLOCK)) {
            ft_page_table_release(pages, slot);
            continue;
        }
        uint64_t expected = 1;
        for (size_t i = 0; i < count; i++) {
            int32_t page = ft_page_table_row(pages, slot)[i];
            expected = 4 * expected + (uint64_t) blocks[i];
            if (i < prefix.blocks)
                wrong += contents[page] != expected;
            else
                contents[page] = expected;
        }
        shared += prefix.blocks;
        ft_prefix_cache_add(cache, &prefix, slot, tokens, count * BLOCK);
    }
    is_int(wrong, 0, "a shared page always holds the tokens of the prompt and those before them");
    ok(shared > 1000, "%zu pages were shared under pressure", shared);
}

int main(void)
{
    ft_page_table pages;
    ft_prefix_cache *cache;
    if (ft_page_table_init(&pages, PAGES, SLOTS, ROW, &err) != FT_OK ||
        ft_prefix_cache_new(&cache, &pages, &err) != FT_OK)
        bail_out("%s", err.text);
    test_sharing(cache, &pages);
    ft_prefix_cache_free(cache);
    if (ft_prefix_cache_new(&cache, &pages, &err) != FT_OK)
        bail_out("%s", err.text);
    test_eviction(cache, &pages);
    ft_prefix_cache_free(cache);
    if (ft_prefix_cache_new(&cache, &pages, &err) != FT_OK)
        bail_out("%s", err.text);
    test_random(cache, &pages);
    ft_prefix_cache_free(cache);
    ft_page_table_fini(&pages);
    return done_testing();
}
