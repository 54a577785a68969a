/*
 * encoder_decoder-t.c - a plan of encoder and decoder on the GPU, against the CPU: the encoder
 * stores the cross-attention KV of the sources, and the decoder attends to it and to its own KV
 * cache, with and without beams.
 *
 * Encoder and decoder run separately, in any order and at any size, each as a CUDA graph: the
 * decoder must find what the encoder stored, and neither may write the values of the other.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "tests/tap/tap.h"

#ifdef HAVE_CUDA

#include "kernels/backend.h"
#include "runtime/model/devices.h"
#include "runtime/mem.h"
#include "runtime/graph/plan.h"
#include "tests/lib/ops/gpu.h"
#include "tests/lib/random.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    SLOTS = 4,
    HEADS = 2,
    COLS = 48, /* heads of 24 */
    WORDS = 61,
    OFFSET = 2,
    CONTEXT = 128,
    SOURCE = 192, /* tokens */
    LIST = CONTEXT / FT_PAGE_TOKENS,
    MEMORY_LIST = SOURCE / FT_PAGE_TOKENS,
    TOKENS = SLOTS * SOURCE
};

static rng numbers = { 71 };

/* The values that a run writes and reads back. */
typedef struct names {
    int source, query, context, out, cache_indirection;
} names;

typedef struct side {
    const ft_backend *backend;
    ft_device *device;
    ft_plan plan;
    ft_weight weight[2];
    ft_exec *exec;
} side;

/* ---- The plan ------------------------------------------------------------------------------- */

static void check(ft_status status, const ft_error *err)
{
    if (status != FT_OK)
        bail_out("%s", err->text);
}

static int16_t add_value(ft_plan *plan, const char *name, ft_value value)
{
    snprintf(value.name, sizeof value.name, "%s", name);
    value.keep = true;
    int index = ft_plan_add_value(plan, &value);
    if (index < 0)
        bail_out("out of memory: a value");
    return (int16_t) index;
}

static int16_t floats(ft_plan *plan, const char *name, ft_rows rows, bool state)
{
    return add_value(plan, name,
                     (ft_value){ .rows = rows, .cols = COLS, .dtype = FT_F32, .state = state });
}

static int16_t indices(ft_plan *plan, const char *name, ft_rows rows, bool state)
{
    return add_value(plan, name,
                     (ft_value){ .rows = rows,
                                 .cols = 1,
                                 .dtype = FT_I32,
                                 .state = state,
                                 .input = state ? FT_BATCH_NONE : FT_BATCH_IDS });
}

static void add_op(ft_plan *plan, const ft_op *op)
{
    if (ft_plan_add_op(plan, op) < 0)
        bail_out("out of memory: an operation");
}

static int16_t embed(ft_plan *plan, const char *name, int ids)
{
    ft_op op = ft_op_init(FT_OP_EMBED);
    op.in[0] = (int16_t) ids;
    op.weight[0] = 0;
    op.weight[1] = 1;
    op.attr.embed_scale = 3.3f;
    op.attr.position_offset = OFFSET;
    op.out = floats(plan, name, FT_TOKENS, false);
    add_op(plan, &op);
    return op.out;
}

/* An operation on heads, and its cache: STORE_KV writes x there, ATTEND_KV queries it with x. */
static ft_op on_heads(ft_op_kind kind, bool cross_kv, int16_t keys, int16_t values)
{
    ft_op op = ft_op_init(kind);
    op.attr.cross_kv = cross_kv;
    op.attr.heads = op.attr.kv_heads = HEADS;
    op.attr.softmax_scale = 0.03f;
    op.state[FT_STATE_KEYS] = keys;
    op.state[FT_STATE_VALUES] = values;
    return op;
}

static int16_t store_and_attend(ft_plan *plan, names *n, bool cross_kv, int x, const char *result)
{
    ft_rows rows = cross_kv ? FT_CROSS_KV : FT_KV_CACHE;
    int16_t keys = floats(plan, "keys", rows, true), values = floats(plan, "values", rows, true);
    ft_op store = on_heads(FT_OP_STORE_KV, cross_kv, keys, values);
    store.in[1] = store.in[2] = (int16_t) x;
    add_op(plan, &store);
    ft_op attend = on_heads(FT_OP_ATTEND_KV, cross_kv, keys, values);
    if (cross_kv) {
        plan->encoder_ops = plan->nop;
        int target = indices(plan, "target", FT_TOKENS, false);
        x = n->query = embed(plan, "query", target);
    } else {
        attend.state[FT_STATE_CACHE_INDIRECTION] = (int16_t) n->cache_indirection;
    }
    attend.in[0] = (int16_t) x;
    attend.out = floats(plan, result, FT_TOKENS, false);
    add_op(plan, &attend);
    return attend.out;
}

static void make_plan(ft_plan *plan, names *n)
{
    int ids = indices(plan, "ids", FT_TOKENS, false);
    n->cache_indirection = indices(plan, "origin", FT_SLOT_POSITIONS, true);
    n->source = embed(plan, "source", ids);
    n->context = store_and_attend(plan, n, true, n->source, "context");
    n->out = store_and_attend(plan, n, false, n->context, "out");
}

static const ft_limits limits = { .tokens = TOKENS,
                                  .sequences = SLOTS,
                                  .threads = 1,
                                  .context = CONTEXT,
                                  .pages = SLOTS * LIST,
                                  .cross_kv = SOURCE,
                                  .cross_kv_pages = SLOTS * MEMORY_LIST };

static void open_side(side *s, names *n, const char *device, const ft_weight weight[2])
{
    ft_error err;
    *s = (side){ 0 };
    memcpy(s->weight, weight, sizeof s->weight);
    s->plan.weight = s->weight;
    s->plan.nweight = 2;
    make_plan(&s->plan, n);
    check(ft_device_open(&s->backend, &s->device, device, &err), &err);
    check(s->backend->upload(s->device, NULL, s->weight, 2, &err), &err);
    for (int i = 0; i < s->plan.nop; i++) {
        check(ft_op_check(&s->plan, &s->plan.op[i], "a plan", &err), &err);
        if (s->backend->supports_op != NULL)
            check(s->backend->supports_op(&s->plan, &s->plan.op[i], "a plan", &err), &err);
    }
    check(ft_plan_layout(&s->plan, &limits, &err), &err);
    check(s->backend->prepare(&s->exec, s->device, &s->plan, &limits, &err), &err);
}

static void close_side(side *s)
{
    s->backend->release(s->exec);
    s->backend->close(s->device);
    ft_plan_fini(&s->plan);
}

/* ---- Runs ----------------------------------------------------------------------------------- */

/* The state of the slots: lengths, and pages in a random order. */
typedef struct num_slots {
    int32_t length[SLOTS], cross_kv[SLOTS];
    int32_t pages[SLOTS][LIST], cross_kv_pages[SLOTS][MEMORY_LIST];
} num_slots;

static void deal(int32_t *pages, int32_t count)
{
    for (int32_t i = 0; i < count; i++) {
        int32_t j = (int32_t) rng_below(&numbers, (uint32_t) i + 1);
        pages[i] = pages[j];
        pages[j] = i;
    }
}

/* A batch of some slots, each with its number of rows, and its arrays. */
typedef struct run {
    ft_batch batch;
    int32_t start[SLOTS + 1], seq_id[TOKENS], n_past[SLOTS], n_tokens[SLOTS], slot[SLOTS],
        cross_kv[SLOTS];
    int32_t pages[SLOTS][LIST], cross_kv_pages[SLOTS][MEMORY_LIST], ids[TOKENS];
} run;

static void add_slot(run *r, num_slots *s, int slot, int32_t rows, bool source)
{
    size_t i = r->batch.sequences++;
    int32_t *length = source ? &s->cross_kv[slot] : &s->length[slot];
    int32_t n_past = source ? 0 : *length;
    *length = n_past + rows;
    r->slot[i] = slot;
    r->n_past[i] = n_past;
    r->n_tokens[i] = n_past + rows;
    r->cross_kv[i] = s->cross_kv[slot];
    memcpy(r->pages[i], s->pages[slot], sizeof r->pages[i]);
    memcpy(r->cross_kv_pages[i], s->cross_kv_pages[slot], sizeof r->cross_kv_pages[i]);
    for (int32_t row = 0; row < rows; row++)
        r->seq_id[r->batch.tokens++] = (int32_t) i;
    r->start[i + 1] = (int32_t) r->batch.tokens;
    if (r->batch.longest < (size_t) rows)
        r->batch.longest = (size_t) rows;
    if (r->batch.context < (size_t) (n_past + rows))
        r->batch.context = (size_t) (n_past + rows);
}

static void finish(run *r, bool source, bool step, size_t beam_width)
{
    ft_batch *b = &r->batch;
    for (size_t i = 0; i < b->tokens; i++)
        r->ids[i] = (int32_t) rng_below(&numbers, WORDS);
    b->input[FT_BATCH_IDS] = r->ids;
    b->start = r->start;
    b->seq_id = r->seq_id;
    b->n_past = r->n_past;
    b->n_tokens = r->n_tokens;
    b->slot = r->slot;
    b->pages = r->pages[0];
    b->max_pages = LIST;
    b->cross_kv = r->cross_kv;
    b->cross_kv_pages = r->cross_kv_pages[0];
    b->max_cross_kv_pages = MEMORY_LIST;
    b->source = source;
    b->decode_step = step;
    b->beam_width = beam_width;
    for (size_t i = 0; i < b->sequences && beam_width > 1;
         i++) { /* the beams of one text share its source */
        size_t first = i / beam_width * beam_width;
        r->cross_kv[i] = r->cross_kv[first];
        memcpy(r->cross_kv_pages[i], r->cross_kv_pages[first], sizeof r->cross_kv_pages[i]);
    }
}

static float *values_of(const side *s, int value, size_t rows)
{
    ft_error err;
    float *x = calloc(rows * COLS, sizeof *x);
    if (x == NULL)
        bail_out("out of memory");
    check(s->backend->read(s->exec, value, x, NULL, rows, &err), &err);
    return x;
}

/* The largest difference of a value's rows; NaN is one. */
static double difference(const side *a, const side *b, int value, size_t rows)
{
    double worst = 0.0;
    float *x = values_of(a, value, rows), *y = values_of(b, value, rows);
    for (size_t i = 0; i < rows * COLS; i++) {
        double error = fabs((double) x[i] - (double) y[i]);
        worst = error <= worst ? worst : isnan(error) ? HUGE_VAL : error;
    }
    free(x);
    free(y);
    return worst;
}

static void run_on(const side *s, const run *r)
{
    ft_error err;
    check(s->backend->run(s->exec, &r->batch, NULL, &err), &err);
}

/*
 * Embeddings are about 10 at most, and so are weighted sums of them; scores are a few units.  Each
 * score has tens of roundings of 2^-24 of its size, and so has the weight that the exponential
 * makes of it.
 */
static void compare(const side *cpu, const side *gpu, const names *n, const run *r,
                    const char *what)
{
    size_t rows = r->batch.tokens;
    run_on(cpu, r);
    run_on(gpu, r);
    if (r->batch.source) {
        ok(difference(cpu, gpu, n->source, rows) == 0.0, "%s: the GPU's embeddings equal the CPU's",
           what);
        return;
    }
    ok(difference(cpu, gpu, n->query, rows) == 0.0, "%s: the GPU's embeddings equal the CPU's",
       what);
    double context = difference(cpu, gpu, n->context, rows);
    double out = difference(cpu, gpu, n->out, rows);
    ok(context < 3e-5, "%s: cross-attention on the GPU is within 3e-5 of the CPU's", what);
    ok(out < 3e-5, "%s: self-attention on the GPU is within 3e-5 of the CPU's", what);
    diag("cross-attention %.1e, self-attention %.1e", context, out);
}

/* ---- Tests ---------------------------------------------------------------------------------- */

static void read_sources(const side *cpu, const side *gpu, const names *n, num_slots *s, int first,
                         const int32_t *rows, int count)
{
    run r = { .batch = { 0 } };
    for (int i = 0; i < count; i++)
        add_slot(&r, s, first + i, rows[i], true);
    finish(&r, true, false, 0);
    compare(cpu, gpu, n, &r, "source sequences");
}

static void write_on(const side *cpu, const side *gpu, const names *n, num_slots *s,
                     const int32_t *rows, bool step, size_t beam_width, const char *what)
{
    run r = { .batch = { 0 } };
    for (int i = 0; i < SLOTS; i++)
        if (rows[i] > 0)
            add_slot(&r, s, i, rows[i], false);
    finish(&r, false, step, beam_width);
    compare(cpu, gpu, n, &r, what);
}

/* Two beams: each cached token belongs to a random one of them. */
static void mix_beams(const side *cpu, const side *gpu, const names *n)
{
    ft_error err;
    int32_t cache_indirection[SLOTS * CONTEXT];
    for (size_t i = 0; i < FT_COUNT(cache_indirection); i++)
        cache_indirection[i] = (int32_t) rng_below(&numbers, 2);
    check(cpu->backend->write(cpu->exec, n->cache_indirection, cache_indirection,
                              FT_COUNT(cache_indirection), &err),
          &err);
    check(gpu->backend->write(gpu->exec, n->cache_indirection, cache_indirection,
                              FT_COUNT(cache_indirection), &err),
          &err);
}

static void test_parts(const side *cpu, const side *gpu, const names *n)
{
    static const int32_t ones[SLOTS] = { 1, 1, 1, 1 }, some[SLOTS] = { 1, 0, 1, 1 };
    num_slots s = { .length = { 0 } };
    deal(s.pages[0], SLOTS * LIST);
    deal(s.cross_kv_pages[0], SLOTS * MEMORY_LIST);
    read_sources(cpu, gpu, n, &s, 0, (const int32_t[]){ 70, 3, 192, 1 }, SLOTS);
    write_on(cpu, gpu, n, &s, (const int32_t[]){ 2, 5, 67, 1 }, false, 0, "prompts");
    write_on(cpu, gpu, n, &s, ones, true, 0, "decode steps");
    read_sources(cpu, gpu, n, &s, 1, (const int32_t[]){ 129 }, 1);
    write_on(cpu, gpu, n, &s, some, true, 0, "decode steps of three sequences");
    write_on(cpu, gpu, n, &s, ones, true, 0, "decode steps after a new source");

    memset(s.length, 0, sizeof s.length);
    mix_beams(cpu, gpu, n);
    read_sources(cpu, gpu, n, &s, 0, (const int32_t[]){ 20, 20, 131, 131 }, SLOTS);
    write_on(cpu, gpu, n, &s, (const int32_t[]){ 63, 63, 4, 4 }, false, 2,
             "prompts with two beams");
    for (int i = 0; i < 3; i++)
        write_on(cpu, gpu, n, &s, ones, true, 2, "decode steps with two beams");
    write_on(cpu, gpu, n, &s, (const int32_t[]){ 0, 0, 1, 1 }, true, 2,
             "decode steps of one text with two beams");
}

int main(void)
{
    static float word[WORDS * COLS], place[(SOURCE + OFFSET) * COLS];
    const ft_weight weight[2] = {
        { .name = "words", .rows = WORDS, .cols = COLS, .dtype = FT_F32, .data = word },
        { .name = "places", .rows = SOURCE + OFFSET, .cols = COLS, .dtype = FT_F32, .data = place },
    };
    side cpu, gpu;
    names n;
    (void) need_gpu();
    rng_floats(&numbers, word, FT_COUNT(word), 1.0);
    rng_floats(&numbers, place, FT_COUNT(place), 1.0);
    open_side(&cpu, &n, "cpu", weight);
    open_side(&gpu, &n, "cuda", weight);
    test_parts(&cpu, &gpu, &n);
    close_side(&cpu);
    close_side(&gpu);
    return done_testing();
}

#else

int main(void)
{
    skip_all("this build has no CUDA backend");
}

#endif
