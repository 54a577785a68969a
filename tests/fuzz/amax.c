/*
 * amax.c - fuzz target: arbitrary bytes parsed as amax.tsv.
 *
 * An accepted table has only valid values and is unchanged by a round trip through text.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/quant.h"
#include "runtime/container/amax.h"
#include "tests/fuzz/fuzz.h"

#include <math.h>
#include <string.h>

static void check_entry(const ft_amax_table *list, const ft_amax_entry *e)
{
    require(ft_amax_table_find(list, e->name) == e);
    require(e->amax > 0.0f && isfinite(e->amax) && isnormal(ft_scale_from_amax(e->amax)));
    require(memchr(e->method, '\0', sizeof e->method) != NULL);
    require(e->clipped >= 0.0 && e->clipped <= 1.0 && !isnan(e->sqnr));
}

/* The amax are bit-identical; the other values keep nine digits. */
static void check_again(const ft_amax_table *list, const ft_amax_table *again)
{
    require(again->count == list->count);
    for (size_t i = 0; i < list->count; i++) {
        const ft_amax_entry *a = &list->entry[i], *b = &again->entry[i];
        require(a->amax == b->amax && strcmp(a->name, b->name) == 0 &&
                strcmp(a->method, b->method) == 0);
    }
}

static void write_and_read(const ft_amax_table *list)
{
    ft_amax_table *again;
    char *text, *same;
    size_t bytes, same_bytes;
    require(ft_amax_table_format(list, &text, &bytes, NULL) == FT_OK);
    require(ft_amax_table_parse(&again, "fuzz", text, bytes, NULL) == FT_OK);
    check_again(list, again);
    require(ft_amax_table_format(again, &same, &same_bytes, NULL) == FT_OK);
    require(bytes == same_bytes && memcmp(text, same, bytes) == 0);
    ft_amax_table_free(again);
    free(text);
    free(same);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ft_error err = { .code = FT_OK };
    ft_amax_table *list;
    ft_status rc = ft_amax_table_parse(&list, "fuzz", data, size, &err);
    if (rc != FT_OK) {
        require(list == NULL && err.code == rc && strncmp(err.text, "fuzz: line ", 11) == 0);
        return 0;
    }
    for (size_t i = 0; i < list->count; i++)
        check_entry(list, &list->entry[i]);
    write_and_read(list);
    ft_amax_table_free(list);
    return 0;
}
