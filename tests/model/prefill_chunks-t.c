/*
 * prefill_chunks-t.c - page tables of the KV cache, and batches of prefill chunks.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/mem.h"
#include "runtime/model/prefill_chunks.h"
#include "tests/lib/random.h"
#include "tests/tap/tap.h"

#include <stdlib.h>
#include <string.h>

static void must(ft_status status, const ft_error *err)
{
    if (status != FT_OK)
        bail_out("%s", err->text);
}

static bool same(const int32_t *found, const int32_t *expected, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (found[i] != expected[i])
            diag("element %zu is %d, expected %d", i, (int) found[i], (int) expected[i]);
    return memcmp(found, expected, count * sizeof *found) == 0;
}

/* ---- Pages -------------------------------------------------------------------------------- */

static void test_reserve(void)
{
    ft_error err;
    ft_page_table pages;
    must(ft_page_table_init(&pages, 6, 3, 4, &err), &err);
    ok(ft_page_table_reserve(&pages, 0, 0) && pages.num_free == 6,
       "reserving 0 tokens takes no page");
    ok(ft_page_table_reserve(&pages, 1, 1) && pages.num_free == 5,
       "reserving one token takes one page");
    ok(ft_page_table_reserve(&pages, 0, FT_PAGE_TOKENS) && pages.num_free == 4,
       "reserving a full page of tokens takes one page");
    ok(ft_page_table_reserve(&pages, 1, FT_PAGE_TOKENS + 1) && pages.num_free == 3,
       "reserving one token more than a page takes a second page");
    ok(ft_page_table_reserve(&pages, 1, 2 * FT_PAGE_TOKENS) &&
           ft_page_table_reserve(&pages, 1, 3) && pages.num_free == 3,
       "reserving no more tokens than the pages of a slot hold takes no page");
    ok(same(ft_page_table_row(&pages, 0), (int32_t[]){ 1, 0, 0, 0 }, 4) &&
           same(ft_page_table_row(&pages, 1), (int32_t[]){ 0, 2, 0, 0 }, 4) &&
           same(ft_page_table_row(&pages, 2), (int32_t[]){ 0, 0, 0, 0 }, 4),
       "the lowest free page is taken first and page lists are in token order");
    ft_page_table_fini(&pages);
}

static void test_exhaustion(void)
{
    ft_error err;
    ft_page_table pages;
    must(ft_page_table_init(&pages, 6, 3, 4, &err), &err);
    ok(!ft_page_table_reserve(&pages, 0, 4 * FT_PAGE_TOKENS + 1) && pages.num_free == 6,
       "a slot cannot reserve more pages than its list holds");
    ok(ft_page_table_reserve(&pages, 0, 4 * FT_PAGE_TOKENS) && ft_page_table_reserve(&pages, 1, 1),
       "two slots reserve five of six pages");
    ok(!ft_page_table_reserve(&pages, 1, 3 * FT_PAGE_TOKENS) && pages.num_free == 1 &&
           pages.used[1] == 1,
       "a reservation that needs more pages than are free takes none");
    ok(same(ft_page_table_row(&pages, 1), (int32_t[]){ 4, 0, 0, 0 }, 4),
       "a failed reservation leaves the pages of the slot unchanged");
    ok(ft_page_table_reserve(&pages, 1, 2 * FT_PAGE_TOKENS) && pages.num_free == 0,
       "a slot can reserve the last free page");
    ok(!ft_page_table_reserve(&pages, 2, 1), "a reservation fails when no page is free");
    ft_page_table_release(&pages, 0);
    ok(pages.num_free == 4 && same(ft_page_table_row(&pages, 0), (int32_t[]){ 0, 0, 0, 0 }, 4),
       "releasing a slot frees all its pages and empties its list");
    ft_page_table_release(&pages, 0);
    is_int((long long) pages.num_free, 4, "releasing an empty slot frees no page");
    ok(same(ft_page_table_row(&pages, 1), (int32_t[]){ 4, 5, 0, 0 }, 4),
       "releasing a slot leaves the pages of other slots unchanged");
    ok(ft_page_table_reserve(&pages, 2, 4 * FT_PAGE_TOKENS) &&
           same(ft_page_table_row(&pages, 2), (int32_t[]){ 0, 1, 2, 3 }, 4),
       "released pages are reused in their original order");
    ft_page_table_clear(&pages);
    ok(pages.num_free == 6 &&
           same(ft_page_table_row(&pages, 0), (int32_t[3 * 4]){ 0 }, (size_t) 3 * 4),
       "ft_page_table_clear() frees all pages and empties all lists");
    ok(ft_page_table_reserve(&pages, 2, 2 * FT_PAGE_TOKENS) &&
           same(ft_page_table_row(&pages, 2), (int32_t[]){ 0, 1, 0, 0 }, 4),
       "the lowest page is taken first after ft_page_table_clear()");
    ft_page_table_fini(&pages);
}

/* Whether every page is either free or in exactly one list. */
static bool is_whole(const ft_page_table *pages)
{
    size_t found = pages->num_free, twice = 0;
    unsigned char used[64] = { 0 };
    for (size_t i = 0; i < pages->num_free; i++)
        twice += used[pages->free[i]]++ != 0;
    for (size_t slot = 0; slot < pages->num_slots; slot++)
        for (size_t i = 0; i < pages->max_pages; i++) {
            int32_t page = ft_page_table_row(pages, slot)[i];
            if (i < pages->used[slot]) {
                twice += used[page]++ != 0;
                found++;
            } else if (page != 0) {
                return false;
            }
        }
    return twice == 0 && found == pages->count;
}

static void test_many_turns(void)
{
    enum { COUNT = 37, SLOTS = 7, MAX_PAGES = 9 };
    ft_error err;
    ft_page_table pages;
    rng r = { 81 };
    size_t lost = 0, wrong = 0, refused = 0;
    must(ft_page_table_init(&pages, COUNT, SLOTS, MAX_PAGES, &err), &err);
    for (int i = 0; i < 5000; i++) {
        size_t slot = rng_below(&r, SLOTS), tokens = rng_below(&r, MAX_PAGES * FT_PAGE_TOKENS + 50);
        size_t wanted = ft_pages_for_tokens(tokens), taken = pages.used[slot];
        bool possible = wanted <= MAX_PAGES && wanted <= taken + pages.num_free;
        if (rng_below(&r, 4) == 0) {
            ft_page_table_release(&pages, slot);
            wrong += pages.used[slot] != 0;
        } else {
            bool given = ft_page_table_reserve(&pages, slot, tokens);
            size_t expected = possible && wanted > taken ? wanted : taken;
            wrong += given != possible || pages.used[slot] != expected;
            refused += !given;
        }
        lost += !is_whole(&pages);
    }
    is_int((long long) wrong, 0,
           "in 5000 random operations a slot reserves all the pages it needs or none");
    is_int((long long) lost, 0, "in 5000 random operations no page is lost or assigned twice");
    ok(refused > 100, "random operations run out of pages often (%zu times)", refused);
    ft_page_table_fini(&pages);
}

static void test_too_many_pages(void)
{
    ft_error err;
    ft_page_table pages;
    is_int(ft_page_table_init(&pages, (size_t) INT32_MAX + 1, 3, 4, &err), FT_ELIMIT,
           "ft_page_table_init() refuses more pages than int32_t can index");
    is_str(err.text, "a cache of 2147483648 pages for 3 sequences is too large",
           "the error states the numbers of pages and sequences");
    is_int(ft_page_table_init(&pages, 8, SIZE_MAX / 2, 4, &err), FT_ELIMIT,
           "ft_page_table_init() refuses page lists that exceed the address space");
}

/* ---- Prefill chunks ----------------------------------------------------------------------- */

enum { TOKENS = 12, SLOTS = 5, PAGES = 8, MAX_PAGES = 3 };
static const ft_limits limits = { .tokens = TOKENS,
                                  .sequences = SLOTS,
                                  .selected = TOKENS,
                                  .context = MAX_PAGES * FT_PAGE_TOKENS,
                                  .pages = PAGES };
static const int32_t text[TOKENS] = { 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22 };

static void add(ft_chunk_batch *p, size_t slot, size_t n_past, size_t count, ft_logit_rows wanted,
                const ft_sampling_params *sampling)
{
    if (!ft_page_table_reserve(&p->pages, slot, n_past + count))
        bail_out("no pages for slot %zu", slot);
    ft_chunk_batch_add(p, &(ft_prefill_chunk){ .slot = slot,
                                               .n_past = n_past,
                                               .n_tokens = n_past + count + slot,
                                               .ids = text + p->batch.tokens,
                                               .count = count,
                                               .logits = wanted,
                                               .sampling = sampling });
}

static void is_empty(const ft_chunk_batch *p, const char *when)
{
    const ft_batch *b = &p->batch;
    ok(b->tokens == 0 && b->sequences == 0 && b->longest == 0 && b->context == 0 &&
           b->selected == 0 && b->sampling == NULL && !b->decode_step && b->start[0] == 0,
       "%s: the batch is empty", when);
}

/* A prompt, the end of another, a decode token, and a prompt without logits. */
static void test_batch(ft_chunk_batch *p)
{
    const ft_batch *b = &p->batch;
    add(p, 3, 0, 4, FT_LOGITS_LAST, NULL);
    add(p, 0, 130, 2, FT_LOGITS_ALL, NULL);
    add(p, 4, 70, 1, FT_LOGITS_LAST, NULL);
    add(p, 1, 0, 5, FT_LOGITS_NONE, NULL);
    ok(b->tokens == 12 && b->sequences == 4, "four prefill chunks form a batch of twelve tokens");
    ok(same(p->ids, text, 12), "ids are in the order of the chunks");
    ok(same(b->start, (int32_t[]){ 0, 4, 6, 7, 12 }, 5),
       "each chunk starts where the previous one ends");
    ok(same(b->seq_id, (int32_t[]){ 0, 0, 0, 0, 1, 1, 2, 3, 3, 3, 3, 3 }, 12),
       "seq_id maps each row to its chunk");
    ok(same(b->slot, (int32_t[]){ 3, 0, 4, 1 }, 4), "the batch contains the slot of each chunk");
    ok(same(b->n_past, (int32_t[]){ 0, 130, 70, 0 }, 4),
       "n_past is the number of tokens before each chunk");
    ok(same(b->n_tokens, (int32_t[]){ 7, 132, 75, 6 }, 4),
       "n_tokens is the sequence length of each chunk");
    ok(b->max_pages == MAX_PAGES &&
           same(b->pages, (int32_t[]){ 0, 0, 0, 1, 2, 3, 4, 5, 0, 6, 0, 0 },
                (size_t) 4 * MAX_PAGES),
       "the batch contains the page list of each chunk");
    is_int((long long) b->longest, 5, "the longest chunk has five tokens");
    is_int((long long) b->context, 132,
           "the longest context has 132 tokens after the forward pass");
    ok(b->selected == 4 && same(b->selected_rows, (int32_t[]){ 3, 4, 5, 6 }, 4),
       "the selected rows are the last, all, the only and none of the rows of their chunks");
    ok(b->sampling == NULL, "a batch without sampling parameters samples no token");
}

/* The next forward pass of the same sequences has a new batch and the old pages. */
static void test_again(ft_chunk_batch *p)
{
    const ft_batch *b = &p->batch;
    const ft_sampling_params first = { .seed = 7, .slot = 1, .n_tokens = 6 };
    const ft_sampling_params second = { .temperature = 0.5f, .slot = 3, .n_tokens = 5 };
    p->batch.decode_step = true;
    ft_chunk_batch_clear(p);
    is_empty(p, "after clearing");
    add(p, 1, 5, 1, FT_LOGITS_LAST, &first);
    add(p, 3, 4, 1, FT_LOGITS_LAST, &second);
    ok(b->tokens == 2 && b->sequences == 2 && b->longest == 1 && b->context == 6,
       "a cleared batch accepts two new chunks");
    ok(same(p->ids, text, 2) && same(b->start, (int32_t[]){ 0, 1, 2 }, 3) &&
           same(b->seq_id, (int32_t[]){ 0, 1 }, 2) && same(b->slot, (int32_t[]){ 1, 3 }, 2) &&
           same(b->n_past, (int32_t[]){ 5, 4 }, 2) && same(b->n_tokens, (int32_t[]){ 7, 8 }, 2),
       "a cleared batch keeps no data of the previous chunks");
    ok(same(b->pages, (int32_t[]){ 6, 0, 0, 0, 0, 0 }, (size_t) 2 * MAX_PAGES),
       "a cleared batch keeps the pages of its slots");
    ok(b->selected == 2 && same(b->selected_rows, (int32_t[]){ 0, 1 }, 2),
       "the rows of both decode chunks are selected");
    ok(b->sampling != NULL && b->sampling[0].seed == 7 && b->sampling[0].slot == 1 &&
           b->sampling[0].n_tokens == 6 && b->sampling[1].temperature == 0.5f &&
           b->sampling[1].slot == 3 && b->sampling[1].n_tokens == 5,
       "the batch contains the sampling parameters of each chunk");
    ft_chunk_batch_clear(p);
    is_empty(p, "after clearing again");
}

static void test_passages(void)
{
    ft_error err;
    ft_chunk_batch *p;
    must(ft_chunk_batch_open(&p, &limits, &err), &err);
    is_empty(p, "after opening");
    test_batch(p);
    test_again(p);
    ft_page_table_release(&p->pages, 1);
    add(p, 2, 0, 1, FT_LOGITS_NONE, NULL);
    ok(same(p->batch.pages, (int32_t[]){ 6, 0, 0 }, MAX_PAGES), "a released page is reused");
    ft_chunk_batch_close(p);
}

static void test_too_large(void)
{
    ft_error err;
    ft_chunk_batch *p;
    ft_limits many = limits;
    many.pages = (size_t) INT32_MAX + 1;
    is_int(ft_chunk_batch_open(&p, &many, &err), FT_ELIMIT,
           "ft_chunk_batch_open() refuses a cache that is too large");
    ok(p == NULL, "ft_chunk_batch_open() sets the batch to NULL when it fails");
    ft_chunk_batch_close(NULL);
}

int main(void)
{
    test_reserve();
    test_exhaustion();
    test_many_turns();
    test_too_many_pages();
    test_passages();
    test_too_large();
    return done_testing();
}
