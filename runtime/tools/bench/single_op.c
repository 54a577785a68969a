/*
 * single_op.c - benchmark single operations on random data: the roofline of a device, and GEMM
 * shapes.
 *
 * The operation is the last one of a short plan that runs through the normal backend interface, so
 * the roofline is measured with the kernels that models use, on every backend.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/model/devices.h"
#include "runtime/error.h"
#include "runtime/mem.h"
#include "runtime/graph/plan.h"
#include "runtime/tools/bench/bench.h"
#include "runtime/tools/synthetic/counter_rng.h"
#include "runtime/tools/synthetic/synthetic.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- One operation ------------------------------------------------------------------------ */

/* int8 scale for values of standard deviation 1: quantized values have deviation 32. */
#define INT8_SCALE (1.0f / 32.0f)

/* Values, weights and maximum number of operations. */
enum { INPUT_IDS, INPUT_POSITIONS, FLOAT_INPUT, INT8_INPUT, RESULT, VALUES };
enum { WORD_TABLE, POSITION_TABLE, MATRIX, BIAS, WEIGHTS };
enum { MAX_OPS = 3, VOCABULARY = 1024 };

/*
 * A plan that ends in the operation to time.  It contains pointers into itself, so it must not
 * move. Plans take token ids as input, so the float operand comes from embedding lookups in a
 * random table, and is quantized for int8.
 */
typedef struct one_op_plan {
    ft_plan plan;
    ft_value value[VALUES];
    ft_weight weight[WEIGHTS];
    ft_weight
        host_weight[WEIGHTS]; /* host copies; the device may change the pointers in `weight` */
    ft_op op[MAX_OPS];
    ft_batch batch;
    int32_t start[2];
    const ft_backend *backend;
    ft_exec *exec;
} one_op_plan;

static void set_value(one_op_plan *s, int index, const char *name, size_t cols, ft_dtype dtype)
{
    ft_value *value = &s->value[index];
    *value = (ft_value){ .rows = FT_TOKENS, .cols = (int32_t) cols, .dtype = dtype };
    snprintf(value->name, sizeof value->name, "%s", name);
}

/* Start a plan whose operand is [rows, cols] of this dtype, int8 or float. */
static void single_init(one_op_plan *s, const ft_backend *backend, size_t rows, size_t cols,
                        ft_dtype dtype)
{
    bool quantized = dtype == FT_I8;
    *s = (one_op_plan){ .backend = backend, .start = { 0, (int32_t) rows } };
    s->batch = (ft_batch){ .tokens = rows, .sequences = 1, .longest = rows, .start = s->start };
    s->plan = (ft_plan){ .value = s->value,
                         .op = s->op,
                         .weight = s->weight,
                         .nvalue = VALUES,
                         .nweight = WEIGHTS,
                         .nop = quantized ? 2 : 1,
                         .noutput = 1,
                         .output = { { .name = "result", .value = RESULT } } };
    set_value(s, INPUT_IDS, "ids", 1, FT_I32);
    set_value(s, INPUT_POSITIONS, "positions", 1, FT_I32);
    set_value(s, FLOAT_INPUT, "real", cols, quantized ? FT_F32 : dtype);
    set_value(s, INT8_INPUT, "codes", cols, FT_I8);
    s->value[INT8_INPUT].scale = INT8_SCALE;
    s->op[0] = ft_op_init(FT_OP_EMBED);
    s->op[0].in[0] = INPUT_IDS;
    s->op[0].in[1] = INPUT_POSITIONS;
    s->op[0].weight[0] = WORD_TABLE;
    s->op[0].weight[1] = POSITION_TABLE;
    s->op[0].out = FLOAT_INPUT;
    s->op[1] = ft_op_init(FT_OP_QUANTIZE);
    s->op[1].in[0] = FLOAT_INPUT;
    s->op[1].quantized = INT8_INPUT;
    s->host_weight[WORD_TABLE] = (ft_weight){ .rows = VOCABULARY, .cols = cols, .dtype = FT_F16 };
    s->host_weight[POSITION_TABLE] = (ft_weight){ .rows = 1, .cols = cols, .dtype = FT_F16 };
    s->host_weight[MATRIX] = s->host_weight[BIAS] =
        (ft_weight){ .rows = 1, .cols = cols, .dtype = FT_F32 };
}

/* Add the operation to time, which reads the operand. */
static ft_op *single_add(one_op_plan *s, ft_op_kind kind)
{
    ft_op *op = &s->op[s->plan.nop++];
    *op = ft_op_init(kind);
    op->in[0] = s->plan.nop == MAX_OPS ? INT8_INPUT : FLOAT_INPUT;
    op->out = RESULT;
    return op;
}

static void single_fini(one_op_plan *s)
{
    if (s->exec != NULL)
        s->backend->release(s->exec);
    for (int i = 0; i < WEIGHTS; i++)
        ft_synthetic_weight_free(&s->host_weight[i]);
}

/* The embedding table has standard deviation 1, all other weights 0.02. */
static ft_status make_weights(one_op_plan *s, ft_device *device, int threads, ft_error *err)
{
    static const char *const names[] = { "words", "places", "matrix", "bias" };
    for (int i = 0; i < WEIGHTS; i++) {
        snprintf(s->host_weight[i].name, sizeof s->host_weight[i].name, "%s", names[i]);
        ft_distribution distribution = { (uint64_t) i, 0.0f, i == WORD_TABLE ? 1.0f : 0.02f,
                                         s->backend, device };
        FT_TRY(ft_synthetic_weight_fill(&s->host_weight[i], &distribution, threads, err));
        s->weight[i] = s->host_weight[i];
    }
    return FT_OK;
}

static ft_status write_inputs(one_op_plan *s, ft_error *err)
{
    size_t rows = s->batch.tokens;
    int32_t *column = ft_calloc(rows, sizeof *column);
    if (column == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for %zu tokens", rows);
    ft_status status = s->backend->write(s->exec, INPUT_POSITIONS, column, rows, err);
    for (size_t i = 0; i < rows; i++)
        column[i] = (int32_t) ft_counter_rng_below(WEIGHTS, i, VOCABULARY);
    if (status == FT_OK)
        status = s->backend->write(s->exec, INPUT_IDS, column, rows, err);
    free(column);
    return status;
}

/* Prepare the plan and run it once. */
static ft_status single_prepare(one_op_plan *s, ft_device *device, int threads, ft_error *err)
{
    ft_limits limits = { .tokens = s->batch.tokens, .sequences = 1, .threads = threads };
    FT_TRY(make_weights(s, device, threads, err));
    for (int i = 0; i < s->plan.nop; i++)
        FT_TRY(ft_op_check(&s->plan, &s->op[i], "benchmark", err));
    FT_TRY(s->backend->upload(device, NULL, s->weight, WEIGHTS, err));
    FT_TRY(ft_plan_layout(&s->plan, &limits, err));
    FT_TRY(s->backend->prepare(&s->exec, device, &s->plan, &limits, err));
    FT_TRY(write_inputs(s, err));
    FT_TRY(s->backend->run(s->exec, &s->batch, NULL, err));
    return s->backend->wait(s->exec, err);
}

/* Samples are single runs, or batches of back-to-back runs on an asynchronous device. */
static ft_status single_time(ft_bench_times *out, const one_op_plan *s, ft_error *err)
{
    enum { MAX_SAMPLES = 10 };
    ft_bench_target target = { s->backend, s->exec, &s->batch, s->plan.nop - 1 };
    int repeats = ft_bench_is_async(&target) ? 10 : 1;
    double sample[MAX_SAMPLES], sum = 0.0;
    size_t count = 0;
    FT_TRY(ft_bench_time_runs(&target, repeats, &sample[0], err)); /* warms up */
    while (count < MAX_SAMPLES && (count == 0 || sum < 0.2)) {
        FT_TRY(ft_bench_time_runs(&target, repeats, &sample[count], err));
        sum += repeats * sample[count++];
    }
    *out = ft_bench_summarize(sample, count);
    return FT_OK;
}

/* ---- GEMMs -------------------------------------------------------------------------------- */

ft_gemm_problem ft_bench_gemm_of(const ft_plan *plan, const ft_op *op, const ft_batch *batch)
{
    const ft_value *x = &plan->value[op->in[0]];
    const ft_weight *w = &plan->weight[op->weight[0]];
    ft_dtype y = plan->value[op->quantized >= 0 ? op->quantized : op->out].dtype;
    return (ft_gemm_problem){
        .m = ft_batch_rows(batch, x->rows),
        .n = w->rows,
        .k = w->cols,
        .x = x->dtype,
        .w = w->dtype,
        .y = x->dtype != FT_I8 ? x->dtype : y,
        .group = w->groupwise.group,
        .zero_points = w->groupwise.zero != NULL,
        .int8_activations = w->groupwise.int8_activations,
        .activation = op->attr.activation,
        .linears = 1,
    };
}

static void add_gemm(one_op_plan *s, const ft_gemm_problem *p)
{
    ft_op *op = single_add(s, FT_OP_LINEAR);
    set_value(s, RESULT, "result", p->n, p->y);
    if (p->y == FT_I8) {
        s->value[RESULT].scale = INT8_SCALE * 0.02f * sqrtf((float) p->k);
        op->quantized = RESULT;
        op->out = -1;
    }
    op->weight[0] = MATRIX;
    op->weight[1] = BIAS;
    op->attr.activation = p->activation;
    s->host_weight[MATRIX] = (ft_weight){
        .rows = p->n,
        .cols = p->k,
        .dtype = p->w,
        .layout = p->w == FT_I8                  ? FT_COL4_4R2_8C
                  : ft_groupwise_bits(p->w) != 0 ? FT_PANEL32
                                                 : FT_ROW,
        .groupwise = { .group = p->group, .int8_activations = p->int8_activations },
    };
    s->host_weight[BIAS].cols = p->n;
}

ft_status ft_bench_gemm_time(ft_bench_times *out, const ft_gemm_problem *gemm,
                             const ft_backend *backend, ft_device *device, int threads,
                             ft_error *err)
{
    one_op_plan s;
    single_init(&s, backend, gemm->m, gemm->k, gemm->x);
    add_gemm(&s, gemm);
    ft_status status = single_prepare(&s, device, threads, err);
    if (status == FT_OK)
        status = single_time(out, &s, err);
    single_fini(&s);
    return status;
}

/* ---- Roofline ----------------------------------------------------------------------------- */

static ft_status copy_bandwidth(const ft_backend *backend, ft_device *device, int threads,
                                double *rate, ft_error *err)
{
    enum { ROWS = 65536, COLS = 1024 }; /* 256 MiB: larger than any cache */
    ft_bench_times times = { 0 };
    one_op_plan s;
    single_init(&s, backend, ROWS, COLS, FT_F32);
    set_value(&s, RESULT, "result", COLS, FT_F32);
    single_add(&s, FT_OP_ACTIVATE)->attr.activation = FT_ACT_RELU;
    ft_status status = single_prepare(&s, device, threads, err);
    if (status == FT_OK)
        status = single_time(&times, &s, err);
    single_fini(&s);
    *rate = 2.0 * ROWS * COLS * sizeof(float) / times.min;
    return status;
}

/* The best rate of square GEMMs like `p`; sizes grow while a GEMM takes less than 20 ms. */
static ft_status gemm_rate(ft_gemm_problem p, const ft_backend *backend, ft_device *device,
                           int threads, double *rate, ft_error *err)
{
    ft_bench_times times = { 0 };
    p.activation = FT_ACT_NONE;
    *rate = 0.0;
    for (size_t size = 512; size <= 8192 && times.min < 0.02; size *= 2) {
        p.m = p.n = p.k = size;
        FT_TRY(ft_bench_gemm_time(&times, &p, backend, device, threads, err));
        *rate = fmax(*rate, 2.0 * pow((double) size, 3.0) / times.min);
    }
    return FT_OK;
}

/*
 * Read bandwidth: the best of two GEMVs with matrices of 256 MiB, larger than any cache, and little
 * output.
 */
static ft_status read_bandwidth(const ft_backend *backend, ft_device *device, int threads,
                                double *rate, ft_error *err)
{
    const ft_gemm_problem gemm[] = {
        { .m = 1, .n = 32768, .k = 8192, .x = FT_I8, .w = FT_I8, .y = FT_F32 },
        { .m = 1, .n = 8192, .k = 8192, .x = FT_F32, .w = FT_F32, .y = FT_F32 },
    };
    for (size_t i = 0; i < FT_COUNT(gemm); i++) {
        ft_bench_times times;
        FT_TRY(ft_bench_gemm_time(&times, &gemm[i], backend, device, threads, err));
        *rate = fmax(*rate, 256.0 * 1048576.0 / times.min);
    }
    return FT_OK;
}

/* Measure the GEMM types that occur in the plan, int8 and float, and the bandwidths. */
static ft_status measure(ft_roofline *out, const ft_plan *plan, const ft_backend *backend,
                         ft_device *device, int threads, ft_error *err)
{
    int32_t start[2] = { 0, 1 };
    ft_batch batch = { .tokens = 1, .sequences = 1, .longest = 1, .start = start };
    for (int i = 0; i < plan->nop; i++) {
        if (!ft_op_is_gemm(plan->op[i].kind) && plan->op[i].kind != FT_OP_CONV)
            continue;
        ft_gemm_problem p = ft_bench_gemm_of(plan, &plan->op[i], &batch);
        double *rate = p.x == FT_I8 ? &out->int8_ops : &out->float_flops;
        if (*rate <= 0.0)
            FT_TRY(gemm_rate(p, backend, device, threads, rate, err));
    }
    FT_TRY(copy_bandwidth(backend, device, threads, &out->copy, err));
    out->read = out->copy;
    return read_bandwidth(backend, device, threads, &out->read, err);
}

ft_status ft_roofline_measure(ft_roofline *out, const ft_plan *plan, const char *device,
                              int threads, ft_error *err)
{
    const ft_backend *backend;
    ft_device *open;
    *out = (ft_roofline){ 0 };
    FT_TRY(ft_device_open(&backend, &open, device, err));
    ft_status status = measure(out, plan, backend, open, threads, err);
    backend->close(open);
    return status;
}
