/*
 * combining_marks.h - canonical ordering of combining marks.
 *
 * Marks of different combining classes may follow a letter in any order with the same meaning; the
 * canonical order sorts them by class and keeps equal classes in order. A sequence buffers the
 * marks until a character of class 0 follows.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_TEXT_UNICODE_COMBINING_MARKS_H
#define FT_RUNTIME_TEXT_UNICODE_COMBINING_MARKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Zero-initialized means empty. */
typedef struct ft_combining_sequence {
    uint64_t *mark; /* combining class << 56 | position << 24 | is inserted << 23 | code point */
    size_t count, capacity;
} ft_combining_sequence;

/*
 * Append a mark whose class is not 0, and whether it was inserted by a decomposition; false when
 * out of memory.
 */
bool ft_combining_sequence_add(ft_combining_sequence *sequence, uint32_t c, uint8_t combining_class,
                               bool inserted);

/* Sort the marks. The caller reads them, then sets the count to 0. */
void ft_combining_sequence_sort(ft_combining_sequence *sequence);

static inline uint32_t ft_combining_mark_code(uint64_t mark)
{
    return (uint32_t) (mark & 0x7fffff);
}

static inline bool ft_combining_mark_is_inserted(uint64_t mark)
{
    return (mark >> 23 & 1) != 0;
}

static inline uint8_t ft_combining_mark_class(uint64_t mark)
{
    return (uint8_t) (mark >> 56);
}

void ft_combining_sequence_fini(ft_combining_sequence *sequence);

#endif
