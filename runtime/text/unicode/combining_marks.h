/*
 * combining_marks.h - combining marks in their canonical order.
 *
 * Marks of different classes may stand in any order behind a letter and mean the same; the
 * canonical order sorts them by class and leaves equal classes as they came.  A run holds the marks
 * that wait for a character that they cannot cross.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_TEXT_UNICODE_COMBINING_MARKS_H
#define FT_RUNTIME_TEXT_UNICODE_COMBINING_MARKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* All zero is an empty run. */
typedef struct ft_mark_run {
    uint64_t *mark; /* combining class << 56 | position in the run << 24 | code */
    size_t count, room;
} ft_mark_run;

/* Append a mark whose class is not 0; false when there is no memory. */
bool ft_mark_run_add(ft_mark_run *run, uint32_t c, uint8_t combining_class);

/* Bring the marks into order.  The caller reads them, then sets the count to 0. */
void ft_mark_run_sort(ft_mark_run *run);

static inline uint32_t ft_mark_code(uint64_t mark)
{
    return (uint32_t) (mark & 0xffffff);
}

static inline uint8_t ft_mark_class(uint64_t mark)
{
    return (uint8_t) (mark >> 56);
}

void ft_mark_run_fini(ft_mark_run *run);

#endif
