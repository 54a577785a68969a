/*
 * combining_marks.c - a mark and its position are packed into one number, so any sort is stable.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/text/unicode/combining_marks.h"

#include "runtime/mem.h"

#include <stdlib.h>

bool ft_combining_sequence_add(ft_combining_sequence *sequence, uint32_t c, uint8_t combining_class,
                               bool inserted)
{
    if (sequence->count == sequence->capacity) {
        uint64_t *mark = ft_array_grow(sequence->mark, &sequence->capacity, 16, sizeof *mark);
        if (mark == NULL)
            return false;
        sequence->mark = mark;
    }
    sequence->mark[sequence->count] = (uint64_t) combining_class << 56 |
                                      (uint64_t) sequence->count << 24 | (uint64_t) inserted << 23 |
                                      c;
    sequence->count++;
    return true;
}

static int compare_marks(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *) a, right = *(const uint64_t *) b;
    return (left > right) - (left < right);
}

void ft_combining_sequence_sort(ft_combining_sequence *sequence)
{
    if (sequence->count > 1)
        qsort(sequence->mark, sequence->count, sizeof *sequence->mark, compare_marks);
}

void ft_combining_sequence_fini(ft_combining_sequence *sequence)
{
    free(sequence->mark);
    *sequence = (ft_combining_sequence){ 0 };
}
