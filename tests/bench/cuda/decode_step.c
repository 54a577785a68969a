/*
 * decode_step.c - time of STORE_KV and ATTEND_KV in a decode step, between the GEMMs around them.
 *
 *     tests/bench/cuda/decode_step [HEADS KV_HEADS HEAD_SIZE [SEQUENCES CONTEXT [BUCKET]]]
 *
 * A graph of 24 layers: the GEMM of queries, keys and values with group-wise 4-bit weights,
 * STORE_KV, ATTEND_KV, and the output GEMM; and again with STORE_KV and ATTEND_KV fused into one
 * kernel.  The figures are the time of either in addition to the GEMMs alone; weights and caches
 * are large enough to come from memory.  BUCKET: the token capacity of the batch.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/kv_cache.h"
#include "kernels/cuda/gemm/groupwise/groupwise.h"
#include "kernels/cuda/fused_kernels.h"
#include "tests/bench/cuda/replay.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SETS = 6, GROUP = 128, POOL = 8 << 20, MAX_POINTERS = 256 };

typedef struct problem {
    size_t heads, kv_heads, head_size, sequences, context, bucket;
} problem;

typedef struct layer {
    ft_cuda_groupwise_args in, out;
    ft_cuda_args store, attend;
} layer;

/* The kernels of a graph. */
typedef enum what { PRODUCTS, TWO, ONE } what;

typedef struct setting {
    ft_cuda_batch batch;
    ft_op store, attend;
    ft_weight frequency;
    layer layers[SETS];
    what what;
} setting;

static ft_cuda_device_props props;
static void *allocated[MAX_POINTERS];
static int pointers;

/* ---- Operands ------------------------------------------------------------------------------- */

static void *device_memory(size_t bytes)
{
    void *memory;
    must((int) cudaMalloc(&memory, bytes), "cudaMalloc");
    must((int) cudaMemset(memory, 0, bytes), "cudaMemset");
    return allocated[pointers++] = memory;
}

static void *copied(const void *data, size_t bytes)
{
    void *memory = device_memory(bytes);
    must((int) cudaMemcpy(memory, data, bytes, cudaMemcpyHostToDevice), "cudaMemcpy");
    return memory;
}

/* f16 between 2^-7 and 2^-3 of both signs, which are also valid int8; or small positive scales. */
static void *random_f16(size_t count, bool scales)
{
    static uint16_t *pools[2];
    uint16_t *pool = pools[scales];
    size_t bytes = 2 * count;
    char *memory = device_memory(bytes);
    if (pool == NULL) {
        pool = pools[scales] = malloc(POOL);
        for (size_t i = 0; pool != NULL && i < POOL / 2; i++)
            pool[i] = (uint16_t) (scales ? 0x1c00 + (rand() & 0x7ff)
                                         : (rand() & 0x8000) | (0x2000 + (rand() & 0xfff)));
    }
    if (pool == NULL)
        exit(1);
    for (size_t at = 0; at < bytes; at += POOL)
        must((int) cudaMemcpy(memory + at, pool, bytes - at < POOL ? bytes - at : POOL,
                              cudaMemcpyHostToDevice),
             "cudaMemcpy");
    return memory;
}

static ft_cuda_batch batch_of(const problem *p)
{
    size_t n = p->sequences, pages = ft_pages_for_tokens(p->bucket);
    int32_t *numbers = malloc((5 * n + 1 + n * pages) * sizeof *numbers);
    if (numbers == NULL)
        exit(1);
    int32_t *start = numbers, *seq_id = start + n + 1, *n_past = seq_id + n, *n_tokens = n_past + n,
            *slot = n_tokens + n, *page = slot + n;
    for (size_t i = 0; i < n; i++) {
        start[i] = seq_id[i] = slot[i] = (int32_t) i;
        n_past[i] = (int32_t) p->context - 1;
        n_tokens[i] = (int32_t) p->context;
        for (size_t j = 0; j < pages; j++) /* the pages of a sequence are scattered */
            page[i * pages + j] = (int32_t) (j * n + i);
    }
    start[n] = (int32_t) n;
    const int32_t *at = copied(numbers, (5 * n + 1 + n * pages) * sizeof *numbers);
    ft_cuda_batch batch = { .tokens = n,
                            .sequences = n,
                            .start = at,
                            .seq_id = at + (seq_id - numbers),
                            .n_past = at + (n_past - numbers),
                            .n_tokens = at + (n_tokens - numbers),
                            .slot = at + (slot - numbers),
                            .pages = at + (page - numbers),
                            .max_pages = pages,
                            .context = p->bucket,
                            .capacity = pages * FT_PAGE_TOKENS,
                            .decode_step = true };
    free(numbers);
    return batch;
}

static ft_cuda_groupwise_linear weights_of(size_t n, size_t k, void *y)
{
    return (ft_cuda_groupwise_linear){ .rows = n,
                                       .w = random_f16(n * k / 4, false),
                                       .scale = random_f16(n * ((k + GROUP - 1) / GROUP), true),
                                       .y = y };
}

static ft_cuda_groupwise_args gemm_of(size_t m, size_t n, size_t k, void *x)
{
    ft_cuda_groupwise_args p = { .m = m,
                                 .k = k,
                                 .x = x,
                                 .x_dtype = FT_F16,
                                 .y_dtype = FT_F16,
                                 .bits = 4,
                                 .group = GROUP,
                                 .n_linears = 1,
                                 .counters =
                                     device_memory(FT_CUDA_GROUPWISE_COUNTERS * sizeof(uint32_t)) };
    p.scratch_bytes = ft_cuda_groupwise_scratch(&props, m, n, k, FT_F16, false);
    p.scratch = device_memory(p.scratch_bytes + 1);
    return p;
}

static ft_view rows_of(size_t rows, size_t cols)
{
    return (ft_view){
        .data = random_f16(rows * cols, false), .rows = rows, .cols = cols, .dtype = FT_F16
    };
}

static void open_setting(setting *s, const problem *p)
{
    size_t m = p->sequences, cols = p->heads * p->head_size, kv_cols = p->kv_heads * p->head_size;
    size_t cached = m * ft_pages_for_tokens(p->bucket) * FT_PAGE_TOKENS;
    *s = (setting){ .batch = batch_of(p) };
    s->store = (ft_op){ .kind = FT_OP_STORE_KV,
                        .attr = { .heads = (int32_t) p->heads,
                                  .kv_heads = (int32_t) p->kv_heads,
                                  .softmax_scale = 1.0f / sqrtf((float) p->head_size) } };
    s->attend = s->store;
    s->attend.kind = FT_OP_ATTEND_KV;
    float frequency[FT_CUDA_MAX_HEAD_SIZE / 2];
    for (size_t i = 0; i < p->head_size / 2; i++)
        frequency[i] = powf(10000.0f, -2.0f * (float) i / (float) p->head_size);
    s->frequency.data = copied(frequency, sizeof frequency);
    ft_cuda_args args = { .props = &props, .op = &s->store, .batch = &s->batch };
    ft_value value = { .cols = (int32_t) cols };
    ft_plan plan = { .value = &value };
    args.weight[0] = &s->frequency;
    args.in[0] = rows_of(m, cols);
    args.in[1] = rows_of(m, kv_cols);
    args.in[2] = rows_of(m, kv_cols);
    args.out = rows_of(m, cols);
    ft_limits limits = { .sequences = m, .context = p->bucket };
    ft_workspace need = ft_cuda_attend_kv_workspace(&props, &plan, &s->attend, &limits);
    args.scratch_bytes = need.scratch;
    args.scratch = device_memory(need.scratch);
    args.counters = device_memory(need.counters * sizeof(uint32_t));
    ft_view result = rows_of(m, cols);
    ft_cuda_groupwise_args in = gemm_of(m, cols + 2 * kv_cols, cols, rows_of(m, cols).data);
    ft_cuda_groupwise_args out = gemm_of(m, cols, cols, result.data);
    in.n_linears = 3;
    void *y = rows_of(m, cols).data;
    for (int i = 0; i < SETS; i++) {
        layer *l = &s->layers[i];
        *l = (layer){ .in = in, .out = out, .store = args };
        for (int j = 0; j < 3; j++)
            l->in.linear[j] = weights_of(j == 0 ? cols : kv_cols, cols, args.in[j].data);
        l->out.linear[0] = weights_of(cols, cols, y);
        for (int j = 0; j < 2; j++)
            l->store.state[j] = rows_of(cached, kv_cols);
        l->attend = l->store;
        l->attend.op = &s->attend;
        l->attend.in[0] = args.out;
        l->attend.out = result;
    }
}

static void close_setting(void)
{
    while (pointers > 0)
        cudaFree(allocated[--pointers]);
}

/* ---- Cases ---------------------------------------------------------------------------------- */

static int launch_layer(cudaStream_t stream, size_t i, void *data)
{
    setting *s = data;
    layer l = s->layers[i % SETS];
    l.store.stream = l.attend.stream = stream;
    int status = ft_cuda_groupwise_gemm(&props, stream, &l.in);
    if (status == 0 && s->what == TWO)
        status = ft_cuda_store_kv(&l.store);
    if (status == 0 && s->what == TWO)
        status = ft_cuda_attend_kv(&l.attend);
    if (status == 0 && s->what == ONE)
        status = ft_cuda_store_attend(&(ft_cuda_group){
            .kind = FT_FUSION_ATTENTION, .store = &l.store, .attend = &l.attend });
    return status != 0 ? status : ft_cuda_groupwise_gemm(&props, stream, &l.out);
}

static void report(const problem *p)
{
    static setting s;
    double us[3];
    open_setting(&s, p);
    for (s.what = PRODUCTS; s.what <= ONE; s.what++)
        us[s.what] = replay(launch_layer, &s);
    printf("%2zu x %5zu of %5zu, %2zu heads over %2zu of %3zu: GEMMs %6.2f us, two kernels "
           "%6.2f more, one %6.2f\n",
           p->sequences, p->context, p->bucket, p->heads, p->kv_heads, p->head_size, us[PRODUCTS],
           us[TWO] - us[PRODUCTS], us[ONE] - us[PRODUCTS]);
    fflush(stdout);
    close_setting();
}

int main(int argc, char **argv)
{
    static const size_t all[][3] = { { 1, 64, 256 },    { 1, 512, 512 },   { 1, 540, 1024 },
                                     { 1, 2048, 2048 }, { 1, 8000, 8192 }, { 2, 512, 512 },
                                     { 4, 512, 512 },   { 8, 512, 512 },   { 16, 512, 512 } };
    problem p = { .heads = argument(argc, argv, 1, 32),
                  .kv_heads = argument(argc, argv, 2, 32),
                  .head_size = argument(argc, argv, 3, 128) };
    props = open_gpu();
    if (argc > 4) {
        p.sequences = argument(argc, argv, 4, 1);
        p.context = argument(argc, argv, 5, 512);
        p.bucket = argument(argc, argv, 6, p.context);
        report(&p);
        return 0;
    }
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        p.sequences = all[i][0], p.context = all[i][1], p.bucket = all[i][2];
        report(&p);
    }
    return 0;
}
