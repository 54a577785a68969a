/*
 * ops-kv_cache.h - inside ops.t: a cache, and the sequences of a run that use it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_TESTS_OPS_OPS_KV_CACHE_H
#define FT_TESTS_OPS_OPS_KV_CACHE_H

#include "tests/ops/ops.h"

/* Four sequences: fresh ones, and some that the cache knows already. */
enum { CONTEXT = 320, LIST = CONTEXT / FT_PAGE_TOKENS, PAGES = 22, ROWS = 74 };
extern const int32_t world_start[SEQUENCES + 1], world_past[SEQUENCES];

typedef struct variant {
    size_t heads, kv_heads, size;
    int32_t window;
    ft_dtype real, cache; /* of queries and results; of keys and values */
    bool cross_kv;        /* of a source: nothing is turned, every query sees all of it */
    bool lanes;           /* neighbouring sequences share their tokens, or their source */
} variant;

typedef struct world {
    const variant *v;
    ft_batch batch;
    int32_t seq_id[ROWS], n_tokens[SEQUENCES], pages[SEQUENCES * LIST];
    int32_t slot[SEQUENCES], cache_indirection[SEQUENCES * CONTEXT];
} world;

/* Pages in an order of their own, none twice. */
void world_init(world *w, const variant *v);

/* Whether a device computes with such heads; where it does not, `checks` checks are skipped. */
bool variant_runs_on(const bench *on, const variant *v, int checks);

/* Room for the cache and the memory of such a world. */
ft_limits world_limits(const world *w);

/* Where a row of the run stands in its sequence. */
size_t world_position(const world *w, size_t row);

/* Which row of a head a head of a token is in the cache: as kernels/kv_cache.h says. */
size_t world_place(const world *w, size_t sequence, size_t position, size_t head);

/* "8 heads of 64 over 2, F32, cache in I8"; lives until the next call. */
const char *variant_name(const variant *v);

#endif
