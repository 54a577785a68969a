/*
 * attend_kv-whole.c - part of attend_kv.t: cross-attention, in which every query attends to all
 * tokens, and self-attention over a cache that beams share.
 *
 * All tokens are stored first.  So tokens that a query must not attend to are in the cache and
 * would change the result: later tokens of its text, and those of other beams.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#ifdef HAVE_CUDA

#include "tests/cuda/attention/attend_kv.h"

#include "runtime/mem.h"
#include "runtime/tensor.h"
#include "tests/tap/tap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS = 4 };

static const char *name_of(const world *w)
{
    static char text[160];
    const shape *s = &w->s;
    char kind[40] = "cross-attention";
    if (w->of.beam_width > 0)
        snprintf(kind, sizeof kind, "%d beams%s", w->of.beam_width,
                 w->of.cross_kv ? ", cross-attention" : "");
    snprintf(text, sizeof text,
             "%s: %d heads over %d KV heads of size %d, window %d, %s, %s cache%s", kind, s->heads,
             s->kv_heads, s->head_size, s->window, ft_dtype_name(s->dtype), ft_dtype_name(s->cache),
             props.has_wgmma ? "" : ", without wgmma");
    return text;
}

static size_t result_bytes(const world *w)
{
    return w->first[w->texts] * world_cols(w) * ft_dtype_size(w->s.dtype);
}

static void forget_results(world *w)
{
    memset(w->result, 0xff, result_bytes(w));
}

/* The number of texts that must be in one batch: the beams of a search. */
static int together(const world *w)
{
    return w->of.beam_width > 0 ? w->of.beam_width : 1;
}

/* Beams share one source. */
static void store_all(world *w)
{
    piece pieces[MAX_TEXTS];
    int count = 0;
    for (int i = 0; i < w->texts; i += w->of.cross_kv ? together(w) : 1)
        pieces[count++] = (piece){ i, 0, w->length[i] };
    must(world_store(w, pieces, count), "store");
}

/* Tokens from .. from + count - 1 of `texts` texts, as far as they exist. */
static void attend(world *w, int text, int texts, int from, int count, int padding)
{
    piece pieces[MAX_TEXTS];
    int n = 0;
    for (int i = text; i < text + texts; i++)
        if (from < w->length[i]) {
            int left = w->length[i] - from;
            pieces[n++] = (piece){ i, from, left < count ? left : count };
        }
    if (n > 0)
        must(world_attend(w, pieces, n, false, padding), "prefill");
}

static void attend_in_chunks(world *w, int chunk, int padding)
{
    forget_results(w);
    for (int from = 0; from < w->length[0]; from += chunk)
        attend(w, 0, w->texts, from, chunk, padding);
}

static void attend_alone(world *w)
{
    forget_results(w);
    for (int i = 0; i < w->texts; i += together(w))
        attend(w, i, together(w), 0, w->length[i], 0);
}

/* Decodes the last tokens, of all texts in one batch or of the beams of one search at a time. */
static void attend_by_steps(world *w, int texts, int padding)
{
    piece pieces[MAX_TEXTS];
    forget_results(w);
    for (int first = 0; first < w->texts; first += texts)
        for (int back = 1; back <= STEPS; back++) {
            int n = 0;
            for (int i = first; i < first + texts; i++)
                if (w->length[i] >= back)
                    pieces[n++] = (piece){ i, w->length[i] - back, 1 };
            if (n > 0)
                must(world_attend(w, pieces, n, true, padding), "decode step");
        }
}

static void same_as(const world *w, const void *before, const char *what)
{
    ok(memcmp(w->result, before, result_bytes(w)) == 0, "%s: attend_kv gives the same bits with %s",
       name_of(w), what);
}

static void *keep_result(const world *w)
{
    return memcpy(must_have(result_bytes(w)), w->result, result_bytes(w));
}

static void test_prompts(world *w)
{
    attend_in_chunks(w, 1000, 0);
    check_values(w, name_of(w), 0);
    void *whole = keep_result(w);
    attend_in_chunks(w, 100, 0);
    same_as(w, whole, "prompts in chunks of 100");
    attend_in_chunks(w, 7, 3);
    same_as(w, whole, "prompts in chunks of 7");
    attend_alone(w);
    same_as(w, whole, "each prompt alone");
    free(whole);
}

static void test_steps(world *w)
{
    int sm_count = props.sm_count;
    attend_by_steps(w, w->texts, 0);
    check_values(w, name_of(w), STEPS);
    void *all = keep_result(w);
    attend_by_steps(w, together(w), 0);
    same_as(w, all, "each text's decode steps alone");
    attend_by_steps(w, w->texts, 5);
    same_as(w, all, "decode steps padded to a larger batch");
    props.sm_count = 1; /* so that a thread block computes more splits */
    attend_by_steps(w, w->texts, 0);
    props.sm_count = sm_count;
    same_as(w, all, "decode steps on a device with one SM");
    free(all);
}

/*
 * Beams that never switch parents are the same as independent texts.  (attend_kv_int8.cu supports
 * no beams, and nothing without programmatic dependent launch: so decode.cu computes both.)
 */
static void test_separate_beams(world *w)
{
    int beam_width = w->of.beam_width;
    size_t capacity = w->max_pages * FT_PAGE_TOKENS;
    for (int i = 0; i < w->texts; i++)
        for (size_t at = 0; at < capacity; at++)
            w->cache_indirection[(size_t) i * capacity + at] = i % beam_width;
    bool has_pdl = props.has_pdl;
    attend_by_steps(w, w->texts, 0);
    void *shared = keep_result(w);
    w->of.beam_width = 0;
    props.has_pdl = false;
    attend_by_steps(w, w->texts, 0);
    props.has_pdl = has_pdl;
    w->of.beam_width = beam_width;
    same_as(w, shared, "independent texts instead of beams that keep their parents");
    free(shared);
}

static void test_memory(const shape *s)
{
    static const int lengths[] = { 300, 1, 64, 65, 130, 17, 128, 200 };
    world w;
    world_init_shared(&w, s, (sharing){ .cross_kv = true }, lengths, FT_COUNT(lengths));
    store_all(&w);
    check_store(&w, name_of(&w));
    test_prompts(&w);
    test_steps(&w);
    world_fini(&w);
}

static void test_beams(const shape *s, int beam_width)
{
    static const int by_four[] = { 700, 700, 700, 700, 1, 1, 1, 1, 130, 130, 130, 130 };
    static const int by_three[] = { 300, 300, 300, 64, 64, 64, 65, 65, 65, 2, 2, 2 };
    world w;
    world_init_shared(&w, s, (sharing){ .beam_width = beam_width },
                      beam_width == 4 ? by_four : by_three, FT_COUNT(by_four));
    store_all(&w);
    test_prompts(&w);
    test_steps(&w);
    test_separate_beams(&w);
    world_fini(&w);
}

/* On a device with one multiprocessor, each of many short texts is computed by one warp. */
static void test_short_beams(const shape *s, int beam_width)
{
    static const int by_four[] = { 200, 200, 200, 200, 33, 33, 33, 33, 129, 129, 129, 129 };
    static const int by_three[] = { 64, 64, 64, 256, 256, 256, 7, 7, 7, 34, 34, 34 };
    world w;
    world_init_shared(&w, s, (sharing){ .beam_width = beam_width },
                      beam_width == 4 ? by_four : by_three, FT_COUNT(by_four));
    store_all(&w);
    test_steps(&w);
    test_separate_beams(&w);
    world_fini(&w);
}

/* Up to eight beams' queries are columns of one GEMM. */
static void test_cross_kv_of_beams(const shape *s, int beam_width, const int lengths[3])
{
    int length[MAX_TEXTS];
    world w;
    for (int i = 0; i < 3 * beam_width; i++)
        length[i] = lengths[i / beam_width];
    world_init_shared(&w, s, (sharing){ .cross_kv = true, .beam_width = beam_width }, length,
                      3 * beam_width);
    store_all(&w);
    test_steps(&w);
    world_fini(&w);
}

void test_whole_and_shared(void)
{
    static const shape memories[] = {
        { 8, 8, 64, 0, FT_F16, FT_F16 },    { 8, 8, 64, 0, FT_F16, FT_I8 },
        { 4, 2, 128, 0, FT_BF16, FT_BF16 }, { 4, 4, 128, 0, FT_F16, FT_I8 },
        { 3, 3, 16, 0, FT_F16, FT_F16 },    { 3, 3, 16, 0, FT_F16, FT_I8 },
        { 5, 5, 24, 0, FT_F16, FT_I8 },     { 2, 1, 256, 0, FT_BF16, FT_I8 },
        { 4, 4, 64, 0, FT_F32, FT_F32 },    { 3, 3, 40, 0, FT_F32, FT_I8 },
        { 2, 2, 16, 0, FT_F32, FT_F16 },
    };
    static const shape shared[] = {
        { 8, 8, 64, 0, FT_F16, FT_F16 },    { 8, 8, 64, 0, FT_F16, FT_I8 },
        { 4, 2, 128, 0, FT_BF16, FT_BF16 }, { 4, 4, 128, 0, FT_F16, FT_I8 },
        { 3, 3, 16, 0, FT_F16, FT_F16 },    { 3, 3, 16, 0, FT_F16, FT_I8 },
        { 2, 1, 256, 0, FT_BF16, FT_I8 },   { 2, 1, 256, 70, FT_F16, FT_F16 },
        { 4, 4, 64, 0, FT_F32, FT_F32 },    { 3, 3, 40, 0, FT_F32, FT_I8 },
    };
    bool has_wgmma = props.has_wgmma;
    for (size_t i = 0; i < FT_COUNT(memories); i++) {
        test_memory(&memories[i]);
        props.has_wgmma = false;
        if (has_wgmma && memories[i].head_size <= 128 && memories[i].dtype != FT_F32)
            test_memory(&memories[i]);
        props.has_wgmma = has_wgmma;
    }
    for (size_t i = 0; i < FT_COUNT(shared); i++)
        test_beams(&shared[i], i % 2 == 0 ? 4 : 3);
    for (size_t i = 0; i < FT_COUNT(shared); i++)
        test_short_beams(&shared[i], i % 2 == 0 ? 4 : 3);
    static const int lengths[] = { 700, 130, 1 }, shorter[] = { 200, 33, 1 };
    for (size_t i = 0; i < FT_COUNT(memories); i++) {
        int beam_width = i % 3 == 0 ? 4 : i % 3 == 1 ? 12 : 3;
        test_cross_kv_of_beams(&memories[i], beam_width, lengths);
        test_cross_kv_of_beams(&memories[i], beam_width, shorter);
    }
}

#else

typedef int ft_nothing_without_cuda;

#endif
