/*
 * store_attend-t.c - STORE_KV and ATTEND_KV fused into one kernel on the GPU, against two kernels:
 * the results and the whole cache have the same bits, whatever else is in the batch.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "tests/tap/tap.h"

#ifdef HAVE_CUDA

#include "tests/cuda/attention/attend_kv.h"

#include "runtime/mem.h"
#include "runtime/tensor.h"

#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS = 4 };

static const shape shapes[] = {
    { 4, 4, 128, 0, FT_F16, FT_F16 },    { 32, 32, 128, 0, FT_F16, FT_F16 },
    { 32, 8, 128, 0, FT_F16, FT_F16 },   { 6, 2, 128, 0, FT_BF16, FT_BF16 },
    { 16, 2, 128, 0, FT_F16, FT_F16 },   { 9, 1, 128, 0, FT_BF16, FT_BF16 },
    { 20, 1, 128, 0, FT_F16, FT_F16 },   { 4, 4, 128, 100, FT_F16, FT_F16 },
    { 8, 2, 128, 40, FT_BF16, FT_BF16 }, { 4, 2, 128, 700, FT_F16, FT_F16 },
    { 2, 1, 64, 0, FT_F16, FT_F16 },     { 14, 2, 64, 0, FT_BF16, FT_BF16 },
    { 12, 1, 64, 0, FT_F16, FT_F16 },    { 4, 2, 64, 1, FT_F16, FT_F16 },
};

static const int ragged[] = { 300, 1, 64, 65, 130, 17, 128, 200, 513, 2, 1025, 129 };

static const char *name_of(const shape *s)
{
    static char text[128];
    snprintf(text, sizeof text, "%d heads over %d KV heads of size %d, window %d, %s", s->heads,
             s->kv_heads, s->head_size, s->window, s->dtype == FT_F16 ? "f16" : "bf16");
    return text;
}

/* ---- Steps ---------------------------------------------------------------------------------- */

typedef enum how { BY_TWO, BY_ONE, ALONE } how;

/* Forces the fused kernel even where two kernels would be faster. */
static void take_step(world *w, const piece *pieces, int count, how as, int padding)
{
    int sm_count = props.sm_count;
    if (as != BY_TWO)
        props.sm_count = 1 << 16;
    must(as == BY_TWO ? world_run(w, pieces, count, true, padding)
                      : world_join(w, pieces, count, padding),
         "decode step");
    props.sm_count = sm_count;
}

/* Stores all earlier tokens, then decodes the last `back` tokens of all texts. */
static void run_steps(world *w, int back, how as, int padding)
{
    piece pieces[MAX_TEXTS];
    int count = 0;
    world_forget(w);
    for (int i = 0; i < w->texts; i++)
        if (w->length[i] > back)
            pieces[count++] = (piece){ i, 0, w->length[i] - back };
    if (count > 0)
        must(world_store(w, pieces, count), "storing earlier tokens");
    for (int step = back; step > 0; step--) {
        count = 0;
        for (int i = 0; i < w->texts; i++)
            if (w->length[i] >= step)
                pieces[count++] = (piece){ i, w->length[i] - step, 1 };
        for (int i = 0; as == ALONE && i < count; i++)
            take_step(w, &pieces[i], 1, as, padding);
        if (as != ALONE)
            take_step(w, pieces, count, as, padding);
    }
}

/* The results and the cache after some decode steps. */
typedef struct outcome {
    uint8_t *result;
    copy cache;
} outcome;

static outcome keep(const world *w)
{
    size_t bytes = w->first[w->texts] * world_cols(w) * ft_dtype_size(w->s.dtype);
    return (outcome){ memcpy(must_have(bytes), w->result, bytes), download_cache(w) };
}

static void drop(outcome *o)
{
    free(o->result);
    free_copy(&o->cache);
}

static size_t differing(const void *a, const void *b, size_t bytes)
{
    size_t count = 0;
    for (size_t i = 0; i < bytes; i++)
        count += ((const uint8_t *) a)[i] != ((const uint8_t *) b)[i];
    return count;
}

static void same_as(const world *w, const outcome *expected, const char *what, const char *name)
{
    outcome found = keep(w);
    size_t bytes = w->first[w->texts] * world_cols(w) * ft_dtype_size(w->s.dtype);
    is_int((long long) differing(found.result, expected->result, bytes), 0,
           "%s: store_attend gives the results of two kernels %s", name, what);
    size_t wrong = differing(found.cache.part[0], expected->cache.part[0], w->bytes[0]) +
                   differing(found.cache.part[1], expected->cache.part[1], w->bytes[1]);
    is_int((long long) wrong, 0, "%s: store_attend writes the cache of two kernels %s", name, what);
    drop(&found);
}

static void test_world(world *w, const char *name, int back)
{
    run_steps(w, back, BY_TWO, 0);
    check_values(w, name, back);
    outcome expected = keep(w);
    run_steps(w, back, BY_ONE, 0);
    same_as(w, &expected, "in one batch", name);
    run_steps(w, back, ALONE, 0);
    same_as(w, &expected, "with each text alone", name);
    run_steps(w, back, BY_ONE, 3);
    same_as(w, &expected, "in a batch padded to a larger size", name);
    drop(&expected);
}

static void test_shape(const shape *s, const int *length, int count, int back)
{
    world w;
    world_init(&w, s, length, count);
    test_world(&w, name_of(s), back);
    world_fini(&w);
}

/* Texts with as many splits as one warp can reduce. */
static void test_long_texts(void)
{
    static const int lengths[] = { 2048, 700, 1 };
    static const shape longer[] = {
        { 2, 1, 64, 0, FT_F16, FT_F16 },
        { 3, 1, 128, 900, FT_BF16, FT_BF16 },
        { 4, 4, 128, 0, FT_F16, FT_F16 },
    };
    for (size_t i = 0; i < FT_COUNT(longer); i++) {
        world w;
        world_init(&w, &longer[i], lengths, FT_COUNT(lengths));
        run_steps(&w, 2, BY_TWO, 0);
        outcome expected = keep(&w);
        run_steps(&w, 2, BY_ONE, 0);
        same_as(&w, &expected, "for texts of up to 2048 tokens", name_of(&longer[i]));
        drop(&expected);
        world_fini(&w);
    }
}

/* Dynamic NTK scales the frequencies of texts longer than rope_positions. */
static void test_stretched(void)
{
    static const int lengths[] = { 300, 90, 101 };
    world w;
    world_init(&w, &shapes[0], lengths, FT_COUNT(lengths));
    w.attr.rope_positions = 100;
    run_steps(&w, STEPS, BY_TWO, 0);
    outcome expected = keep(&w);
    run_steps(&w, STEPS, BY_ONE, 0);
    same_as(&w, &expected, "with dynamic NTK frequencies", name_of(&shapes[0]));
    drop(&expected);
    world_fini(&w);
}

/* ---- Refusals ------------------------------------------------------------------------------- */

static void test_refused(const shape *s, sharing of, int length, const char *what)
{
    const int lengths[] = { length, length };
    const piece pieces[] = { { 0, length - 1, 1 }, { 1, length - 1, 1 } };
    world w;
    world_init_shared(&w, s, of, lengths, 2);
    is_int(world_join(&w, pieces, 2, 0), cudaErrorNotSupported, "store_attend does not support %s",
           what);
    world_fini(&w);
}

static void test_refusals(void)
{
    static const shape quantized = { 2, 1, 128, 0, FT_F16, FT_I8 },
                       floats = { 2, 1, 128, 0, FT_F32, FT_F32 },
                       odd = { 2, 1, 96, 0, FT_F16, FT_F16 },
                       usual = { 2, 1, 128, 0, FT_F16, FT_F16 };
    const sharing none = { false, 0 }, beam_width = { false, 2 }, memory = { true, 0 };
    test_refused(&quantized, none, 3, "an int8 cache");
    test_refused(&floats, none, 3, "f32");
    test_refused(&odd, none, 3, "heads of 96 elements");
    test_refused(&usual, none, 2049, "texts of more than 2048 tokens");
    int sm_count = props.sm_count;
    props.sm_count = 0;
    test_refused(&usual, none, 3, "more sequences than the device favors");
    props.sm_count = sm_count;
    test_refused(&usual, beam_width, 3, "beams");
    test_refused(&usual, memory, 3, "cross-attention");
}

int main(void)
{
    open_device();
    for (size_t i = 0; i < FT_COUNT(shapes); i++)
        test_shape(&shapes[i], ragged, FT_COUNT(ragged), STEPS);
    test_long_texts();
    test_stretched();
    test_refusals();
    return done_testing();
}

#else

int main(void)
{
    skip_all("this build has no CUDA backend");
}

#endif
