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
#define CODE_STEP (1.0f / 32.0f)

/* Values, weights and maximum number of operations. */
enum { IDS, POSITIONS, REAL, CODES, RESULT, VALUES };
enum { WORDS, PLACES, MATRIX, BIAS, WEIGHTS };
enum { STEPS = 3, VOCABULARY = 1024 };

/*
 * A plan that ends in the operation to time.  It contains pointers into itself, so it must not
 * move. Plans take token ids as input, so the float operand comes from embedding lookups in a
 * random table, and is quantized for int8.
 */
typedef struct single {
    ft_plan plan;
    ft_value value[VALUES];
    ft_weight weight[WEIGHTS];
    ft_weight own[WEIGHTS]; /* host copies; the device may change the pointers in `weight` */
    ft_op op[STEPS];
    ft_batch batch;
    int32_t start[2];
    const ft_backend *backend;
    ft_exec *exec;
} single;

static void set_value(single *s, int index, const char *name, size_t cols, ft_dtype dtype)
{
    ft_value *value = &s->value[index];
    *value = (ft_value){ .rows = FT_TOKENS, .cols = (int32_t) cols, .dtype = dtype };
    snprintf(value->name, sizeof value->name, "%s", name);
}

/* Start a plan whose operand is [rows, cols] of this dtype, int8 or float. */
static void single_init(single *s, const ft_backend *backend, size_t rows, size_t cols,
                        ft_dtype dtype)
{
    bool codes = dtype == FT_I8;
    *s = (single){ .backend = backend, .start = { 0, (int32_t) rows } };
    s->batch = (ft_batch){ .tokens = rows, .sequences = 1, .longest = rows, .start = s->start };
    s->plan = (ft_plan){ .value = s->value,
                         .op = s->op,
                         .weight = s->weight,
                         .nvalue = VALUES,
                         .nweight = WEIGHTS,
                         .nop = codes ? 2 : 1,
                         .noutput = 1,
                         .output = { { "result", RESULT } } };
    set_value(s, IDS, "ids", 1, FT_I32);
    set_value(s, POSITIONS, "positions", 1, FT_I32);
    set_value(s, REAL, "real", cols, codes ? FT_F32 : dtype);
    set_value(s, CODES, "codes", cols, FT_I8);
    s->value[CODES].scale = CODE_STEP;
    s->op[0] = ft_op_make(FT_OP_EMBED);
    s->op[0].in[0] = IDS;
    s->op[0].in[1] = POSITIONS;
    s->op[0].weight[0] = WORDS;
    s->op[0].weight[1] = PLACES;
    s->op[0].out = REAL;
    s->op[1] = ft_op_make(FT_OP_QUANTIZE);
    s->op[1].in[0] = REAL;
    s->op[1].codes = CODES;
    s->own[WORDS] = (ft_weight){ .rows = VOCABULARY, .cols = cols, .dtype = FT_F16 };
    s->own[PLACES] = (ft_weight){ .rows = 1, .cols = cols, .dtype = FT_F16 };
    s->own[MATRIX] = s->own[BIAS] = (ft_weight){ .rows = 1, .cols = cols, .dtype = FT_F32 };
}

/* Add the operation to time, which reads the operand. */
static ft_op *single_add(single *s, ft_op_kind kind)
{
    ft_op *op = &s->op[s->plan.nop++];
    *op = ft_op_make(kind);
    op->in[0] = s->plan.nop == STEPS ? CODES : REAL;
    op->out = RESULT;
    return op;
}

static void single_fini(single *s)
{
    if (s->exec != NULL)
        s->backend->release(s->exec);
    for (int i = 0; i < WEIGHTS; i++)
        ft_weight_clear(&s->own[i]);
}

/* The embedding table has standard deviation 1, all other weights 0.02. */
static ft_status make_weights(single *s, int threads, ft_error *err)
{
    static const char *const names[] = { "words", "places", "matrix", "bias" };
    for (int i = 0; i < WEIGHTS; i++) {
        snprintf(s->own[i].name, sizeof s->own[i].name, "%s", names[i]);
        ft_distribution how = { (uint64_t) i, 0.0f, i == WORDS ? 1.0f : 0.02f };
        FT_TRY(ft_weight_fill(&s->own[i], &how, threads, err));
        s->weight[i] = s->own[i];
    }
    return FT_OK;
}

static ft_status write_inputs(single *s, ft_error *err)
{
    size_t rows = s->batch.tokens;
    int32_t *column = ft_array(rows, sizeof *column);
    if (column == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for %zu tokens", rows);
    ft_status status = s->backend->write(s->exec, POSITIONS, column, rows, err);
    for (size_t i = 0; i < rows; i++)
        column[i] = (int32_t) ft_noise_below(WEIGHTS, i, VOCABULARY);
    if (status == FT_OK)
        status = s->backend->write(s->exec, IDS, column, rows, err);
    free(column);
    return status;
}

/* Prepare the plan and run it once. */
static ft_status single_prepare(single *s, ft_device *device, int threads, ft_error *err)
{
    ft_limits limits = { .tokens = s->batch.tokens, .sequences = 1, .threads = threads };
    FT_TRY(make_weights(s, threads, err));
    for (int i = 0; i < s->plan.nop; i++)
        FT_TRY(ft_op_check(&s->plan, &s->op[i], "benchmark", err));
    FT_TRY(s->backend->upload(device, s->weight, WEIGHTS, err));
    FT_TRY(ft_plan_layout(&s->plan, &limits, err));
    FT_TRY(s->backend->prepare(&s->exec, device, &s->plan, &limits, err));
    FT_TRY(write_inputs(s, err));
    FT_TRY(s->backend->run(s->exec, &s->batch, NULL, err));
    return s->backend->wait(s->exec, err);
}

/* Samples are single runs, or batches of back-to-back runs on an asynchronous device. */
static ft_status single_time(ft_times *out, const single *s, ft_error *err)
{
    enum { MOST = 10 };
    ft_target target = { s->backend, s->exec, &s->batch, s->plan.nop - 1 };
    int block = ft_target_queues(&target) ? 10 : 1;
    double sample[MOST], sum = 0.0;
    size_t count = 0;
    FT_TRY(ft_target_time(&target, block, &sample[0], err)); /* warms up */
    while (count < MOST && (count == 0 || sum < 0.2)) {
        FT_TRY(ft_target_time(&target, block, &sample[count], err));
        sum += block * sample[count++];
    }
    *out = ft_times_of(sample, count);
    return FT_OK;
}

/* ---- GEMMs -------------------------------------------------------------------------------- */

ft_product ft_product_of(const ft_plan *plan, const ft_op *op, const ft_batch *batch)
{
    const ft_value *x = &plan->value[op->in[0]];
    const ft_weight *w = &plan->weight[op->weight[0]];
    ft_dtype y = plan->value[op->codes >= 0 ? op->codes : op->out].dtype;
    return (ft_product){
        .m = ft_batch_rows(batch, x->rows),
        .n = w->rows,
        .k = w->cols,
        .x = x->dtype,
        .w = w->dtype,
        .y = x->dtype != FT_I8 ? x->dtype : y,
        .group = w->blocks.group,
        .by_codes = w->blocks.by_codes,
        .activation = op->attr.activation,
    };
}

static void add_product(single *s, const ft_product *p)
{
    ft_op *op = single_add(s, FT_OP_LINEAR);
    set_value(s, RESULT, "result", p->n, p->y);
    if (p->y == FT_I8) {
        s->value[RESULT].scale = CODE_STEP * 0.02f * sqrtf((float) p->k);
        op->codes = RESULT;
        op->out = -1;
    }
    op->weight[0] = MATRIX;
    op->weight[1] = BIAS;
    op->attr.activation = p->activation;
    s->own[MATRIX] = (ft_weight){
        .rows = p->n,
        .cols = p->k,
        .dtype = p->w,
        .layout = p->w == FT_I8               ? FT_COL4_4R2_8C
                  : ft_blocks_bits(p->w) != 0 ? FT_PANEL32
                                              : FT_ROW,
        .blocks = { .group = p->group, .by_codes = p->by_codes },
    };
    s->own[BIAS].cols = p->n;
}

ft_status ft_product_time(ft_times *out, const ft_product *product, const ft_backend *backend,
                          ft_device *device, int threads, ft_error *err)
{
    single s;
    single_init(&s, backend, product->m, product->k, product->x);
    add_product(&s, product);
    ft_status status = single_prepare(&s, device, threads, err);
    if (status == FT_OK)
        status = single_time(out, &s, err);
    single_fini(&s);
    return status;
}

/* ---- Roofline ----------------------------------------------------------------------------- */

static ft_status copy_rate(const ft_backend *backend, ft_device *device, int threads, double *rate,
                           ft_error *err)
{
    enum { ROWS = 65536, COLS = 1024 }; /* 256 MiB: larger than any cache */
    ft_times times = { 0 };
    single s;
    single_init(&s, backend, ROWS, COLS, FT_F32);
    set_value(&s, RESULT, "result", COLS, FT_F32);
    single_add(&s, FT_OP_ACTIVATE)->attr.activation = FT_ACT_RELU;
    ft_status status = single_prepare(&s, device, threads, err);
    if (status == FT_OK)
        status = single_time(&times, &s, err);
    single_fini(&s);
    *rate = 2.0 * ROWS * COLS * sizeof(float) / times.least;
    return status;
}

/* The best rate of square GEMMs like `p`; sizes grow while a GEMM takes less than 20 ms. */
static ft_status product_rate(ft_product p, const ft_backend *backend, ft_device *device,
                              int threads, double *rate, ft_error *err)
{
    ft_times times = { 0 };
    p.activation = FT_ACT_NONE;
    *rate = 0.0;
    for (size_t size = 512; size <= 8192 && times.least < 0.02; size *= 2) {
        p.m = p.n = p.k = size;
        FT_TRY(ft_product_time(&times, &p, backend, device, threads, err));
        *rate = fmax(*rate, 2.0 * pow((double) size, 3.0) / times.least);
    }
    return FT_OK;
}

/*
 * Read bandwidth: the best of two GEMVs with matrices of 256 MiB, larger than any cache, and little
 * output.
 */
static ft_status read_rate(const ft_backend *backend, ft_device *device, int threads, double *rate,
                           ft_error *err)
{
    const ft_product product[] = {
        { .m = 1, .n = 32768, .k = 8192, .x = FT_I8, .w = FT_I8, .y = FT_F32 },
        { .m = 1, .n = 8192, .k = 8192, .x = FT_F32, .w = FT_F32, .y = FT_F32 },
    };
    for (size_t i = 0; i < FT_COUNT(product); i++) {
        ft_times times;
        FT_TRY(ft_product_time(&times, &product[i], backend, device, threads, err));
        *rate = fmax(*rate, 256.0 * 1048576.0 / times.least);
    }
    return FT_OK;
}

/* Measure the GEMM types that occur in the plan, int8 and float, and the bandwidths. */
static ft_status measure(ft_ceilings *out, const ft_plan *plan, const ft_backend *backend,
                         ft_device *device, int threads, ft_error *err)
{
    int32_t start[2] = { 0, 1 };
    ft_batch batch = { .tokens = 1, .sequences = 1, .longest = 1, .start = start };
    for (int i = 0; i < plan->nop; i++) {
        if (plan->op[i].kind != FT_OP_LINEAR && plan->op[i].kind != FT_OP_CONV)
            continue;
        ft_product p = ft_product_of(plan, &plan->op[i], &batch);
        double *rate = p.x == FT_I8 ? &out->int8 : &out->real;
        if (*rate <= 0.0)
            FT_TRY(product_rate(p, backend, device, threads, rate, err));
    }
    FT_TRY(copy_rate(backend, device, threads, &out->copy, err));
    out->read = out->copy;
    return read_rate(backend, device, threads, &out->read, err);
}

ft_status ft_ceilings_measure(ft_ceilings *out, const ft_plan *plan, const char *device,
                              int threads, ft_error *err)
{
    const ft_backend *backend;
    ft_device *open;
    *out = (ft_ceilings){ 0 };
    FT_TRY(ft_device_open(&backend, &open, device, err));
    ft_status status = measure(out, plan, backend, open, threads, err);
    backend->close(open);
    return status;
}
