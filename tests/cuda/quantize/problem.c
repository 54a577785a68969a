/*
 * problem.c - see problem.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#ifdef HAVE_CUDA

#include "tests/cuda/quantize/problem.h"

#include "kernels/half.h"
#include "runtime/mem.h"
#include "tests/lib/random.h"
#include "tests/tap/tap.h"

#include <stdlib.h>
#include <string.h>

void must_succeed(ft_status status, const ft_error *err)
{
    if (status != FT_OK)
        bail_out("%s", err->text);
}

static void must_run(cudaError_t code)
{
    if (code != cudaSuccess)
        bail_out("CUDA: %s", cudaGetErrorString(code));
}

void *take_device_memory(size_t bytes)
{
    void *memory;
    must_run(cudaMalloc(&memory, bytes));
    return memory;
}

void free_device_memory(void *memory)
{
    must_run(cudaFree(memory));
}

void *copy_of(const void *device, size_t bytes)
{
    void *copy = ft_calloc(1, bytes);
    must_run(cudaDeviceSynchronize()); /* streams of quantizers do not block others */
    must_run(cudaMemcpy(copy, device, bytes, cudaMemcpyDeviceToHost));
    return copy;
}

ft_device *test_device(void)
{
    static ft_device device;
    return &device;
}

/* ---- Samples ------------------------------------------------------------------------------ */

bool is_dead(const problem *p, size_t col)
{
    return p->has_dead && col % 31 == 5;
}

static float rounded(const problem *p, double value)
{
    float f = (float) value;
    return p->dtype == FT_F32   ? f
           : p->dtype == FT_F16 ? ft_float_from_f16(ft_f16_from_float(f))
                                : ft_float_from_bf16(ft_bf16_from_float(f));
}

/* The floats of a value, which are exact in its dtype, in device memory. */
static void *upload(const problem *p, const float *x, size_t count)
{
    size_t size = p->dtype == FT_F32 ? 4 : 2;
    char *bytes = ft_calloc(count, size);
    void *device;
    for (size_t i = 0; i < count; i++) {
        uint16_t half = p->dtype == FT_F16 ? ft_f16_from_float(x[i]) : ft_bf16_from_float(x[i]);
        memcpy(bytes + i * size, p->dtype == FT_F32 ? (const void *) &x[i] : (const void *) &half,
               size);
    }
    must_run(cudaMalloc(&device, count * size));
    must_run(cudaMemcpy(device, bytes, count * size, cudaMemcpyHostToDevice));
    free(bytes);
    return device;
}

static void fill_sample(const problem *p, sample *s, rng *r)
{
    for (size_t row = 0; row < s->rows; row++) {
        double shared = rng_normal(r);
        for (size_t col = 0; col < p->cols; col++) {
            size_t at = row * p->cols + col;
            double size = is_dead(p, col) ? 0.0 : col % 7 == 1 ? 8.0 : 1.0;
            double x = size * (rng_normal(r) + (col % 3 != 0 ? 2.0 * shared : 0.0));
            double factor = p->factor != NULL ? (double) p->factor[col] : 1.0;
            s->x[at] = rounded(p, x);
            s->original[at] = rounded(p, factor * (0.97 * x + 0.1 * size * rng_normal(r)));
        }
    }
}

void problem_init(problem *p, uint64_t seed)
{
    static const size_t rows[SAMPLES] = { 150, 64, 97 };
    rng r = { seed };
    for (size_t i = 0; i < p->cols && p->factor != NULL; i++)
        p->factor[i] = (float) rng_uniform(&r, 0.5, 2.0);
    for (int i = 0; i < SAMPLES; i++) {
        sample *s = &p->samples[i];
        size_t count = rows[i] * p->cols;
        s->rows = rows[i];
        s->x = ft_calloc(count, sizeof(float));
        s->original = ft_calloc(count, sizeof(float));
        fill_sample(p, s, &r);
        s->device_x = upload(p, s->x, count);
        s->device_orig = upload(p, s->original, count);
    }
}

void problem_fini(problem *p)
{
    for (int i = 0; i < SAMPLES; i++) {
        free(p->samples[i].x);
        free(p->samples[i].original);
        must_run(cudaFree(p->samples[i].device_x));
        must_run(cudaFree(p->samples[i].device_orig));
    }
    free(p->factor);
}

/* ---- Sums --------------------------------------------------------------------------------- */

/* A plan with one value, and its memory: what the quantizer reads of a session. */
typedef struct pass {
    ft_value value;
    ft_plan plan;
    ft_exec exec;
} pass;

static const ft_exec *pass_of(pass *out, const problem *p, void *data)
{
    memset(out, 0, sizeof *out);
    out->value = (ft_value){ .name = "x", .cols = (int32_t) p->cols, .dtype = p->dtype };
    out->plan.value = &out->value;
    out->plan.nvalue = 1;
    out->exec.plan = &out->plan;
    out->exec.device = test_device();
    out->exec.arena = data;
    return &out->exec;
}

void add_samples(const problem *p, ft_quantizer *quantizer, bool backwards)
{
    const ft_weight_quantizer *calls = &ft_cuda_weight_quantizer;
    ft_error err;
    pass prefix, original;
    must_succeed(calls->begin(quantizer, p->cols, p->has_cross, &err), &err);
    must_succeed(calls->choose_unit(quantizer, pass_of(&prefix, p, p->samples[0].device_x), 0,
                                    p->samples[0].rows, &err),
                 &err);
    for (int i = 0; i < SAMPLES; i++) {
        const sample *s = &p->samples[backwards ? SAMPLES - 1 - i : i];
        must_succeed(calls->add(quantizer, pass_of(&prefix, p, s->device_x), 0,
                                pass_of(&original, p, s->device_orig), 0, s->rows, p->factor, &err),
                     &err);
    }
}

void add_samples_cpu(const problem *p, ft_exact_sums *sums, double unit)
{
    ft_error err;
    ft_linalg linalg;
    double *scratch = ft_calloc(ft_exact_sums_scratch(p->cols), sizeof *scratch);
    must_succeed(ft_linalg_init(&linalg, 1, &err), &err);
    must_succeed(ft_exact_sums_init(sums, p->cols, true, &err), &err);
    must_succeed(ft_exact_sums_init_cross(sums, &err), &err);
    sums->unit = unit;
    for (int i = 0; i < SAMPLES; i++) {
        const sample *s = &p->samples[i];
        float *difference = ft_calloc(s->rows * p->cols, sizeof *difference);
        for (size_t at = 0; at < s->rows * p->cols; at++)
            difference[at] =
                s->original[at] / (p->factor != NULL ? p->factor[at % p->cols] : 1.0f) - s->x[at];
        must_succeed(ft_exact_sums_add(sums, &linalg, s->x, s->rows, scratch, "x", &err), &err);
        must_succeed(
            ft_exact_sums_add_cross(sums, &linalg, difference, s->x, s->rows, scratch, "x", &err),
            &err);
        free(difference);
    }
    free(scratch);
}

void add_rows(const problem *p, ft_quantizer *quantizer, const float *rows, size_t count)
{
    ft_error err;
    pass prefix;
    void *data = upload(p, rows, count * p->cols);
    const ft_exec *exec = pass_of(&prefix, p, data);
    must_succeed(ft_cuda_weight_quantizer.add(quantizer, exec, 0, exec, 0, count, NULL, &err),
                 &err);
    must_run(cudaDeviceSynchronize());
    must_run(cudaFree(data));
}

#endif
