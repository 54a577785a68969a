/*
 * ops-kv_cache.c - the cache and the sequences that the tests of store_kv and attend_kv share.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "tests/ops/ops-kv_cache.h"

#include "kernels/half.h"
#include "runtime/graph/plan.h"
#include "runtime/tensor.h"
#include "tests/lib/random.h"
#include "tests/tap/tap.h"

#include <stdlib.h>
#include <string.h>

const int32_t world_start[SEQUENCES + 1] = { 0, 3, 4, 57, 74 };
const int32_t world_n_past[SEQUENCES] = { 0, 70, 5, 247 };

/* Cross-attention KV; a read of the KV cache would go to page -1. */
static void use_memory(world *w)
{
    static const int32_t nowhere[SEQUENCES * LIST] = { [0 ... SEQUENCES * LIST - 1] = -1 };
    w->batch.cross_kv = w->n_tokens;
    w->batch.cross_kv_pages = w->pages;
    w->batch.max_cross_kv_pages = LIST;
    w->batch.pages = nowhere;
}

/* Two beams of each search share one source. */
static void share_memory(world *w)
{
    w->batch.beam_width = 2;
    for (int32_t i = 1; i < SEQUENCES; i += 2) {
        w->n_tokens[i] = w->n_tokens[i - 1];
        memcpy(w->pages + i * LIST, w->pages + (i - 1) * LIST, LIST * sizeof *w->pages);
    }
}

/* Two beams of each search; a cached token belongs to a random one of those that have it. */
static void mix_beams(world *w)
{
    rng r = { 54 };
    w->batch.beam_width = 2;
    w->batch.slot = w->slot;
    for (int32_t i = 0; i < SEQUENCES; i++) {
        int32_t other = i ^ 1;
        w->slot[i] = i;
        for (int32_t at = 0; at < w->n_tokens[i]; at++)
            w->cache_indirection[i * CONTEXT + at] =
                at < w->n_tokens[other] ? (int32_t) rng_below(&r, 2) : i % 2;
    }
}

void world_init(world *w, const variant *v)
{
    rng r = { 50 };
    int32_t order[PAGES];
    *w = (world){ .v = v };
    for (int i = 0; i < PAGES; i++)
        order[i] = i;
    for (uint32_t i = PAGES - 1; i > 0; i--) {
        uint32_t j = rng_below(&r, i + 1);
        int32_t page = order[i];
        order[i] = order[j];
        order[j] = page;
    }
    memcpy(w->pages, order, sizeof w->pages);
    for (int32_t i = 0; i < SEQUENCES; i++) {
        w->n_tokens[i] = world_n_past[i] + world_start[i + 1] - world_start[i];
        for (int32_t row = world_start[i]; row < world_start[i + 1]; row++)
            w->seq_id[row] = i;
    }
    w->batch = (ft_batch){ .tokens = ROWS,
                           .sequences = SEQUENCES,
                           .longest = 53,
                           .start = world_start,
                           .seq_id = w->seq_id,
                           .n_past = world_n_past,
                           .n_tokens = w->n_tokens,
                           .pages = w->pages,
                           .max_pages = LIST,
                           .context = 264 };
    if (v->cross_kv)
        use_memory(w);
    if (v->beam_width && v->cross_kv)
        share_memory(w);
    else if (v->beam_width)
        mix_beams(w);
}

bool variant_runs_on(const bench *on, const variant *v, int checks)
{
    ft_error err;
    ft_value heads = { .name = "heads", .rows = FT_TOKENS, .cols = (int32_t) (v->heads * v->size) };
    ft_plan plan = { .value = &heads, .nvalue = 1 };
    ft_op op = ft_op_init(FT_OP_ATTEND_KV);
    op.in[0] = 0;
    op.attr.heads = (int32_t) v->heads;
    if (on->backend->supports_op == NULL ||
        on->backend->supports_op(&plan, &op, variant_name(v), &err) == FT_OK)
        return true;
    skip(checks, "%s: %s", on->name, err.text);
    return false;
}

ft_limits world_limits(const world *w)
{
    return w->v->cross_kv
               ? (ft_limits){ .context = CONTEXT, .cross_kv = CONTEXT, .cross_kv_pages = PAGES }
               : (ft_limits){ .sequences = SEQUENCES, .context = CONTEXT, .pages = PAGES };
}

size_t world_position(const world *w, size_t row)
{
    size_t sequence = (size_t) w->seq_id[row];
    return (size_t) (world_n_past[sequence] - world_start[sequence]) + row;
}

size_t world_place(const world *w, size_t sequence, size_t position, size_t head)
{
    if (w->v->beam_width && !w->v->cross_kv)
        sequence = sequence / 2 * 2 + (size_t) w->cache_indirection[sequence * CONTEXT + position];
    size_t page = (size_t) w->pages[sequence * LIST + position / 64];
    return (page * w->v->kv_heads + head) * 64 + position % 64;
}

const char *variant_name(const variant *v)
{
    static char name[96];
    snprintf(name, sizeof name, "%zu heads of %zu over %zu KV heads, %s, %s in %s%s%s", v->heads,
             v->size, v->kv_heads, ft_dtype_name(v->real),
             v->cross_kv ? "cross-attention KV" : "cache", ft_dtype_name(v->cache),
             v->window > 0 ? ", window" : "", v->beam_width ? ", beams" : "");
    return name;
}
