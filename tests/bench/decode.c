/*
 * decode.c - speed of forward passes of a decoder with random weights, against memory bandwidth.
 *
 *     tests/bench/decode [-t THREADS] [-b SEQUENCES] [-c CONTEXT] [-p TOKENS] [-l LAYERS]
 *                        [-s SECONDS] [-f]
 *
 * The model has the shape of Llama 3.2 1B, in int8 with an f16 LM head (-f: all in f16).  A decode
 * step, or with -p a prefill of that many tokens, alternates with reading as much memory; the
 * latter is the roofline, so their ratio is the fraction of memory bandwidth that the decoder
 * reaches. Then each operation is timed alone, and the share of each kind is printed.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/backend.h"
#include "kernels/layout.h"
#include "runtime/base/clock.h"
#include "runtime/model/devices.h"
#include "runtime/graph/graph.h"
#include "runtime/graph/lower.h"
#include "runtime/mem.h"
#include "runtime/graph/plan.h"
#include "runtime/tensor.h"
#include "tests/bench/measure.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { HIDDEN = 2048, HEADS = 32, KV_HEADS = 8, SIZE = 64, FFN = 8192, VOCABULARY = 128256 };
enum { MAX_WEIGHTS = 256, MAX_ROUNDS = 1000 };

typedef struct options {
    int threads, sequences, context, tokens, layers;
    double seconds;
    bool floats;
} options;

typedef struct model {
    ft_weight weight[MAX_WEIGHTS];
    bool quantizable[MAX_WEIGHTS];
    int count;
    size_t bytes; /* of weights that a step reads */
    ft_graph graph;
    ft_plan plan;
} model;

static void *memory_of(size_t bytes)
{
    void *memory = ft_calloc_aligned(bytes);
    if (memory == NULL)
        fail("out of memory");
    return memory;
}

/* ---- The model ---------------------------------------------------------------------------- */

/* Bits that are small numbers in every format: the values do not affect the speed. */
static void fill(void *to, size_t bytes, ft_dtype dtype)
{
    uint32_t bits = 1;
    for (size_t i = 0; i < bytes / 2; i++) {
        bits = bits * 1664525u + 1013904223u;
        uint16_t half = (uint16_t) (bits >> 16);
        ((uint16_t *) to)[i] = dtype == FT_F16 ? (half & 0x83ff) | 0x2400 : half & 0x7f7f;
    }
}

static void add(model *m, const char *name, size_t rows, size_t cols, ft_dtype dtype)
{
    ft_weight *w = &m->weight[m->count];
    bool quantized = dtype == FT_I8;
    size_t bytes = quantized ? ft_layout_bytes(FT_COL4_4R2_8C, rows, cols)
                             : rows * cols * ft_dtype_size(dtype);
    void *data = memory_of(bytes);
    float *scale = memory_of(rows * sizeof *scale);
    for (size_t i = 0; i < rows; i++)
        scale[i] = 1.0f / (64.0f * sqrtf((float) cols));
    if (dtype != FT_F32)
        fill(data, bytes, dtype);
    for (size_t i = 0; i < rows * cols && dtype == FT_F32; i++)
        ((float *) data)[i] = 1.0f / (float) (i + 1);
    *w = (ft_weight){ .rows = rows,
                      .cols = cols,
                      .dtype = dtype,
                      .layout = quantized ? FT_COL4_4R2_8C : FT_ROW,
                      .scale = quantized ? scale : NULL,
                      .data = data };
    snprintf(w->name, sizeof w->name, "%s", name);
    m->quantizable[m->count++] = quantized;
    if (rows > 1 && strcmp(name, "embed.word") != 0)
        m->bytes += bytes;
}

static void add_weights(model *m, const options *o)
{
    static const struct {
        const char *name;
        size_t rows, cols;
    } layer[] = {
        { "attn.norm.weight", 1, HIDDEN },
        { "attn.q.weight", HEADS * SIZE, HIDDEN },
        { "attn.k.weight", KV_HEADS * SIZE, HIDDEN },
        { "attn.v.weight", KV_HEADS * SIZE, HIDDEN },
        { "attn.out.weight", HIDDEN, HEADS * SIZE },
        { "ffn.norm.weight", 1, HIDDEN },
        { "ffn.gate.weight", FFN, HIDDEN },
        { "ffn.up.weight", FFN, HIDDEN },
        { "ffn.down.weight", HIDDEN, FFN },
    };
    add(m, "embed.word", VOCABULARY, HIDDEN, FT_F16);
    add(m, "frequencies", 1, SIZE / 2, FT_F32);
    for (int i = 0; i < o->layers; i++)
        for (size_t k = 0; k < FT_COUNT(layer); k++) {
            char name[FT_NAME];
            snprintf(name, sizeof name, "layer.%d.%s", i, layer[k].name);
            add(m, name, layer[k].rows, layer[k].cols,
                layer[k].rows == 1 ? FT_F32
                : o->floats        ? FT_F16
                                   : FT_I8);
        }
    add(m, "norm.weight", 1, HIDDEN, FT_F32);
    add(m, "head.weight", VOCABULARY, HIDDEN, FT_F16);
}

static int build_layer(ft_graph *g, int x)
{
    const ft_attention_params heads = { .heads = HEADS,
                                        .kv_heads = KV_HEADS,
                                        .frequencies = "frequencies" };
    int normal = ft_rms_norm(g, "attn.norm", x, 1e-5f);
    int q = ft_linear(g, "attn.q", normal), k = ft_linear(g, "attn.k", normal);
    int v = ft_linear(g, "attn.v", normal);
    int context = ft_cached_attention(g, "attn", q, k, v, &heads);
    x = ft_add_residual(g, "attn.sum", ft_linear(g, "attn.out", context), x);
    normal = ft_rms_norm(g, "ffn.norm", x, 1e-5f);
    int gate = ft_linear(g, "ffn.gate", normal), up = ft_linear(g, "ffn.up", normal);
    int product = ft_gated_activation(g, "ffn.product", gate, up, FT_ACT_SILU);
    return ft_add_residual(g, "ffn.sum", ft_linear(g, "ffn.down", product), x);
}

static void build(model *m, const options *o)
{
    ft_error err;
    ft_graph *g = &m->graph;
    add_weights(m, o);
    ft_graph_init(g, m->weight, m->quantizable, m->count);
    int ids = ft_graph_input(g, "input_ids", FT_BATCH_IDS);
    int x = ft_embed_tokens(g, "embed", ids);
    for (int i = 0; i < o->layers; i++) {
        ft_graph_scope(g, "layer.%d", i);
        x = build_layer(g, x);
    }
    ft_graph_scope(g, "%s", "");
    x = ft_rms_norm(g, "norm", ft_gather_rows(g, "selected", x), 1e-5f);
    ft_graph_output(g, "logits", ft_linear_shared_weight(g, "logits", x, "head.weight"));
    must(ft_graph_finish(g, &err), &err);
    /* Scales of 0: every pass computes them. */
    ft_lower_options how = { .mode = o->floats ? FT_MODE_FLOAT : FT_MODE_INT8,
                             .fuse = true,
                             .scale = memory_of((size_t) g->plan.nvalue * sizeof(float)),
                             .float_dtype = o->floats ? FT_F32 : FT_F16 };
    must(ft_lower(&m->plan, &g->plan, &how, &err), &err);
    for (int i = 0; i < m->plan.nop; i++)
        must(ft_op_check(&m->plan, &m->plan.op[i], "decode", &err), &err);
}

/* ---- A forward pass ----------------------------------------------------------------------- */

typedef struct running {
    ft_exec *exec;
    ft_batch batch;
    size_t cache_bytes; /* of the KV cache that a forward pass reads */
} running;

static int32_t *numbers(size_t count)
{
    return memory_of((count + 1) * sizeof(int32_t));
}

/* Every sequence has `tokens` rows, after a context in the KV cache. */
static void start(running *r, model *m, const options *o, const ft_backend *backend,
                  ft_device *device)
{
    ft_error err;
    size_t sequences = (size_t) o->sequences, rows = (size_t) o->tokens;
    size_t context = (size_t) o->context + rows, list = ft_pages_for_tokens(context);
    ft_limits limits = { .tokens = sequences * rows,
                         .sequences = sequences,
                         .threads = o->threads,
                         .selected = sequences,
                         .context = list * FT_PAGE_TOKENS,
                         .pages = sequences * list };
    int32_t *starts = numbers(sequences), *seq_id = numbers(limits.tokens);
    int32_t *n_past = numbers(sequences), *n_tokens = numbers(sequences),
            *slot = numbers(sequences);
    int32_t *pages = numbers(limits.pages), *select = numbers(sequences);
    int32_t *ids = numbers(limits.tokens);
    for (size_t i = 0; i < limits.tokens; i++) {
        seq_id[i] = (int32_t) (i / rows);
        ids[i] = (int32_t) (i * 1001 % VOCABULARY);
    }
    for (size_t i = 0; i < limits.pages; i++)
        pages[i] = (int32_t) (i * 7 % limits.pages);
    for (size_t i = 0; i <= sequences; i++)
        starts[i] = (int32_t) (i * rows);
    for (size_t i = 0; i < sequences; i++) {
        n_past[i] = o->context;
        n_tokens[i] = (int32_t) context;
        slot[i] = (int32_t) i;
        select[i] = starts[i + 1] - 1;
    }
    r->batch = (ft_batch){ .tokens = limits.tokens,
                           .sequences = sequences,
                           .longest = rows,
                           .start = starts,
                           .input[FT_BATCH_IDS] = ids,
                           .seq_id = seq_id,
                           .n_past = n_past,
                           .n_tokens = n_tokens,
                           .slot = slot,
                           .pages = pages,
                           .max_pages = list,
                           .context = context,
                           .decode_step = rows == 1,
                           .selected = sequences,
                           .selected_rows = select };
    must(ft_plan_layout(&m->plan, &limits, &err), &err);
    must(backend->prepare(&r->exec, device, &m->plan, &limits, &err), &err);
    for (int i = 0; i < m->plan.nvalue; i++)
        if (m->plan.value[i].state && m->plan.value[i].rows == FT_KV_CACHE)
            r->cache_bytes += sequences * context * (size_t) m->plan.value[i].cols *
                              ft_dtype_size(m->plan.value[i].dtype);
}

static void print_kinds(running *r, const model *m, const ft_backend *backend, int threads,
                        int rounds)
{
    ft_error err;
    double kind[FT_NUM_OP_KINDS] = { 0 }, all = 0.0;
    for (int i = 0; i < m->plan.nop; i++) {
        double times[32];
        for (int round = 0; round < rounds; round++) {
            double begin = seconds_by(threads);
            must(backend->run_op(r->exec, &r->batch, i, &err), &err);
            times[round] = seconds_by(threads) - begin;
        }
        kind[m->plan.op[i].kind] += quantile(times, (size_t) rounds, 50);
    }
    for (int i = 0; i < FT_NUM_OP_KINDS; i++)
        all += kind[i];
    for (int i = 0; i < FT_NUM_OP_KINDS; i++)
        if (kind[i] > 0.0)
            printf("  %-12s %8.3f ms  %4.1f %%\n", ft_op_name((ft_op_kind) i), 1e3 * kind[i],
                   100.0 * kind[i] / all);
}

static bool parse(options *o, int argc, char **argv)
{
    *o = (options){
        .threads = 2, .sequences = 1, .context = 512, .tokens = 1, .layers = 16, .seconds = 10.0
    };
    for (int option; (option = getopt(argc, argv, "t:b:c:p:l:s:f")) != -1;)
        switch (option) {
        case 't':
            o->threads = atoi(optarg);
            break;
        case 'b':
            o->sequences = atoi(optarg);
            break;
        case 'c':
            o->context = atoi(optarg);
            break;
        case 'p':
            o->tokens = atoi(optarg);
            break;
        case 'l':
            o->layers = atoi(optarg);
            break;
        case 's':
            o->seconds = atof(optarg);
            break;
        case 'f':
            o->floats = true;
            break;
        default:
            return false;
        }
    return o->threads > 0 && o->sequences > 0 && o->context >= 0 && o->tokens > 0 &&
           o->layers > 0 && o->layers * 9 + 4 <= MAX_WEIGHTS;
}

int main(int argc, char **argv)
{
    static model m;
    static double ours[MAX_ROUNDS], reading[MAX_ROUNDS];
    options o;
    ft_error err;
    const ft_backend *backend;
    ft_device *device;
    running r = { 0 };
    if (!parse(&o, argc, argv))
        return 2;
    must(ft_device_open(&backend, &device, "cpu", &err), &err);
    build(&m, &o);
    start(&r, &m, &o, backend, device);
    size_t bytes = m.bytes + r.cache_bytes, round = 0, sweep = ft_min_size(bytes, (size_t) 1 << 29);
    void *other = memory_of(sweep);
    memset(other, 1, sweep);
    must(backend->run(r.exec, &r.batch, NULL, &err), &err);
    for (double end = ft_monotonic_seconds() + o.seconds;
         round < MAX_ROUNDS && (round < 3 || ft_monotonic_seconds() < end); round++) {
        double begin = seconds_by(o.threads);
        must(backend->run(r.exec, &r.batch, NULL, &err), &err);
        ours[round] = seconds_by(o.threads) - begin;
        reading[round] = read_time(other, sweep, o.threads) * ((double) bytes / (double) sweep);
    }
    double time = quantile(ours, round, 50), limit = quantile(reading, round, 50);
    printf("%d sequences of %d tokens after %d, %d layers, %d threads, %zu rounds\n", o.sequences,
           o.tokens, o.context, o.layers, o.threads, round);
    printf("forward %.2f ms = %.1f tokens/s, %.3f GB of weights and cache: %.1f GB/s; "
           "read %.1f GB/s; ratio %.3f\n",
           1e3 * time, (double) (o.sequences * o.tokens) / time, 1e-9 * (double) bytes,
           1e-9 * (double) bytes / time, 1e-9 * (double) bytes / limit, limit / time);
    print_kinds(&r, &m, backend, o.threads, o.tokens > 1 ? 1 : 3);
    backend->release(r.exec);
    backend->close(device);
    return 0;
}
