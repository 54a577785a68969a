/*
 * combining_marks.c - a mark and its position are packed into one number, so any sort is stable.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/text/unicode/combining_marks.h"

#include "runtime/mem.h"

#include <stdlib.h>

bool ft_mark_run_add(ft_mark_run *run, uint32_t c, uint8_t combining_class)
{
    if (run->count == run->room) {
        uint64_t *mark = ft_grown(run->mark, &run->room, 16, sizeof *mark);
        if (mark == NULL)
            return false;
        run->mark = mark;
    }
    run->mark[run->count] = (uint64_t) combining_class << 56 | (uint64_t) run->count << 24 | c;
    run->count++;
    return true;
}

static int compare_marks(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *) a, right = *(const uint64_t *) b;
    return (left > right) - (left < right);
}

void ft_mark_run_sort(ft_mark_run *run)
{
    if (run->count > 1)
        qsort(run->mark, run->count, sizeof *run->mark, compare_marks);
}

void ft_mark_run_fini(ft_mark_run *run)
{
    free(run->mark);
    *run = (ft_mark_run){ 0 };
}
