/*
 * attend_kv-t.c - STORE_KV and ATTEND_KV on the GPU, against sums in double precision over the
 * contents of the cache, and against themselves: a token's result must not depend on how its text
 * was split into prefill chunks, nor on the rest of the batch, to the bit.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "tests/tap/tap.h"

#ifdef HAVE_CUDA

#include "tests/cuda/attention/attend_kv.h"

#include "kernels/half.h"
#include "runtime/mem.h"
#include "runtime/tensor.h"

#include <cuda_runtime_api.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS = 5 };

static const shape shapes[] = {
    { 4, 4, 128, 0, FT_F16, FT_F16 },    { 8, 4, 128, 0, FT_F16, FT_I8 },
    { 4, 4, 128, 100, FT_F16, FT_F16 },  { 8, 2, 64, 0, FT_F16, FT_F16 },
    { 8, 1, 64, 0, FT_BF16, FT_BF16 },   { 4, 2, 128, 0, FT_BF16, FT_I8 },
    { 16, 1, 128, 0, FT_F16, FT_I8 },    { 12, 1, 64, 0, FT_F16, FT_I8 },
    { 6, 2, 96, 0, FT_F16, FT_F16 },     { 2, 1, 80, 0, FT_F16, FT_I8 },
    { 2, 2, 112, 40, FT_BF16, FT_BF16 }, { 2, 1, 256, 0, FT_F16, FT_F16 },
    { 2, 1, 256, 100, FT_F16, FT_I8 },   { 2, 1, 256, 0, FT_BF16, FT_I8 },
    { 4, 2, 32, 0, FT_F16, FT_F16 },     { 4, 2, 32, 7, FT_F16, FT_I8 },
    { 4, 2, 64, 50, FT_F16, FT_I8 },     { 2, 1, 72, 0, FT_F16, FT_I8 },
    { 2, 1, 8, 0, FT_F16, FT_F16 },      { 4, 2, 64, 0, FT_F32, FT_F32 },
    { 4, 1, 24, 33, FT_F32, FT_F32 },    { 4, 2, 64, 0, FT_F32, FT_F16 },
    { 4, 2, 48, 0, FT_F32, FT_I8 },      { 2, 1, 128, 0, FT_BF16, FT_F16 },
    { 2, 2, 256, 0, FT_F32, FT_F32 },
};

static const int lengths[] = { 300, 1, 64, 65, 130, 17, 128, 200 };

static const char *name_of(const shape *s)
{
    static char text[128];
    static const char *const names[] = {
        [FT_F32] = "f32", [FT_F16] = "f16", [FT_BF16] = "bf16", [FT_I8] = "i8"
    };
    snprintf(text, sizeof text, "%d heads over %d KV heads of size %d, window %d, %s, %s cache",
             s->heads, s->kv_heads, s->head_size, s->window, names[s->dtype], names[s->cache]);
    return text;
}

/* ---- Batches of many kinds ------------------------------------------------------------------ */

static size_t result_bytes(const world *w)
{
    return w->first[w->texts] * world_cols(w) * ft_dtype_size(w->s.dtype);
}

/* Prefills all texts up to `back` tokens before their ends, in chunks of `chunk` tokens. */
static void run_prompts(world *w, int chunk, int back, int padding)
{
    piece pieces[MAX_TEXTS];
    world_forget(w);
    for (int from = 0, count = 1; count > 0; from += chunk) {
        count = 0;
        for (int i = 0; i < w->texts; i++) {
            int left = w->length[i] - back - from;
            if (left > 0)
                pieces[count++] = (piece){ i, from, left < chunk ? left : chunk };
        }
        if (count > 0)
            must(world_run(w, pieces, count, false, padding), "prefill");
    }
}

static void run_prompts_alone(world *w, int back)
{
    world_forget(w);
    for (int i = w->texts - 1; i >= 0; i--)
        if (w->length[i] > back)
            must(world_run(w, &(piece){ i, 0, w->length[i] - back }, 1, false, 0),
                 "prefill of one prompt");
}

/* Decodes the last `back` tokens of all texts, in one batch or each text alone. */
static void run_steps(world *w, int back, bool alone, int padding)
{
    piece pieces[MAX_TEXTS];
    for (int step = back; step > 0; step--) {
        int count = 0;
        for (int i = 0; i < w->texts; i++)
            if (w->length[i] >= step)
                pieces[count++] = (piece){ i, w->length[i] - step, 1 };
        for (int i = 0; alone && i < count; i++)
            must(world_run(w, &pieces[i], 1, true, padding), "decode step of one text");
        if (!alone)
            must(world_run(w, pieces, count, true, padding), "decode step");
    }
}

static void same_as(const world *w, const void *before, const char *what, const char *name)
{
    size_t wrong = 0, bytes = result_bytes(w);
    for (size_t i = 0; i < bytes; i++)
        wrong += ((uint8_t *) w->result)[i] != ((const uint8_t *) before)[i];
    is_int((long long) wrong, 0, "%s: attend_kv gives the same bits with %s", name, what);
}

static void *keep_result(const world *w)
{
    return memcpy(must_have(result_bytes(w)), w->result, result_bytes(w));
}

/* The smallest chunk is one token, which takes many batches. */
static void test_prompts(const shape *s, bool by_token)
{
    static const int chunks[] = { 7, 64, 100, 1 };
    world w;
    char name[200], what[64];
    snprintf(name, sizeof name, "%s%s", name_of(s), props.has_wgmma ? "" : ", without wgmma");
    world_init(&w, s, lengths, FT_COUNT(lengths));
    run_prompts(&w, 1000, 0, 0);
    check_store(&w, name);
    check_values(&w, name, 0);
    void *whole = keep_result(&w);
    for (size_t i = 0; i < FT_COUNT(chunks) - !by_token; i++) {
        run_prompts(&w, chunks[i], 0, (int) i);
        snprintf(what, sizeof what, "prompts in chunks of %d", chunks[i]);
        same_as(&w, whole, what, name);
    }
    run_prompts_alone(&w, 0);
    same_as(&w, whole, "each prompt alone", name);
    free(whole);
    world_fini(&w);
}

static void test_steps(const shape *s, const int *length, int count, int back)
{
    world w;
    const char *name = name_of(s);
    world_init(&w, s, length, count);
    run_prompts(&w, 3000, back, 0);
    run_steps(&w, back, false, 0);
    check_store(&w, name);
    check_values(&w, name, back);
    void *together = keep_result(&w);
    run_prompts_alone(&w, back);
    run_steps(&w, back, true, 0);
    same_as(&w, together, "each text's decode steps alone", name);
    run_prompts(&w, 3000, back, 2);
    run_steps(&w, back, false, 3);
    same_as(&w, together, "decode steps padded to a larger batch", name);
    int sm_count = props.sm_count;
    props.sm_count = 1; /* so that a thread block computes more splits */
    run_prompts(&w, 3000, back, 0);
    run_steps(&w, back, false, 0);
    props.sm_count = sm_count;
    same_as(&w, together, "decode steps on a device with one SM", name);
    free(together);
    world_fini(&w);
}

static void test_long_steps(void)
{
    static const int one[] = { 9001, 700, 513, 8193 };
    static const shape longer[] = {
        { 2, 1, 64, 0, FT_F16, FT_F16 },    { 2, 1, 64, 0, FT_F16, FT_I8 },
        { 2, 1, 128, 4096, FT_F16, FT_I8 }, { 1, 1, 256, 0, FT_BF16, FT_BF16 },
        { 9, 1, 64, 300, FT_BF16, FT_I8 },  { 5, 1, 128, 0, FT_F16, FT_I8 },
        { 3, 1, 128, 700, FT_BF16, FT_I8 },
    };
    for (size_t i = 0; i < FT_COUNT(longer); i++)
        test_steps(&longer[i], one, FT_COUNT(one), 2);
}

/* On a device with one multiprocessor, each of many short texts is computed by one warp. */
static void test_short_steps(void)
{
    static const int shorter[] = { 200, 1, 33, 128, 129, 65, 200 };
    for (size_t i = 0; i < FT_COUNT(shapes); i++)
        test_steps(&shapes[i], shorter, FT_COUNT(shorter), STEPS);
}

static void test_batch_of_64(void)
{
    int length[64];
    static const shape many[] = { { 4, 2, 128, 0, FT_F16, FT_I8 },
                                  { 2, 2, 64, 0, FT_F16, FT_F16 } };
    for (size_t i = 0; i < FT_COUNT(many); i++) {
        for (int j = 0; j < 64; j++)
            length[j] = 1 + (int) rng_below(&numbers, 290);
        test_steps(&many[i], length, 64, STEPS);
    }
}

/* ---- int8 cache ----------------------------------------------------------------------------- */

/* Prompts over an int8 cache give the bits of a cache of the dequantized f16 or bf16 values. */
static void test_int8_as_f16(const shape *s)
{
    world w;
    world_init(&w, s, lengths, FT_COUNT(lengths));
    run_prompts(&w, 1000, 0, 0);
    void *from_int8 = keep_result(&w);
    w.never_copies = true;
    run_prompts(&w, 1000, 0, 0);
    same_as(&w, from_int8, "prompts that read the int8 cache without a copy", name_of(s));
    copy c = download_cache(&w);
    size_t n = w.bytes[0];
    for (int part = 0; part < 2; part++) {
        uint16_t *halves = must_have(n * sizeof *halves);
        for (size_t i = 0; i < n; i++) {
            float x = ((int8_t *) c.part[part])[i] *
                      ((float *) c.part[part + 2])[i / (size_t) s->head_size];
            halves[i] = s->dtype == FT_F16 ? ft_f16_from_float(x) : ft_bf16_from_float(x);
        }
        cudaFree(w.cache[part]);
        must(cudaMalloc(&w.cache[part], 2 * n), "cudaMalloc");
        must(cudaMemcpy(w.cache[part], halves, 2 * n, cudaMemcpyHostToDevice), "upload");
        free(halves);
    }
    w.s.cache = s->dtype;
    piece pieces[MAX_TEXTS];
    for (int i = 0; i < w.texts; i++)
        pieces[i] = (piece){ i, 0, w.length[i] };
    must(world_attend(&w, pieces, w.texts, false, 0), "prefill over dequantized keys and values");
    same_as(&w, from_int8, "a cache of the dequantized values", name_of(s));
    free(from_int8);
    free_copy(&c);
    world_fini(&w);
}

/* ---- Positions ------------------------------------------------------------------------------ */

static size_t wrong_at_end(const world *w, int text, int count)
{
    copy c = download_cache(w);
    size_t wrong = 0;
    for (int position = w->length[text] - count; position < w->length[text]; position++)
        wrong += wrong_in_token(w, &c, text, position);
    free_copy(&c);
    return wrong;
}

/* The end of a long text is rotated by large angles, and dynamic NTK may scale its frequencies. */
static void test_far_positions(void)
{
    static const shape s = { 1, 1, 16, 0, FT_F32, FT_F32 };
    static const int length[] = { 131072, 50 };
    const piece ends[] = { { 0, 131072 - 40, 40 }, { 1, 0, 50 } };
    world w;
    world_init(&w, &s, length, 2);
    must(world_run(&w, ends, 2, false, 0), "prefill of the ends of two texts");
    is_int((long long) wrong_at_end(&w, 0, 40), 0, "store_kv rotates positions up to 131071");

    world_forget(&w);
    w.attr.rope_positions = 100000;
    must(world_run(&w, ends, 2, false, 0), "prefill of the ends of two texts");
    is_int((long long) wrong_at_end(&w, 1, 50), 0,
           "store_kv uses the given frequencies for a text within rope_positions");
    double base = (double) w.attr.rope_theta * pow((double) w.attr.rope_factor * 131072 / 100000 -
                                                       ((double) w.attr.rope_factor - 1.0),
                                                   16.0 / 14.0);
    for (int i = 0; i < 8; i++)
        w.frequency[i] = (float) pow(base, -2.0 * i / 16.0);
    is_int((long long) wrong_at_end(&w, 0, 40), 0,
           "store_kv scales the frequencies of a text beyond rope_positions");
    world_fini(&w);
}

/* ---- Refusals ------------------------------------------------------------------------------- */

static void test_refusals(void)
{
    static const shape odd = { 2, 1, 12, 0, FT_F16, FT_F16 };
    static const int length[] = { 3 };
    world w;
    world_init(&w, &odd, length, 1);
    is_int(world_run(&w, &(piece){ 0, 0, 3 }, 1, false, 0), cudaErrorNotSupported,
           "store_kv refuses a head of 12 elements");
    world_fini(&w);
}

int main(void)
{
    open_device();
    bool has_wgmma = props.has_wgmma;
    test_whole_and_shared();
    for (size_t i = 0; i < FT_COUNT(shapes); i++)
        if (shapes[i].cache == FT_I8 && shapes[i].dtype != FT_F32)
            test_int8_as_f16(&shapes[i]);
    props.has_wgmma = false;
    test_int8_as_f16(&shapes[1]);
    props.has_wgmma = has_wgmma;
    for (size_t i = 0; i < FT_COUNT(shapes); i++) {
        test_prompts(&shapes[i], i % 6 == 0);
        test_steps(&shapes[i], lengths, FT_COUNT(lengths), STEPS);
        props.has_wgmma = false;
        if (has_wgmma && shapes[i].head_size <= 128 && shapes[i].dtype != FT_F32)
            test_prompts(&shapes[i], i % 6 == 1);
        props.has_wgmma = has_wgmma;
    }
    test_short_steps();
    test_batch_of_64();
    test_long_steps();
    test_far_positions();
    test_refusals();
    return done_testing();
}

#else

int main(void)
{
    skip_all("this build has no CUDA backend");
}

#endif
