/*
 * arena.h - memory that is freed all at once, up to a limit.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_TEXT_JINJA_VALUES_ARENA_H
#define FT_RUNTIME_TEXT_JINJA_VALUES_ARENA_H

#include <stdbool.h>
#include <stddef.h>

/* Initialize with { .limit = BYTES }. */
typedef struct ft_jinja_arena {
    struct ft_jinja_chunk *chunks;
    char *next, *end; /* the free part of the newest chunk */
    size_t used, limit;
} ft_jinja_arena;

/* Whether the limit allows so many more bytes. */
bool ft_jinja_arena_fits(const ft_jinja_arena *arena, size_t bytes);

/* Memory for any type, not initialized; NULL: out of memory, or over the limit. */
void *ft_jinja_arena_alloc(ft_jinja_arena *arena, size_t bytes);
void ft_jinja_arena_fini(ft_jinja_arena *arena);

#endif
