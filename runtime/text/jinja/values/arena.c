/*
 * arena.c - chunks of at least 16 KiB in a list; each serves allocations until it is full.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/text/jinja/values/arena.h"

#include "runtime/mem.h"

#include <stdlib.h>

enum { CHUNK_BYTES = 16 << 10, ALIGNMENT = 16 };

struct ft_jinja_chunk {
    struct ft_jinja_chunk *older;
    _Alignas(ALIGNMENT) char data[];
};

static bool add_chunk(ft_jinja_arena *arena, size_t bytes)
{
    size_t room = bytes > CHUNK_BYTES ? bytes : CHUNK_BYTES;
    struct ft_jinja_chunk *chunk = malloc(sizeof *chunk + room);
    if (chunk == NULL)
        return false;
    chunk->older = arena->chunks;
    arena->chunks = chunk;
    arena->next = chunk->data;
    arena->end = chunk->data + room;
    return true;
}

static size_t round_bytes(size_t bytes)
{
    return ft_round_up(bytes + (bytes == 0), ALIGNMENT);
}

bool ft_jinja_arena_fits(const ft_jinja_arena *arena, size_t bytes)
{
    return bytes <= arena->limit && round_bytes(bytes) <= arena->limit - arena->used;
}

void *ft_jinja_arena_alloc(ft_jinja_arena *arena, size_t bytes)
{
    if (!ft_jinja_arena_fits(arena, bytes))
        return NULL;
    bytes = round_bytes(bytes);
    if ((size_t) (arena->end - arena->next) < bytes && !add_chunk(arena, bytes))
        return NULL;
    void *memory = arena->next;
    arena->next += bytes;
    arena->used += bytes;
    return memory;
}

void ft_jinja_arena_fini(ft_jinja_arena *arena)
{
    while (arena->chunks != NULL) {
        struct ft_jinja_chunk *older = arena->chunks->older;
        free(arena->chunks);
        arena->chunks = older;
    }
    *arena = (ft_jinja_arena){ 0 };
}
