/*
 * page_table.c - page allocation of a paged KV cache.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/model/page_table.h"

#include "runtime/error.h"
#include "runtime/mem.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

ft_status ft_page_table_init(ft_page_table *pages, size_t count, size_t num_slots, size_t max_pages,
                             ft_error *err)
{
    size_t entries;
    memset(pages, 0, sizeof *pages);
    if (count > INT32_MAX || !ft_checked_mul(num_slots, max_pages, &entries))
        return ft_fail(err, FT_ELIMIT, "a cache of %zu pages for %zu sequences is too large", count,
                       num_slots);
    pages->num_slots = num_slots;
    pages->max_pages = max_pages;
    pages->count = count;
    pages->free = ft_calloc(count, sizeof *pages->free);
    pages->list = ft_calloc(entries, sizeof *pages->list);
    pages->used = ft_calloc(num_slots, sizeof *pages->used);
    pages->page = ft_calloc(count, sizeof *pages->page);
    if (pages->free == NULL || pages->list == NULL || pages->used == NULL || pages->page == NULL) {
        ft_page_table_fini(pages);
        return ft_fail(err, FT_ENOMEM, "no memory for a table of %zu pages", count);
    }
    ft_page_table_clear(pages);
    return FT_OK;
}

void ft_page_table_clear(ft_page_table *pages)
{
    memset(pages->list, 0, pages->num_slots * pages->max_pages * sizeof *pages->list);
    memset(pages->used, 0, pages->num_slots * sizeof *pages->used);
    memset(pages->page, 0, pages->count * sizeof *pages->page);
    pages->num_free = pages->count;
    pages->num_unused = 0;
    pages->oldest = pages->newest = -1;
    pages->clears++;
    for (size_t i = 0; i < pages->count; i++) /* lower pages are allocated first */
        pages->free[i] = (int32_t) (pages->count - 1 - i);
}

void ft_page_table_fini(ft_page_table *pages)
{
    free(pages->free);
    free(pages->list);
    free(pages->used);
    free(pages->page);
    memset(pages, 0, sizeof *pages);
}

/* ---- Kept pages that no slot uses --------------------------------------------------------- */

static void append_unused(ft_page_table *pages, int32_t page)
{
    ft_page *p = &pages->page[page];
    p->older = pages->newest;
    p->newer = -1;
    *(p->older < 0 ? &pages->oldest : &pages->page[p->older].newer) = page;
    pages->newest = page;
    pages->num_unused++;
}

static void remove_unused(ft_page_table *pages, int32_t page)
{
    const ft_page *p = &pages->page[page];
    *(p->older < 0 ? &pages->oldest : &pages->page[p->older].newer) = p->newer;
    *(p->newer < 0 ? &pages->newest : &pages->page[p->newer].older) = p->older;
    pages->num_unused--;
}

/* ---- Rows --------------------------------------------------------------------------------- */

/* A page for new contents. */
static int32_t take(ft_page_table *pages)
{
    if (pages->num_free > 0)
        return pages->free[--pages->num_free];
    int32_t page = pages->oldest;
    remove_unused(pages, page);
    pages->page[page].kept = false;
    pages->on_taken(pages->user, page);
    return page;
}

static void append(ft_page_table *pages, size_t slot, int32_t page)
{
    pages->page[page].uses++;
    pages->list[slot * pages->max_pages + pages->used[slot]++] = page;
}

bool ft_page_table_reserve(ft_page_table *pages, size_t slot, size_t tokens)
{
    size_t needed = ft_pages_for_tokens(tokens), used = pages->used[slot];
    assert(slot < pages->num_slots);
    if (needed > pages->max_pages ||
        (needed > used && needed - used > ft_page_table_available(pages)))
        return false;
    while (pages->used[slot] < needed)
        append(pages, slot, take(pages));
    return true;
}

void ft_page_table_share(ft_page_table *pages, size_t slot, int32_t page)
{
    assert(slot < pages->num_slots && pages->used[slot] < pages->max_pages);
    if (pages->page[page].uses == 0)
        remove_unused(pages, page);
    append(pages, slot, page);
}

void ft_page_table_keep(ft_page_table *pages, int32_t page)
{
    assert(pages->page[page].uses > 0);
    pages->page[page].kept = true;
}

/* A row no longer has the page. */
static void give_back(ft_page_table *pages, int32_t page)
{
    if (--pages->page[page].uses > 0)
        return;
    if (pages->page[page].kept)
        append_unused(pages, page);
    else
        pages->free[pages->num_free++] = page;
}

void ft_page_table_release(ft_page_table *pages, size_t slot)
{
    int32_t *list = pages->list + slot * pages->max_pages;
    assert(slot < pages->num_slots);
    while (pages->used[slot] > 0) {
        int32_t *last_page = &list[--pages->used[slot]];
        give_back(pages, *last_page);
        *last_page = 0;
    }
}

const int32_t *ft_page_table_row(const ft_page_table *pages, size_t slot)
{
    return pages->list + slot * pages->max_pages;
}
