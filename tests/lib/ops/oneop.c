/*
 * oneop.c - a plan of one operation, with guards between its values.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "tests/lib/ops/oneop.h"

#include "kernels/half.h"
#include "runtime/mem.h"
#include "runtime/graph/plan.h"
#include "runtime/tensor.h"
#include "tests/lib/ops/oracle.h"
#include "tests/lib/random.h"
#include "tests/tap/tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { GUARD = 64, PATTERN = 0x5a };

void *must_have(size_t count, size_t size)
{
    size_t bytes;
    void *memory = ft_checked_mul(count, size, &bytes) ? ft_calloc_aligned(bytes) : NULL;
    if (memory == NULL)
        bail_out("cannot allocate %zu elements", count);
    return memory;
}

float *random_floats(uint64_t seed, size_t n, double sigma)
{
    rng r = { seed };
    float *x = must_have(n, sizeof *x);
    rng_floats(&r, x, n, sigma);
    return x;
}

int8_t *random_int8(uint64_t seed, size_t n)
{
    rng r = { seed };
    int8_t *quantized = must_have(n, 1);
    rng_int8(&r, quantized, n);
    return quantized;
}

float *fake_quantized(const int8_t *quantized, size_t n)
{
    float *x = must_have(n, sizeof *x);
    for (size_t i = 0; i < n; i++)
        x[i] = quantized[i];
    return x;
}

double *doubles_of(const float *x, size_t n)
{
    double *out = must_have(n, sizeof *out);
    for (size_t i = 0; i < n; i++)
        out[i] = (double) x[i];
    return out;
}

/* A pattern of 16 bits between about 2^-5 and 2, of either sign. */
static uint16_t random_half(rng *r, ft_dtype dtype)
{
    uint32_t mantissa = dtype == FT_F16 ? 10 : 7, one = dtype == FT_F16 ? 15 : 127;
    uint32_t exponent = one - rng_below(r, 6);
    return (uint16_t) (rng_below(r, 2) << 15 | exponent << mantissa | rng_below(r, 1u << mantissa));
}

ft_weight random_weight(uint64_t seed, size_t rows, size_t cols, ft_dtype dtype, double **value)
{
    rng r = { seed };
    size_t n = rows * cols;
    void *data = must_have(n, ft_dtype_size(dtype));
    *value = must_have(n, sizeof **value);
    for (size_t i = 0; i < n; i++)
        if (dtype == FT_F32) {
            ((float *) data)[i] = (float) rng_normal(&r);
            (*value)[i] = (double) ((float *) data)[i];
        } else {
            uint16_t half = ((uint16_t *) data)[i] = random_half(&r, dtype);
            (*value)[i] = dtype == FT_F16 ? oracle_f16(half) : oracle_bf16(half);
        }
    return (ft_weight){ .rows = rows, .cols = cols, .dtype = dtype, .data = data };
}

void free_weight(ft_weight *weight)
{
    free((void *) (uintptr_t) weight->data);
}

/* ---- The plan ----------------------------------------------------------------------------- */

/* A value, followed by 64 guard bytes for each token. */
static int16_t add_value(oneop *t, const char *name, const ft_value *like)
{
    ft_value value = *like;
    ft_value guard = { .rows = value.rows, .cols = GUARD, .dtype = FT_I8, .keep = true };
    value.keep = true;
    snprintf(value.name, sizeof value.name, "%s", name);
    snprintf(guard.name, sizeof guard.name, "guard");
    int index = ft_plan_add_value(&t->plan, &value);
    if (index < 0 || (!value.inner && ft_plan_add_value(&t->plan, &guard) < 0))
        bail_out("out of memory: value");
    return (int16_t) index;
}

void oneop_begin(oneop *t, bench *on, ft_op_kind kind, const ft_batch *batch)
{
    *t = (oneop){ .on = on, .batch = *batch, .op = ft_op_init(kind) };
}

void oneop_end(oneop *t)
{
    ft_plan_fini(&t->plan);
}

void oneop_in(oneop *t, int slot, ft_rows rows, int32_t cols, ft_dtype dtype, float scale,
              const void *data)
{
    static const char *const names[FT_MAX_IN] = { "in0", "in1", "in2" };
    t->data[slot] = data;
    t->op.in[slot] = add_value(
        t, names[slot], &(ft_value){ .rows = rows, .cols = cols, .dtype = dtype, .scale = scale });
}

void oneop_inner(oneop *t)
{
    t->op.inner = add_value(t, "inner", &(ft_value){ .cols = 1, .dtype = FT_F32, .inner = true });
}

void oneop_weight(oneop *t, int slot, ft_weight weight)
{
    snprintf(weight.name, sizeof weight.name, "weight%d", slot);
    t->weight[slot] = weight;
    t->op.weight[slot] = (int16_t) slot;
}

void oneop_out(oneop *t, ft_rows rows, int32_t cols)
{
    oneop_out_as(t, rows, cols, FT_F32);
}

void oneop_out_as(oneop *t, ft_rows rows, int32_t cols, ft_dtype dtype)
{
    t->op.out = add_value(t, "out", &(ft_value){ .rows = rows, .cols = cols, .dtype = dtype });
}

void oneop_quantized(oneop *t, ft_rows rows, int32_t cols, ft_dtype dtype, float scale)
{
    t->op.quantized = add_value(
        t, "codes", &(ft_value){ .rows = rows, .cols = cols, .dtype = dtype, .scale = scale });
}

void oneop_dynamic_quantized(oneop *t, ft_rows rows, int32_t cols, ft_dtype dtype)
{
    t->op.quantized = add_value(
        t, "codes", &(ft_value){ .rows = rows, .cols = cols, .dtype = dtype, .dynamic = true });
}

void oneop_second(oneop *t, ft_rows rows, int32_t cols, ft_dtype dtype)
{
    t->op.second =
        add_value(t, "second", &(ft_value){ .rows = rows, .cols = cols, .dtype = dtype });
}

void oneop_state(oneop *t, int slot, ft_rows rows, int32_t cols, ft_dtype dtype, const void *before)
{
    static const char *const names[FT_MAX_STATES] = { "state0", "state1", "state2", "state3" };
    t->before[slot] = before;
    t->op.state[slot] = add_value(
        t, names[slot], &(ft_value){ .rows = rows, .cols = cols, .dtype = dtype, .state = true });
}

/* ---- A run -------------------------------------------------------------------------------- */

static void must(ft_status status, const ft_error *err)
{
    if (status != FT_OK)
        bail_out("%s", err->text);
}

static size_t rows_of(const oneop *t, int value)
{
    size_t rows;
    const ft_value *v = &t->plan.value[value];
    if (v->rows < FT_SLOTS)
        return ft_batch_rows(&t->batch, v->rows);
    if (!ft_limits_checked_rows(&t->limits, v->rows, &rows))
        bail_out("too many rows of a state");
    return rows;
}

static size_t bytes_of(const oneop *t, int value)
{
    const ft_value *v = &t->plan.value[value];
    return rows_of(t, value) * (size_t) v->cols * ft_dtype_size(v->dtype);
}

static bool is_guard(const oneop *t, int value)
{
    return strcmp(t->plan.value[value].name, "guard") == 0;
}

static void write_values(const oneop *t, ft_exec *exec)
{
    ft_error err;
    for (int slot = 0; slot < FT_MAX_IN; slot++)
        if (t->op.in[slot] >= 0)
            must(t->on->backend->write(exec, t->op.in[slot], t->data[slot],
                                       rows_of(t, t->op.in[slot]), &err),
                 &err);
    for (int slot = 0; slot < FT_MAX_STATES; slot++)
        if (t->op.state[slot] >= 0)
            must(t->on->backend->write(exec, t->op.state[slot], t->before[slot],
                                       rows_of(t, t->op.state[slot]), &err),
                 &err);
    for (int i = 0; i < t->plan.nvalue; i++)
        if (is_guard(t, i)) {
            char *pattern = must_have(1, bytes_of(t, i));
            memset(pattern, PATTERN, bytes_of(t, i));
            must(t->on->backend->write(exec, i, pattern, rows_of(t, i), &err), &err);
            free(pattern);
        }
}

static void *read_value(const oneop *t, const ft_exec *exec, int value)
{
    ft_error err;
    void *data = must_have(1, bytes_of(t, value) + 1);
    must(t->on->backend->read(exec, value, data, NULL, rows_of(t, value), &err), &err);
    return data;
}

/* Checks that operands and guards are unchanged. */
static void check_untouched(const oneop *t, const ft_exec *exec)
{
    for (int slot = 0; slot < FT_MAX_IN; slot++)
        if (t->op.in[slot] >= 0) {
            void *now = read_value(t, exec, t->op.in[slot]);
            t->on->overwritten += memcmp(now, t->data[slot], bytes_of(t, t->op.in[slot])) != 0;
            free(now);
        }
    for (int i = 0; i < t->plan.nvalue; i++)
        if (is_guard(t, i)) {
            char *now = read_value(t, exec, i);
            size_t bytes = bytes_of(t, i);
            for (size_t byte = 0; byte < bytes; byte++)
                t->on->overwritten += now[byte] != PATTERN;
            free(now);
        }
}

/* Keeps the first result and compares the second with it; both are part of the digest. */
static void compare(const oneop *t, const unsigned char *found, size_t bytes, void *result,
                    bool first)
{
    if (first && result != NULL)
        memcpy(result, found, bytes);
    else if (result != NULL)
        t->on->thread_differences += memcmp(result, found, bytes) != 0;
    for (size_t i = 0; i < bytes; i++)
        t->on->digest = (t->on->digest ^ found[i]) * 0x100000001b3u;
}

static void collect(const oneop *t, const ft_exec *exec, int value, void *result, bool first)
{
    if (value < 0)
        return;
    unsigned char *found = read_value(t, exec, value);
    compare(t, found, bytes_of(t, value), result, first);
    free(found);
}

static void collect_scales(const oneop *t, const ft_exec *exec, bool first)
{
    ft_error err;
    size_t rows = rows_of(t, t->op.quantized);
    float *scales = must_have(rows, sizeof *scales);
    void *quantized = must_have(1, bytes_of(t, t->op.quantized) + 1);
    must(t->on->backend->read(exec, t->op.quantized, quantized, scales, rows, &err), &err);
    compare(t, (unsigned char *) scales, rows * sizeof *scales, t->scales, first);
    free(scales);
    free(quantized);
}

static void run_with(const oneop *t, int threads, void *out, void *quantized)
{
    ft_error err;
    ft_exec *exec;
    const ft_backend *backend = t->on->backend;
    ft_limits limits = t->limits;
    limits.threads = threads;
    must(backend->prepare(&exec, t->on->device, &t->plan, &limits, &err), &err);
    write_values(t, exec);
    ft_counts **counts = must_have((size_t) t->plan.nvalue, sizeof *counts);
    int observed = t->op.kind == FT_OP_OBSERVE ? t->op.in[0] : t->op.inner;
    if (observed >= 0)
        counts[observed] = t->counts;
    must(backend->run(exec, &t->batch, t->counts == NULL ? NULL : counts, &err), &err);
    if (t->counts != NULL)
        must(backend->collect(exec, counts, &err), &err);
    collect(t, exec, t->op.out, out, threads == 1);
    collect(t, exec, t->op.quantized, quantized, threads == 1);
    collect(t, exec, t->op.second, t->second, threads == 1);
    for (int slot = 0; slot < FT_MAX_STATES; slot++)
        if (t->after[slot] != NULL)
            collect(t, exec, t->op.state[slot], t->after[slot], threads == 1);
    if (t->op.quantized >= 0 && t->plan.value[t->op.quantized].dynamic)
        collect_scales(t, exec, threads == 1);
    check_untouched(t, exec);
    free(counts);
    backend->release(exec);
}

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* Operations with states are never the first of a plan, and on a GPU rely on that. */
static void add_predecessor(oneop *t)
{
    const ft_value nothing = { .rows = FT_TOKENS, .cols = 8, .dtype = FT_F32 };
    ft_op op = ft_op_init(FT_OP_ACTIVATE);
    op.in[0] = add_value(t, "nothing", &nothing);
    op.out = add_value(t, "nothing more", &nothing);
    if (ft_plan_add_op(&t->plan, &op) < 0)
        bail_out("out of memory: operation");
}

static void add_ops(oneop *t)
{
    if (t->plan.nop > 0)
        return;
    if (t->op.state[0] >= 0)
        add_predecessor(t);
    if (ft_plan_add_op(&t->plan, &t->op) < 0)
        bail_out("out of memory: operation");
}

void oneop_run(oneop *t, void *out, void *quantized)
{
    ft_error err;
    t->plan.weight = t->on_device;
    t->plan.nweight = FT_MAX_WEIGHTS;
    memcpy(t->on_device, t->weight, sizeof t->on_device);
    must(t->on->backend->upload(t->on->device, NULL, t->on_device, FT_MAX_WEIGHTS, &err), &err);
    add_ops(t);
    must(ft_op_check(&t->plan, &t->op, "one operation", &err), &err);
    t->limits.tokens = larger(t->limits.tokens, t->batch.tokens);
    t->limits.sequences = larger(t->limits.sequences, t->batch.sequences);
    t->limits.selected = t->batch.selected;
    must(ft_plan_layout(&t->plan, &t->limits, &err), &err);
    run_with(t, 1, out, quantized);
    if (t->counts == NULL)
        run_with(t, 2, out, quantized);
}

/* ---- Comparing ---------------------------------------------------------------------------- */

double number_of(const void *x, ft_dtype dtype, size_t i)
{
    return dtype == FT_F16    ? oracle_f16(((const uint16_t *) x)[i])
           : dtype == FT_BF16 ? oracle_bf16(((const uint16_t *) x)[i])
           : dtype == FT_I8   ? (double) ((const int8_t *) x)[i]
                              : (double) ((const float *) x)[i];
}

void set_number(void *x, ft_dtype dtype, size_t i, float value)
{
    if (dtype == FT_F32)
        ((float *) x)[i] = value;
    else
        ((uint16_t *) x)[i] =
            dtype == FT_F16 ? ft_f16_from_float(value) : ft_bf16_from_float(value);
}

void *random_numbers(uint64_t seed, size_t n, ft_dtype dtype)
{
    float *x = random_floats(seed, n, 1.0);
    void *reals = must_have(n, ft_dtype_size(dtype));
    for (size_t i = 0; i < n; i++)
        set_number(reals, dtype, i, x[i]);
    free(x);
    return reals;
}

double rounding_in(ft_dtype dtype)
{
    return dtype == FT_F16 ? 0x1p-11 : dtype == FT_BF16 ? 0x1p-8 : 0x1p-24;
}

double groupwise_rounding(const bench *on)
{
    return strcmp(on->backend->name, "cpu") == 0 ? 0x1p-15 : 0x1p-22;
}

bool is_far(double found, double expected, double bound)
{
    return !(fabs(found - expected) <= bound);
}

double worst_error(const float *found, const double *expected, const double *size, double relative,
                   double absolute, size_t n)
{
    double worst = 0.0;
    for (size_t i = 0; i < n; i++) {
        double bound = relative * (size == NULL ? fabs(expected[i]) : size[i]) + absolute;
        double error = fabs((double) found[i] - expected[i]);
        if (!(error <= worst * bound))
            worst = error / bound >= 0.0 ? error / bound : (double) INFINITY;
    }
    return worst;
}

size_t wrong_quantized(const void *quantized, ft_dtype dtype, const double *value, double scale,
                       double slack, size_t n)
{
    size_t wrong = 0;
    for (size_t i = 0; i < n; i++) {
        double code = dtype == FT_I8 ? ((const int8_t *) quantized)[i]
                                     : (double) ((const float *) quantized)[i];
        double exact = fmin(fmax(value[i] / scale, -127.0), 127.0);
        wrong += !(fabs(code - exact) <= 0.5 + slack) || code != rint(code);
    }
    return wrong;
}
