/*
 * ops-store_kv.c - store_kv: applies rotary embeddings to queries and keys and fills the cache.
 *
 * Every byte of the cache is compared: tokens of the batch with the oracle, the rest with the
 * previous contents.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "tests/ops/ops-kv_cache.h"

#include "runtime/mem.h"
#include "runtime/tensor.h"
#include "tests/tap/tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct rotation {
    int32_t positions;
    float theta, factor;
} rotation;

/* The rotation angle of pair i of a row, and the error bound of its float value. */
static double angle_of(const world *w, const rotation *r, const float *frequencies, size_t row,
                       size_t i, double *doubt)
{
    size_t sequence = (size_t) w->seq_id[row];
    double position = (double) world_position(w, row);
    double frequency = (double) frequencies[i], size = (double) w->v->size;
    double n_tokens = w->n_tokens[sequence];
    *doubt = 0.0;
    if (r->positions > 0 && n_tokens > r->positions) {
        double stretch = (double) r->factor * n_tokens / r->positions - ((double) r->factor - 1.0);
        double base = (double) r->theta * pow(stretch, size / (size - 2.0));
        frequency = pow(base, -2.0 * (double) i / size);
        *doubt = position * frequency * 2 * ROUNDING; /* the frequency and the angle round */
        return position * frequency;
    }
    return (double) ((float) position * (float) frequency);
}

/* Element d of a head of `x` after the rotation, and the error bound of its float value. */
static double turned(const world *w, const rotation *r, const float *frequencies, const void *x,
                     size_t heads, size_t row, size_t head, size_t d, double *slack)
{
    size_t half = w->v->size / 2, i = d % half, at = (row * heads + head) * w->v->size;
    double a = number_of(x, w->v->real, at + i), b = number_of(x, w->v->real, at + i + half), doubt;
    double angle = angle_of(w, r, frequencies, row, i, &doubt);
    /* Cosine and sine are within an ulp, then two products and a sum round. */
    *slack = w->v->cross_kv ? 0.0 : (fabs(a) + fabs(b)) * (4 * ROUNDING + doubt);
    if (w->v->cross_kv)
        return d < half ? a : b;
    return d < half ? a * cos(angle) - b * sin(angle) : b * cos(angle) + a * sin(angle);
}

typedef struct stored {
    void *q, *k, *v, *found, *keys, *values;
    float *key_scales, *value_scales, *frequencies;
    size_t count, scales;
} stored;

static stored run_store(bench *on, const world *w, const rotation *r)
{
    const variant *v = w->v;
    size_t q_cols = v->heads * v->size, cols = v->kv_heads * v->size;
    stored s = { .scales = PAGES * v->kv_heads * 64, .count = PAGES * 64 * cols };
    size_t bytes = s.count * ft_dtype_size(v->cache);
    void *poison = must_have(bytes, 1), *poison_scales = must_have(s.scales, sizeof(float));
    memset(poison, 0x77, bytes);
    memset(poison_scales, 0x77, s.scales * sizeof(float));
    s.q = random_numbers(61, ROWS * q_cols, v->real);
    s.k = random_numbers(62, ROWS * cols, v->real);
    s.v = random_numbers(63, ROWS * cols, v->real);
    s.found = must_have(ROWS * q_cols, ft_dtype_size(v->real));
    s.keys = must_have(bytes, 1);
    s.values = must_have(bytes, 1);
    s.key_scales = must_have(s.scales, sizeof(float));
    s.value_scales = must_have(s.scales, sizeof(float));
    s.frequencies = must_have(v->size / 2, sizeof(float));
    for (size_t i = 0; i < v->size / 2; i++)
        s.frequencies[i] = (float) pow((double) r->theta, -2.0 * (double) i / (double) v->size);
    oneop t;
    oneop_begin(&t, on, FT_OP_STORE_KV, &w->batch);
    ft_rows rows = v->cross_kv ? FT_CROSS_KV : FT_KV_CACHE;
    t.limits = world_limits(w);
    t.op.attr.cross_kv = v->cross_kv;
    t.op.attr.heads = (int32_t) v->heads;
    t.op.attr.kv_heads = (int32_t) v->kv_heads;
    t.op.attr.rope_positions = r->positions;
    t.op.attr.rope_theta = r->theta;
    t.op.attr.rope_factor = r->factor;
    oneop_in(&t, 1, FT_TOKENS, (int32_t) cols, v->real, 0.0f, s.k);
    oneop_in(&t, 2, FT_TOKENS, (int32_t) cols, v->real, 0.0f, s.v);
    if (!v->cross_kv) {
        oneop_in(&t, 0, FT_TOKENS, (int32_t) q_cols, v->real, 0.0f, s.q);
        oneop_weight(&t, 0, (ft_weight){ .rows = 1, .cols = v->size / 2, .data = s.frequencies });
        oneop_out_as(&t, FT_TOKENS, (int32_t) q_cols, v->real);
    }
    oneop_state(&t, FT_STATE_KEYS, rows, (int32_t) cols, v->cache, poison);
    oneop_state(&t, FT_STATE_VALUES, rows, (int32_t) cols, v->cache, poison);
    t.after[FT_STATE_KEYS] = s.keys;
    t.after[FT_STATE_VALUES] = s.values;
    if (v->cache == FT_I8) {
        oneop_state(&t, FT_STATE_KEY_SCALES, rows, (int32_t) v->kv_heads, FT_F32, poison_scales);
        oneop_state(&t, FT_STATE_VALUE_SCALES, rows, (int32_t) v->kv_heads, FT_F32, poison_scales);
        t.after[FT_STATE_KEY_SCALES] = s.key_scales;
        t.after[FT_STATE_VALUE_SCALES] = s.value_scales;
    }
    oneop_run(&t, s.found, NULL);
    oneop_end(&t);
    free(poison);
    free(poison_scales);
    return s;
}

static void free_stored(stored *s)
{
    void *all[] = { s->q,          s->k,      s->v,          s->found,
                    s->keys,       s->values, s->key_scales, s->value_scales,
                    s->frequencies };
    for (size_t i = 0; i < FT_COUNT(all); i++)
        free(all[i]);
}

/* The error bound of `value` stored in a float dtype. */
static double real_bound(ft_dtype dtype, double value, double slack)
{
    return slack + (dtype == FT_F32 ? 0.0 : fabs(value) * rounding_in(dtype) + 0x1p-24);
}

static size_t wrong_queries(const world *w, const rotation *r, const stored *s)
{
    const variant *v = w->v;
    size_t wrong = 0;
    for (size_t row = 0; row < ROWS; row++)
        for (size_t head = 0; head < v->heads; head++)
            for (size_t d = 0; d < v->size; d++) {
                double slack;
                double value = turned(w, r, s->frequencies, s->q, v->heads, row, head, d, &slack);
                double found = number_of(s->found, v->real, (row * v->heads + head) * v->size + d);
                wrong += is_far(found, value, real_bound(v->real, value, slack));
            }
    return wrong;
}

/* The number of wrong elements of one head of one cached token; only keys are rotated. */
static size_t wrong_head(const world *w, const rotation *r, const stored *s, bool keys, size_t row,
                         size_t head)
{
    const variant *v = w->v;
    double *value = must_have(v->size, sizeof *value), slack = 0.0, amax = 0.0;
    size_t sequence = (size_t) w->seq_id[row], wrong = 0;
    size_t position = world_position(w, row);
    size_t place = world_place(w, sequence, position, head);
    for (size_t d = 0; d < v->size; d++) {
        double own = 0.0;
        value[d] = keys ? turned(w, r, s->frequencies, s->k, v->kv_heads, row, head, d, &own)
                        : number_of(s->v, v->real, (row * v->kv_heads + head) * v->size + d);
        slack = fmax(slack, own);
        amax = fmax(amax, fabs(value[d]));
    }
    const void *data = keys ? s->keys : s->values;
    double scale = (double) (keys ? s->key_scales : s->value_scales)[place];
    if (v->cache == FT_I8) {
        wrong += is_far(scale, amax / 127, (amax * ROUNDING + slack) / 127);
        slack = slack / scale + CODE_SLACK + 127 * ROUNDING;
    }
    for (size_t d = 0; d < v->size; d++) {
        double found = number_of(data, v->cache, place * v->size + d);
        if (v->cache == FT_I8)
            wrong += is_far(found, value[d] / scale, 0.5 + slack);
        else
            wrong += is_far(found, value[d], real_bound(v->cache, value[d], slack));
    }
    free(value);
    return wrong;
}

/* The number of changed bytes of the cache that belong to no token of the batch. */
static size_t strangers_changed(const world *w, const void *data, size_t count, size_t each)
{
    unsigned char *own = must_have(count, 1);
    size_t changed = 0, unit = count / (PAGES * w->v->kv_heads * 64);
    for (size_t row = 0; row < ROWS; row++)
        for (size_t head = 0; head < w->v->kv_heads; head++) {
            size_t sequence = (size_t) w->seq_id[row];
            size_t position = world_position(w, row);
            memset(own + world_place(w, sequence, position, head) * unit, 1, unit);
        }
    for (size_t i = 0; i < count * each; i++)
        changed += !own[i / each] && ((const unsigned char *) data)[i] != 0x77;
    free(own);
    return changed;
}

static void store_case(bench *on, const variant *v, rotation r, const char *how)
{
    world w;
    if (!variant_runs_on(on, v, v->cross_kv ? 2 : 3))
        return;
    world_init(&w, v);
    stored s = run_store(on, &w, &r);
    size_t wrong = 0, each = ft_dtype_size(v->cache);
    if (!v->cross_kv)
        is_int((long long) wrong_queries(&w, &r, &s), 0,
               "%s: store_kv with %s%s rotates queries as the oracle does", on->name,
               variant_name(v), how);
    for (size_t row = 0; row < ROWS; row++)
        for (size_t head = 0; head < v->kv_heads; head++)
            wrong +=
                wrong_head(&w, &r, &s, true, row, head) + wrong_head(&w, &r, &s, false, row, head);
    is_int((long long) wrong, 0,
           "%s: store_kv with %s%s writes keys and values to their rows of the cache", on->name,
           variant_name(v), how);
    wrong = strangers_changed(&w, s.keys, s.count, each) +
            strangers_changed(&w, s.values, s.count, each);
    if (v->cache == FT_I8)
        wrong += strangers_changed(&w, s.key_scales, s.scales, sizeof(float)) +
                 strangers_changed(&w, s.value_scales, s.scales, sizeof(float));
    is_int((long long) wrong, 0, "%s: store_kv with %s%s changes nothing else in the cache",
           on->name, variant_name(v), how);
    free_stored(&s);
}

void test_store_kv(bench *on)
{
    static const variant variants[] = {
        { 4, 4, 64, 0, FT_F32, FT_F32, false, false },
        { 8, 2, 32, 0, FT_F16, FT_F16, false, false },
        { 6, 1, 80, 0, FT_BF16, FT_BF16, false, false },
        { 4, 2, 10, 0, FT_F32, FT_F16, false, false },
        { 4, 1, 128, 0, FT_F32, FT_I8, false, false },
        { 3, 3, 26, 0, FT_F16, FT_I8, false, false },
        { 4, 4, 64, 0, FT_F32, FT_F32, true, false },
        { 2, 2, 16, 0, FT_F16, FT_I8, true, false },
    };
    for (size_t i = 0; i < FT_COUNT(variants); i++)
        store_case(on, &variants[i], (rotation){ 0, 10000.0f, 1.0f }, "");
    store_case(on, &variants[0], (rotation){ 128, 500000.0f, 2.0f },
               " and dynamic NTK beyond 128 positions");
}
