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

ft_status ft_pages_init(ft_pages *pages, size_t count, size_t seats, size_t most, ft_error *err)
{
    size_t listed;
    memset(pages, 0, sizeof *pages);
    if (count > INT32_MAX || !ft_mul(seats, most, &listed))
        return ft_fail(err, FT_ELIMIT, "a cache of %zu pages for %zu sequences is too large", count,
                       seats);
    pages->seats = seats;
    pages->most = most;
    pages->count = count;
    pages->free = ft_array(count, sizeof *pages->free);
    pages->list = ft_array(listed, sizeof *pages->list);
    pages->taken = ft_array(seats, sizeof *pages->taken);
    if (pages->free == NULL || pages->list == NULL || pages->taken == NULL) {
        ft_pages_fini(pages);
        return ft_fail(err, FT_ENOMEM, "no memory for a table of %zu pages", count);
    }
    ft_pages_clear(pages);
    return FT_OK;
}

void ft_pages_clear(ft_pages *pages)
{
    memset(pages->list, 0, pages->seats * pages->most * sizeof *pages->list);
    memset(pages->taken, 0, pages->seats * sizeof *pages->taken);
    pages->nfree = pages->count;
    for (size_t i = 0; i < pages->count; i++) /* lower pages are allocated first */
        pages->free[i] = (int32_t) (pages->count - 1 - i);
}

void ft_pages_fini(ft_pages *pages)
{
    free(pages->free);
    free(pages->list);
    free(pages->taken);
    memset(pages, 0, sizeof *pages);
}

bool ft_pages_reserve(ft_pages *pages, size_t seat, size_t tokens)
{
    size_t wanted = ft_pages_for(tokens), *taken = &pages->taken[seat];
    assert(seat < pages->seats);
    if (wanted > pages->most || (wanted > *taken && wanted - *taken > pages->nfree))
        return false;
    while (*taken < wanted)
        pages->list[seat * pages->most + (*taken)++] = pages->free[--pages->nfree];
    return true;
}

void ft_pages_release(ft_pages *pages, size_t seat)
{
    int32_t *list = pages->list + seat * pages->most;
    assert(seat < pages->seats);
    while (pages->taken[seat] > 0) {
        int32_t *last = &list[--pages->taken[seat]];
        pages->free[pages->nfree++] = *last;
        *last = 0;
    }
}

const int32_t *ft_pages_of(const ft_pages *pages, size_t seat)
{
    return pages->list + seat * pages->most;
}
