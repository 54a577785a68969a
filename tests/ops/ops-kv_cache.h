/*
 * ops-kv_cache.h - shared by ops.t: a KV cache, and the sequences of a batch that use it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_TESTS_OPS_OPS_KV_CACHE_H
#define FT_TESTS_OPS_OPS_KV_CACHE_H

#include "tests/ops/ops.h"

/* Four sequences: new ones, and some that already have tokens in the cache. */
enum { CONTEXT = 320, LIST = CONTEXT / FT_PAGE_TOKENS, PAGES = 22, ROWS = 74 };
extern const int32_t world_start[SEQUENCES + 1], world_n_past[SEQUENCES];

typedef struct variant {
    size_t heads, kv_heads, size;
    int32_t window;
    ft_dtype real, cache; /* of queries and results; of keys and values */
    bool cross_kv;        /* cross-attention: no rotary embedding, no causal mask */
    bool beam_width;      /* pairs of sequences share their tokens, or their source */
} variant;

typedef struct world {
    const variant *v;
    ft_batch batch;
    int32_t seq_id[ROWS], n_tokens[SEQUENCES], pages[SEQUENCES * LIST];
    int32_t slot[SEQUENCES], cache_indirection[SEQUENCES * CONTEXT];
} world;

/* Assigns pages in random order, each once. */
void world_init(world *w, const variant *v);

/* Whether the device supports such heads; where it does not, skips `checks` checks. */
bool variant_runs_on(const bench *on, const variant *v, int checks);

/* The capacity of the KV cache and the cross-attention KV of such a world. */
ft_limits world_limits(const world *w);

/* The position of a row of the batch in its sequence. */
size_t world_position(const world *w, size_t row);

/* The cache row of a head of a token, as kernels/kv_cache.h defines it. */
size_t world_place(const world *w, size_t sequence, size_t position, size_t head);

/* "8 heads of 64 over 2 KV heads, F32, cache in I8"; valid until the next call. */
const char *variant_name(const variant *v);

#endif
