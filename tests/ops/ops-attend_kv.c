/*
 * ops-attend_kv.c - attend_kv: attention over a KV cache, against the oracle.
 *
 * The oracle has neither pages nor chunks: it has all keys of a sequence in order.  Entries that a
 * sequence must not read are NaN, so that reading one changes the result.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "tests/ops/ops-kv_cache.h"

#include "runtime/mem.h"
#include "runtime/tensor.h"
#include "tests/lib/ops/oracle.h"
#include "tests/lib/random.h"
#include "tests/tap/tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A cache [pages, kv_heads, 64, size], NaN except for the tokens of sequences; scales for int8. */
typedef struct cache {
    void *data;
    float *scale;
    double *value; /* the dequantized data */
    size_t count, scales;
} cache;

static cache make_cache(const world *w, uint64_t seed)
{
    const variant *v = w->v;
    rng r = { seed };
    cache c = { .scales = PAGES * v->kv_heads * 64 };
    c.count = c.scales * v->size;
    c.data = must_have(c.count, ft_dtype_size(v->cache));
    c.scale = must_have(c.scales, sizeof *c.scale);
    c.value = must_have(c.count, sizeof *c.value);
    memset(c.data, 0xff, c.count * ft_dtype_size(v->cache));
    memset(c.scale, 0xff, c.scales * sizeof *c.scale);
    for (size_t sequence = 0; sequence < SEQUENCES; sequence++)
        for (size_t at = 0; at < (size_t) w->n_tokens[sequence]; at++)
            for (size_t head = 0; head < v->kv_heads; head++) {
                size_t place = world_place(w, sequence, at, head);
                if (c.value[place * v->size] != 0.0) /* filled by another beam */
                    continue;
                c.scale[place] = (float) rng_uniform(&r, 0.5, 1.5) / 60.0f;
                for (size_t i = place * v->size; i < (place + 1) * v->size; i++) {
                    if (v->cache == FT_I8)
                        ((int8_t *) c.data)[i] = (int8_t) ((int) rng_below(&r, 255) - 127);
                    else
                        set_number(c.data, v->cache, i, (float) rng_normal(&r));
                    c.value[i] = number_of(c.data, v->cache, i) *
                                 (v->cache == FT_I8 ? (double) c.scale[place] : 1.0);
                }
            }
    return c;
}

static void free_cache(cache *c)
{
    free(c->data);
    free(c->scale);
    free(c->value);
}

/*
 * The expected result of one head of a row, the sum of magnitudes of its terms, and the number of
 * roundings of that size: those of the scores, which the exponential makes relative, and of sums.
 */
static double expect_head(const world *w, const void *q, const cache *keys, const cache *values,
                          size_t row, size_t head, double *value, double *size)
{
    const variant *v = w->v;
    size_t sequence = (size_t) w->seq_id[row], kv_head = head / (v->heads / v->kv_heads);
    size_t last = v->cross_kv ? (size_t) w->n_tokens[sequence] - 1 : world_position(w, row),
           first = 0;
    double p[CONTEXT], query[1024], scale = 1.0 / sqrt((double) v->size), largest = 0.0;
    if (v->window > 0 && last + 1 > (size_t) v->window)
        first = last + 1 - (size_t) v->window;
    for (size_t d = 0; d < v->size; d++) {
        query[d] = number_of(q, v->real, (row * v->heads + head) * v->size + d);
        value[d] = size[d] = 0.0;
    }
    for (size_t at = first; at <= last; at++) {
        const double *key = keys->value + world_place(w, sequence, at, kv_head) * v->size;
        double sum = 0.0, magnitude = 0.0;
        for (size_t d = 0; d < v->size; d++) {
            double product = query[d] * key[d];
            sum += product;
            magnitude += fabs(product);
        }
        p[at] = sum;
        largest = fmax(largest, scale * magnitude);
    }
    oracle_softmax(p + first, p + first, scale, last + 1 - first);
    for (size_t at = first; at <= last; at++) {
        const double *own = values->value + world_place(w, sequence, at, kv_head) * v->size;
        for (size_t d = 0; d < v->size; d++) {
            value[d] += p[at] * own[d];
            size[d] += fabs(p[at] * own[d]);
        }
    }
    double depth = (double) v->size / 16 + 8; /* SIMD lanes, their reduction tree, and two scales */
    return 2.0 * largest * depth + 2.0 * (double) (last + 1 - first) + 16.0;
}

/* Runs attend_kv on a batch with these queries; returns the results. */
static void *attend(bench *on, const world *w, const ft_batch *batch, const void *q,
                    const cache *keys, const cache *values)
{
    const variant *v = w->v;
    int32_t width = (int32_t) (v->heads * v->size),
            cached_width = (int32_t) (v->kv_heads * v->size);
    void *found = must_have(batch->tokens * (size_t) width, ft_dtype_size(v->real));
    oneop t;
    oneop_begin(&t, on, FT_OP_ATTEND_KV, batch);
    ft_rows rows = v->cross_kv ? FT_CROSS_KV : FT_KV_CACHE;
    t.limits = world_limits(w);
    t.op.attr.cross_kv = v->cross_kv;
    t.op.attr.heads = (int32_t) v->heads;
    t.op.attr.kv_heads = (int32_t) v->kv_heads;
    t.op.attr.window = v->window;
    t.op.attr.softmax_scale = (float) (1.0 / sqrt((double) v->size));
    oneop_in(&t, 0, FT_TOKENS, width, v->real, 0.0f, q);
    oneop_out_as(&t, FT_TOKENS, width, v->real);
    oneop_state(&t, FT_STATE_KEYS, rows, cached_width, v->cache, keys->data);
    oneop_state(&t, FT_STATE_VALUES, rows, cached_width, v->cache, values->data);
    if (v->cache == FT_I8) {
        oneop_state(&t, FT_STATE_KEY_SCALES, rows, (int32_t) v->kv_heads, FT_F32, keys->scale);
        oneop_state(&t, FT_STATE_VALUE_SCALES, rows, (int32_t) v->kv_heads, FT_F32, values->scale);
    }
    if (v->beam_width && !v->cross_kv)
        oneop_state(&t, FT_STATE_CACHE_INDIRECTION, FT_SLOT_POSITIONS, 1, FT_I32,
                    w->cache_indirection);
    oneop_run(&t, found, NULL);
    oneop_end(&t);
    return found;
}

/*
 * A GPU multiplies in f16 or bf16: it rounds weights as it rounds results, and also the dequantized
 * keys and values of an int8 cache, whose scores then move by a few roundings.
 */
static double rounding_of_weights(const bench *on, const variant *v)
{
    if (on->backend == &ft_backend_cpu || v->real == FT_F32)
        return 0.0;
    return (v->cache == FT_I8 ? 8.0 : 2.0) * rounding_in(v->real);
}

static void compare_with_oracle(bench *on, const world *w, const void *q, const cache *keys,
                                const cache *values, const void *found)
{
    const variant *v = w->v;
    double *value = must_have(v->size, sizeof *value), *size = must_have(v->size, sizeof *size);
    double worst = 0.0;
    for (size_t row = 0; row < ROWS; row++)
        for (size_t head = 0; head < v->heads; head++) {
            double roundings = expect_head(w, q, keys, values, row, head, value, size);
            for (size_t d = 0; d < v->size; d++) {
                double x = number_of(found, v->real, (row * v->heads + head) * v->size + d);
                double bound = 1e-30 + /* quantized values may all be 0 */
                               size[d] * (roundings * ROUNDING + rounding_of_weights(on, v)) +
                               (v->real == FT_F32 ? 0.0
                                                  : fabs(value[d]) * rounding_in(v->real) +
                                                        0x1p-24); /* subnormal f16 */
                double error = fabs(x - value[d]) / bound;
                worst = error <= worst ? worst : error >= 0.0 ? error : (double) INFINITY;
            }
        }
    near(worst, 0.0, 1.0, "%s: attend_kv with %s matches the oracle", on->name, variant_name(v));
    free(value);
    free(size);
}

/*
 * Every sequence alone, `chunk` rows at a time, against its results in the batch.  On a GPU a
 * single row is no decode step here: prefill and decode may differ in their last bits there, as
 * attend_kv.cu explains.
 */
static bool same_in_chunks(bench *on, const world *w, const void *q, const cache *keys,
                           const cache *values, const void *together, int32_t chunk)
{
    static const int32_t first_sequence[ROWS] = { 0 };
    size_t row_bytes = w->v->heads * w->v->size * ft_dtype_size(w->v->real);
    bool same = true;
    for (int32_t i = 0; i < SEQUENCES; i++)
        for (int32_t row = world_start[i]; row < world_start[i + 1]; row += chunk) {
            int32_t rows = world_start[i + 1] - row < chunk ? world_start[i + 1] - row : chunk;
            int32_t start[2] = { 0, rows }, n_past = world_n_past[i] + row - world_start[i];
            ft_batch alone = { .tokens = (size_t) rows,
                               .sequences = 1,
                               .longest = (size_t) rows,
                               .start = start,
                               .seq_id = first_sequence,
                               .n_past = &n_past,
                               .n_tokens = &w->n_tokens[i],
                               .pages = w->pages + i * LIST,
                               .max_pages = LIST,
                               .context = (size_t) (n_past + rows),
                               .decode_step = rows == 1 && on->backend == &ft_backend_cpu };
            if (w->v->cross_kv) {
                alone.cross_kv = &w->n_tokens[i];
                alone.cross_kv_pages = w->pages + i * LIST;
                alone.max_cross_kv_pages = LIST;
            }
            void *found =
                attend(on, w, &alone, (const char *) q + (size_t) row * row_bytes, keys, values);
            same &= memcmp(found, (const char *) together + (size_t) row * row_bytes,
                           (size_t) rows * row_bytes) == 0;
            free(found);
        }
    return same;
}

static void attend_case(bench *on, const variant *v)
{
    world w;
    bool alone = !v->beam_width || v->cross_kv; /* beams of one search cannot be split */
    if (!variant_runs_on(on, v, alone ? 2 : 1))
        return;
    world_init(&w, v);
    void *q = random_numbers(51, ROWS * v->heads * v->size, v->real);
    cache keys = make_cache(&w, 52), values = make_cache(&w, 53);
    void *found = attend(on, &w, &w.batch, q, &keys, &values);
    compare_with_oracle(on, &w, q, &keys, &values, found);
    if (alone)
        ok(same_in_chunks(on, &w, q, &keys, &values, found, 1) &&
               same_in_chunks(on, &w, q, &keys, &values, found, 19),
           "%s: attend_kv with %s gives a sequence the same bits alone, row by row and in chunks",
           on->name, variant_name(v));
    free(found);
    free(q);
    free_cache(&keys);
    free_cache(&values);
}

void test_attend_kv(bench *on)
{
    static const variant variants[] = {
        { 4, 4, 64, 0, FT_F32, FT_F32, false, false },
        { 8, 2, 32, 0, FT_F32, FT_F32, false, false },
        { 6, 1, 48, 0, FT_F16, FT_F16, false, false },
        { 4, 2, 128, 0, FT_BF16, FT_BF16, false, false },
        { 8, 1, 80, 100, FT_F32, FT_F32, false, false },
        { 3, 3, 24, 0, FT_F32, FT_F16, false, false },
        { 2, 1, 20, 1, FT_F32, FT_BF16, false, false },
        { 4, 1, 64, 0, FT_F16, FT_I8, false, false },
        { 2, 2, 10, 70, FT_F32, FT_I8, false, false },
        { 1, 1, 576, 0, FT_F32, FT_F32, false, false },
        { 26, 1, 16, 0, FT_F32, FT_F32, false, false },
        { 4, 4, 64, 0, FT_F32, FT_F32, true, false },
        { 8, 8, 32, 0, FT_F16, FT_F16, true, false },
        { 2, 2, 24, 0, FT_F32, FT_I8, true, false },
        { 4, 4, 64, 0, FT_F32, FT_F32, false, true },
        { 4, 2, 24, 0, FT_F16, FT_F16, false, true },
        { 4, 4, 32, 0, FT_F16, FT_F16, false, true },
        { 3, 3, 32, 0, FT_F32, FT_I8, false, true },
        { 4, 4, 32, 0, FT_F16, FT_F16, true, true },
        { 4, 2, 24, 0, FT_F32, FT_I8, true, true },
    };
    for (size_t i = 0; i < FT_COUNT(variants); i++)
        attend_case(on, &variants[i]);
}
