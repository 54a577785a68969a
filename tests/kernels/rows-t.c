/*
 * rows-t.c - the row functions of every instruction set: identical bits, at every length.
 *
 * The plain C functions are compared with the oracle; the others must equal them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cpu/base/rows.h"
#include "kernels/half.h"
#include "kernels/norm.h"
#include "kernels/softmax.h"
#include "runtime/mem.h"
#include "runtime/tensor.h"
#include "tests/lib/ops/oneop.h"
#include "tests/lib/ops/oracle.h"
#include "tests/lib/random.h"
#include "tests/tap/tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST = 5000, PATTERN = 0xa5, MARGIN = 64 };

#define ROUNDING 0x1p-24

/* ---- Every function, by number ------------------------------------------------------------ */

/* Arguments for all of them. */
typedef struct row_data {
    float *x, *y, *weight, *scale;
    int8_t *quantized;
    float *fake;
    int32_t *sums;
    uint16_t *half;
} row_data;

static row_data make_data(void)
{
    rng r = { 3 };
    row_data d = { .x = random_floats(1, LONGEST, 3.0),
                   .y = random_floats(2, LONGEST, 1.0),
                   .weight = random_floats(3, LONGEST, 1.0),
                   .scale = random_floats(4, LONGEST, 0.01),
                   .quantized = random_int8(5, LONGEST) };
    d.fake = fake_quantized(d.quantized, LONGEST);
    d.sums = must_have(LONGEST, sizeof *d.sums);
    d.half = must_have(LONGEST, sizeof *d.half);
    for (size_t i = 0; i < LONGEST; i++) {
        d.sums[i] = (int32_t) (uint32_t) rng_bits(&r) >> rng_below(&r, 16);
        d.half[i] = (uint16_t) (rng_bits(&r) & 0xbbff); /* finite in both formats */
    }
    const float special[] = { 0.0f, -0.0f, 100.0f, -100.0f, 1e-40f, -1e-40f, 88.5f, -88.5f, 5.1f };
    memcpy(d.x + 20, special, sizeof special);
    return d;
}

static void free_data(row_data *d)
{
    void *all[] = { d->x, d->y, d->weight, d->scale, d->quantized, d->fake, d->sums, d->half };
    for (size_t i = 0; i < FT_COUNT(all); i++)
        free(all[i]);
}

/* Runs on elements `at` .. `at` + n - 1 of the data; returns the bytes of `out` that it writes. */
typedef size_t row_call(const ft_row_kernels *rows, const row_data *d, size_t at, void *out,
                        size_t n);

static size_t call_f16(const ft_row_kernels *rows, const row_data *d, size_t at, void *out,
                       size_t n)
{
    rows->to_float(out, d->half + at, FT_F16, n);
    return n * sizeof(float);
}

static size_t call_bf16(const ft_row_kernels *rows, const row_data *d, size_t at, void *out,
                        size_t n)
{
    rows->to_float(out, d->half + at, FT_BF16, n);
    return n * sizeof(float);
}

static size_t call_f32(const ft_row_kernels *rows, const row_data *d, size_t at, void *out,
                       size_t n)
{
    rows->to_float(out, d->x + at, FT_F32, n);
    return n * sizeof(float);
}

static size_t call_to_f16(const ft_row_kernels *rows, const row_data *d, size_t at, void *out,
                          size_t n)
{
    rows->from_float(out, d->x + at, FT_F16, n);
    return n * sizeof(uint16_t);
}

static size_t call_to_bf16(const ft_row_kernels *rows, const row_data *d, size_t at, void *out,
                           size_t n)
{
    rows->from_float(out, d->x + at, FT_BF16, n);
    return n * sizeof(uint16_t);
}

static size_t call_to_f32(const ft_row_kernels *rows, const row_data *d, size_t at, void *out,
                          size_t n)
{
    rows->from_float(out, d->x + at, FT_F32, n);
    return n * sizeof(float);
}

static size_t call_quantize_i8(const ft_row_kernels *rows, const row_data *d, size_t at, void *out,
                               size_t n)
{
    rows->quantize_i8(out, d->x + at, 20.1f, n);
    return n;
}

static size_t call_quantize_f32(const ft_row_kernels *rows, const row_data *d, size_t at, void *out,
                                size_t n)
{
    memcpy(out, d->x + at, n * sizeof(float));
    rows->quantize_f32(out, out, 20.1f, n); /* in place */
    return n * sizeof(float);
}

static size_t call_dequantize_i8(const ft_row_kernels *rows, const row_data *d, size_t at,
                                 void *out, size_t n)
{
    rows->dequantize_i8(out, d->quantized + at, 0.013f, n);
    return n * sizeof(float);
}

static size_t call_dequantize_f32(const ft_row_kernels *rows, const row_data *d, size_t at,
                                  void *out, size_t n)
{
    memcpy(out, d->fake + at, n * sizeof(float));
    rows->dequantize_f32(out, out, 0.013f, n); /* in place */
    return n * sizeof(float);
}

static size_t call_add(const ft_row_kernels *rows, const row_data *d, size_t at, void *out,
                       size_t n)
{
    memcpy(out, d->x + at, n * sizeof(float));
    rows->add(out, out, d->y + at, n); /* in place */
    return n * sizeof(float);
}

static size_t call_add_quantized_i8(const ft_row_kernels *rows, const row_data *d, size_t at,
                                    void *out, size_t n)
{
    memcpy(out, d->x + at, n * sizeof(float));
    rows->add_dequantized_i8(out, out, d->quantized + at, 0.031f, n); /* in place */
    return n * sizeof(float);
}

static size_t call_add_quantized_f32(const ft_row_kernels *rows, const row_data *d, size_t at,
                                     void *out, size_t n)
{
    memcpy(out, d->fake + at, n * sizeof(float));
    rows->add_dequantized_f32(out, d->x + at, out, 0.031f, n); /* in place of the int8 values */
    return n * sizeof(float);
}

static size_t call_norm(const ft_row_kernels *rows, const row_data *d, size_t at, void *out,
                        size_t n)
{
    memcpy(out, d->x + at, n * sizeof(float));
    rows->norm(out, out, d->weight + at, d->y + at, 1e-5f, n); /* in place */
    return n * sizeof(float);
}

static size_t call_rms_norm(const ft_row_kernels *rows, const row_data *d, size_t at, void *out,
                            size_t n)
{
    memcpy(out, d->x + at, n * sizeof(float));
    rows->rms_norm(out, out, d->weight + at, 1e-5f, n);
    return n * sizeof(float);
}

static size_t call_amax(const ft_row_kernels *rows, const row_data *d, size_t at, void *out,
                        size_t n)
{
    float amax = rows->amax(d->x + at, n);
    memcpy(out, &amax, sizeof amax);
    return sizeof amax;
}

static size_t call_largest(const ft_row_kernels *rows, const row_data *d, size_t at, void *out,
                           size_t n)
{
    float largest;
    bool numbers = rows->max_logit(d->x + at, n, &largest);
    memcpy(out, &largest, sizeof largest);
    memcpy((char *) out + sizeof largest, &numbers, sizeof numbers);
    return sizeof largest + sizeof numbers;
}

/* The sum, then its terms. */
static size_t call_masses(const ft_row_kernels *rows, const row_data *d, size_t at, void *out,
                          size_t n)
{
    float largest;
    (void) rows->max_logit(d->x + at, n, &largest);
    uint64_t sum = rows->fixed_probs(out, d->x + at, largest, 1.3f, n);
    for (size_t i = 0; i < n; i++)
        sum -= ((const uint32_t *) out)[i];
    ((uint32_t *) out)[0] ^= (uint32_t) sum;
    return n * sizeof(uint32_t);
}

static size_t call_softmax(const ft_row_kernels *rows, const row_data *d, size_t at, void *out,
                           size_t n)
{
    memcpy(out, d->x + at, n * sizeof(float));
    rows->softmax(out, 0.7f, n);
    return n * sizeof(float);
}

static size_t call_softmax_quantized(const ft_row_kernels *rows, const row_data *d, size_t at,
                                     void *out, size_t n)
{
    memcpy(out, d->x + at, n * sizeof(float));
    rows->softmax_quantize(out, 0.06f, n);
    return n * sizeof(float);
}

static size_t call_softmax_total(const ft_row_kernels *rows, const row_data *d, size_t at,
                                 void *out, size_t n)
{
    memcpy(out, d->x + at, n * sizeof(float));
    float total = rows->softmax_quantize(out, 0.06f, n);
    memcpy(out, &total, sizeof total);
    return sizeof total;
}

static size_t call_square_sum(const ft_row_kernels *rows, const row_data *d, size_t at, void *out,
                              size_t n)
{
    float sum = rows->square_sum(d->x + at, n);
    memcpy(out, &sum, sizeof sum);
    return sizeof sum;
}

static size_t call_sums(const ft_row_kernels *rows, const row_data *d, size_t at, void *out,
                        size_t n)
{
    rows->dequantize_acc(out, d->sums + at, 0.37f, d->scale + at, NULL, n);
    return n * sizeof(float);
}

static size_t call_sums_bias(const ft_row_kernels *rows, const row_data *d, size_t at, void *out,
                             size_t n)
{
    rows->dequantize_acc(out, d->sums + at, 0.37f, d->scale + at, d->y + at, n);
    return n * sizeof(float);
}

#define ACTIVATE(name, activation)                                                                 \
    static size_t call_##name(const ft_row_kernels *rows, const row_data *d, size_t at, void *out, \
                              size_t n)                                                            \
    {                                                                                              \
        memcpy(out, d->x + at, n * sizeof(float));                                                 \
        rows->activate(out, out, activation, n); /* in place */                                    \
        return n * sizeof(float);                                                                  \
    }
ACTIVATE(gelu, FT_ACT_GELU)
ACTIVATE(gelu_approx, FT_ACT_GELU_APPROX)
ACTIVATE(gelu_tanh, FT_ACT_GELU_TANH)
ACTIVATE(relu, FT_ACT_RELU)
ACTIVATE(tanh, FT_ACT_TANH)
ACTIVATE(silu, FT_ACT_SILU)
ACTIVATE(none, FT_ACT_NONE)
#undef ACTIVATE

static const struct {
    const char *name;
    row_call *call;
} calls[] = {
    { "f16 to f32", call_f16 },
    { "bf16 to f32", call_bf16 },
    { "f32 to f32", call_f32 },
    { "f32 to f16", call_to_f16 },
    { "f32 to bf16", call_to_bf16 },
    { "f32 to f32, rounded like a store", call_to_f32 },
    { "quantize to int8", call_quantize_i8 },
    { "quantize to int8 values in f32", call_quantize_f32 },
    { "dequantize int8", call_dequantize_i8 },
    { "dequantize int8 values in f32", call_dequantize_f32 },
    { "add", call_add },
    { "add int8 values", call_add_quantized_i8 },
    { "add int8 values in f32", call_add_quantized_f32 },
    { "norm", call_norm },
    { "rms norm", call_rms_norm },
    { "largest magnitude", call_amax },
    { "largest logit", call_largest },
    { "unnormalized probabilities of logits", call_masses },
    { "softmax", call_softmax },
    { "quantized probabilities of a softmax", call_softmax_quantized },
    { "sum of the quantized probabilities", call_softmax_total },
    { "sum of squares", call_square_sum },
    { "scale accumulators", call_sums },
    { "scale accumulators and add a bias", call_sums_bias },
    { "gelu", call_gelu },
    { "approximate gelu", call_gelu_approx },
    { "tanh gelu", call_gelu_tanh },
    { "relu", call_relu },
    { "tanh", call_tanh },
    { "silu", call_silu },
    { "no activation", call_none },
};

/* ---- Equal bits --------------------------------------------------------------------------- */

/* Lengths 1 to 70, then some of models, and an unusual one. */
static size_t next_length(size_t n)
{
    static const size_t large[] = { 128, 300, 312, 768, 3072, 4999 };
    if (n < 70)
        return n + 1;
    for (size_t i = 0; i < FT_COUNT(large); i++)
        if (large[i] > n)
            return large[i];
    return 0;
}

typedef struct differences {
    int bits, beyond;
} differences;

/* Unaligned results too; the byte after a result must stay unchanged. */
static differences compare(const ft_row_kernels *rows, const row_data *d, row_call *call)
{
    differences found = { 0, 0 };
    unsigned char *ours = must_have(LONGEST * 4 + MARGIN, 1);
    unsigned char *plain = must_have(LONGEST * 4 + MARGIN, 1);
    for (size_t n = 1; n > 0; n = next_length(n)) {
        size_t at = n % 2;
        memset(ours, PATTERN, LONGEST * 4 + MARGIN);
        size_t bytes = call(rows, d, at, ours, n);
        call(ft_row_kernels_for(FT_ISA_GENERIC), d, at, plain, n);
        found.bits += memcmp(ours, plain, bytes) != 0;
        for (size_t i = bytes < n * 4 ? n * 4 : bytes; i < bytes + MARGIN; i++)
            found.beyond += ours[i] != PATTERN;
    }
    free(ours);
    free(plain);
    return found;
}

static void test_sets(const row_data *d)
{
    for (int isa = FT_ISA_GENERIC; isa < FT_ISA_COUNT; isa++) {
        const char *name = ft_isa_name((ft_isa) isa);
        if (!ft_isa_supported((ft_isa) isa)) {
            skip((int) FT_COUNT(calls), "this machine has no %s", name);
            continue;
        }
        for (size_t i = 0; i < FT_COUNT(calls); i++) {
            differences found = compare(ft_row_kernels_for((ft_isa) isa), d, calls[i].call);
            ok(found.bits == 0 && found.beyond == 0,
               "%s: %s has the bits of plain C at 76 lengths and writes nothing beyond the end",
               name, calls[i].name);
            if (found.bits + found.beyond > 0)
                diag("%d lengths differ, %d bytes beyond", found.bits, found.beyond);
        }
    }
}

/* ---- Correctness -------------------------------------------------------------------------- */

/* The sum of a norm as kernels/norm.h specifies: partial sums, then a tree over them. */
static float sum_in_order(const float *x, size_t n)
{
    static const size_t apart[] = { 4, 2, 1, 128, 64, 32, 16, 8 };
    float part[FT_NORM_PARTIALS] = { 0 };
    for (size_t i = 0; i < n; i++)
        part[i % FT_NORM_PARTIALS] += x[i];
    for (size_t step = 0; step < FT_COUNT(apart); step++)
        for (size_t i = 0; i < FT_NORM_PARTIALS; i++)
            if ((i & apart[step]) == 0)
                part[i] += part[i + apart[step]];
    return part[0];
}

/*
 * With an eps so large that the variance vanishes, the factor is 2^-20, and with weights of 2^20 a
 * norm is x - mean: its bits show the order of the sum.
 */
static void test_order(const ft_row_kernels *rows, const row_data *d, const char *name)
{
    float *weight = must_have(LONGEST, sizeof *weight), *bias = must_have(LONGEST, sizeof *bias);
    float *found = must_have(LONGEST, sizeof *found);
    int wrong = 0;
    for (size_t i = 0; i < LONGEST; i++)
        weight[i] = 0x1p20f, bias[i] = 0.0f;
    for (size_t n = 1; n > 0; n = next_length(n)) {
        float mean = ft_norm_mean(sum_in_order(d->x, n), (float) n, 1.0f / (float) n);
        rows->norm(found, d->x, weight, bias, 0x1p40f, n);
        for (size_t i = 0; i < n; i++)
            wrong += found[i] != d->x[i] - mean;
    }
    is_int(wrong, 0, "%s: a norm adds in the documented order", name);
    free(weight);
    free(bias);
    free(found);
}

static void test_norm(const ft_row_kernels *rows, const row_data *d)
{
    double worst = 0.0;
    double *x = doubles_of(d->x, LONGEST), *w = doubles_of(d->weight, LONGEST);
    double *b = doubles_of(d->y, LONGEST), *expected = must_have(LONGEST, sizeof *expected);
    double *size = must_have(LONGEST, sizeof *size);
    float *found = must_have(LONGEST, sizeof *found);
    for (size_t n = 1; n > 0; n = next_length(n)) {
        rows->norm(found, d->x, d->weight, d->y, 1e-5f, n);
        oracle_norm(expected, x, w, b, 1e-5, n);
        for (size_t i = 0; i < n; i++)
            size[i] = fabs(expected[i]) + fabs(b[i]) + 2 * fabs(w[i]);
        /* 256 partial sums and a tree of depth eight, then eight operations. */
        double bound = ((double) n / FT_NORM_PARTIALS + 16) * ROUNDING;
        worst = fmax(worst, worst_error(found, expected, size, bound, 0.0, n));
    }
    near(worst, 0.0, 1.0, "the norm matches a float64 oracle at every length");
    for (size_t i = 0; i < 100; i++)
        found[i] = 1e6f;
    rows->norm(found, found, d->weight, d->y, 1e-12f, 100);
    ok(memcmp(found, d->y, 100 * sizeof *found) == 0, "the norm of a constant row is 0");
    free(x);
    free(w);
    free(b);
    free(expected);
    free(size);
    free(found);
}

static void test_softmax(const ft_row_kernels *rows, const row_data *d)
{
    double worst = 0.0;
    double *x = doubles_of(d->x, LONGEST), *expected = must_have(LONGEST, sizeof *expected);
    float *found = must_have(LONGEST, sizeof *found);
    for (size_t n = 1; n > 0; n = next_length(n)) {
        memcpy(found, d->x, n * sizeof *found);
        rows->softmax(found, 0.7f, n);
        oracle_softmax(expected, x, (double) 0.7f, n);
        /* A score of up to 70 in size is rounded, and so is its distance from the largest: */
        double exponent = 2 * 140 * ROUNDING;
        /* an error of exp and of the sum; below 2^-124, exp is clamped to its smallest value. */
        worst = fmax(worst, worst_error(found, expected, NULL,
                                        exponent + ((double) n / 16 + 10) * ROUNDING, 0x1p-124, n));
    }
    near(worst, 0.0, 1.0, "the softmax matches a float64 oracle at every length");

    float extreme[] = { 3e38f, -3e38f, 0.0f, 2.9e38f };
    rows->softmax(extreme, 1.0f, 4);
    ok(extreme[0] == 1.0f && extreme[1] < 1e-37f && extreme[2] < 1e-37f && extreme[3] < 1e-37f,
       "the largest of huge scores has the probability 1");
    float equal[] = { -5.0f, -5.0f, -5.0f, -5.0f };
    rows->softmax(equal, 1.0f, 4);
    ok(equal[0] == 0.25f && equal[3] == 0.25f, "equal scores have equal probabilities");
    float one = -1e30f;
    rows->softmax(&one, 2.0f, 1);
    ok(one == 1.0f, "a single score has the probability 1");
    free(x);
    free(expected);
    free(found);
}

/* The error is half a step of rounding and 0.040 of the chain: kernels/softmax.h. */
static void test_softmax_quantized(const ft_row_kernels *rows, const row_data *d)
{
    enum { SCORES = 2000, FAR = 1 << 24 };
    static const float scales[] = { 1e-6f, 3e-4f, 0.02f, 0.5f, 40.0f };
    float *found = must_have(SCORES, sizeof *found);
    double worst = 0.0, total = 0.0;
    int off = 0;
    for (size_t i = 0; i < FT_COUNT(scales); i++) {
        float step = ft_softmax_step(scales[i]), most = -INFINITY;
        for (size_t j = 0; j < SCORES; j++) {
            found[j] = rintf(d->x[j] * (j % 2 == 0 ? 10.0f : 1e4f));
            most = fmaxf(most, found[j]);
        }
        float sum = rows->softmax_quantize(found, step, SCORES);
        total = 0.0;
        for (size_t j = 0; j < SCORES; j++) {
            double below = (double) most - (double) rintf(d->x[j] * (j % 2 == 0 ? 10.0f : 1e4f));
            worst = fmax(worst, fabs((double) found[j] - 127 * exp(-below * (double) scales[i])));
            total += (double) found[j];
            off += below == 0.0 && found[j] != 127.0f;
        }
        off += total != (double) sum;
    }
    near(worst, 0.0, 0.540, "quantized probabilities are within one of 127 e^(score - max)");
    is_int(
        off, 0,
        "the largest score has the quantized probability 127, and the sum is that of all of them");
    float spread[] = { 0.0f, -1.0f, -FAR, -100.0f };
    ok(rows->softmax_quantize(spread, ft_softmax_step(INFINITY), 4) == 127.0f,
       "an infinite scale gives the largest score all of the probability");
    float equal[] = { -FAR, -FAR, 1.0f - FAR, -FAR };
    ok(rows->softmax_quantize(equal, ft_softmax_step(0.0f), 4) == 4 * 127.0f,
       "a scale of 0 gives all scores the same probability");
    free(found);
}

/* A GPU's sums begin at 2^24: then 1 - 2^24 step must lose nothing. */
static void test_softmax_step(void)
{
    int lost = 0, off = 0;
    for (float scale = 1e-12f; scale < 1e3f; scale *= 1.0137f) {
        float step = ft_softmax_step(scale);
        double whole = 1.0 - 0x1p24 * (double) step,
               exact = (double) scale * (double) FT_SOFTMAX_SLOPE;
        lost += (double) (float) whole != whole;
        /* 2^24 scores below the largest, what that changes is less than 2^-24 */
        off += exact < 0.9 && fabs((double) step - exact) > 0x1p-48 + 2 * ROUNDING * exact;
    }
    is_int(lost, 0, "1 - 2^24 * step is representable in f32 for every scale");
    is_int(off, 0, "the softmax step is within an ulp of the one that the scale asks for");
}

/* NaN propagates through every activation. */
static void test_activations_of_nan(const ft_row_kernels *rows, const char *name)
{
    static const ft_activation all[] = { FT_ACT_GELU, FT_ACT_GELU_TANH, FT_ACT_RELU, FT_ACT_TANH,
                                         FT_ACT_SILU };
    float x[19], y[19];
    int lost = 0;
    for (size_t i = 0; i < FT_COUNT(x); i++)
        x[i] = i % 2 == 0 ? NAN : -0.0f;
    for (size_t i = 0; i < FT_COUNT(all); i++) {
        rows->activate(y, x, all[i], FT_COUNT(x));
        for (size_t k = 0; k < FT_COUNT(x); k++)
            lost += k % 2 == 0 ? !isnan(y[k]) || !isnan(ft_activate(all[i], x[k])) : y[k] != 0.0f;
    }
    is_int(lost, 0, "%s: every activation of NaN is NaN", name);
}

static void test_quantize(const ft_row_kernels *rows, const char *name)
{
    const float x[] = { 0.5f,    1.5f,    2.5f,     -0.5f,     -1.5f,    126.4f, 126.6f, 200.0f,
                        -126.6f, -1000.f, INFINITY, -INFINITY, 3.40e38f, -0.0f,  1e-40f };
    const int8_t expected[] = { 0, 2, 2, 0, -2, 126, 127, 127, -127, -127, 127, -127, 127, 0, 0 };
    int8_t quantized[FT_COUNT(x)];
    float fake[FT_COUNT(x)];
    rows->quantize_i8(quantized, x, 1.0f, FT_COUNT(x));
    rows->quantize_f32(fake, x, 1.0f, FT_COUNT(x));
    int wrong = 0;
    for (size_t i = 0; i < FT_COUNT(x); i++)
        wrong += quantized[i] != expected[i] || fake[i] != (float) expected[i];
    is_int(wrong, 0, "%s: ties are quantized to even, all other values to the nearest in +-127",
           name);
}

/* The largest number at each position in turn: first by value, then as NaN. */
static void test_amax(const ft_row_kernels *rows, const char *name)
{
    enum { N = 37 };
    float x[N];
    int wrong = 0, hidden = 0;
    for (int i = 0; i < N; i++)
        x[i] = (i % 2 == 0 ? 1.0f : -1.0f) * (float) i;
    for (int i = 0; i < N; i++) {
        float before = x[i];
        x[i] = -40.5f;
        wrong += rows->amax(x, N) != 40.5f;
        x[i] = NAN;
        hidden += !isnan(rows->amax(x, N));
        x[i] = before;
    }
    is_int(wrong, 0, "%s: the largest magnitude is found at every position", name);
    is_int(hidden, 0, "%s: a NaN counts as the largest magnitude", name);
}

/* The same for logits, which are all at most 0. */
static void test_largest(const ft_row_kernels *rows, const char *name)
{
    enum { N = 37 };
    float x[N], found;
    int wrong = 0, hidden = 0;
    for (int i = 0; i < N; i++)
        x[i] = i % 3 == 0 ? -INFINITY : (float) -i - 2.0f;
    for (int i = 0; i < N; i++) {
        float before = x[i];
        x[i] = -1.5f;
        wrong += !rows->max_logit(x, N, &found) || found != -1.5f;
        x[i] = NAN;
        hidden += rows->max_logit(x, N, &found);
        x[i] = before;
    }
    wrong += !rows->max_logit(x, 1, &found) || found != -INFINITY;
    wrong += !rows->max_logit(x, 0, &found) || found != -INFINITY;
    is_int(wrong, 0, "%s: the largest logit is found at every position", name);
    is_int(hidden, 0, "%s: a NaN is ignored by the largest logit", name);
}

/* The largest has the weight 2^30, one less half of it; below the floor, or NaN, 0. */
static void test_masses(const ft_row_kernels *rows, const char *name)
{
    enum { N = 35 };
    float x[N];
    uint32_t mass[N];
    int wrong = 0;
    for (int i = 0; i < N; i++)
        x[i] = 7.0f - (float) i;
    x[33] = -INFINITY;
    x[34] = NAN;
    uint64_t sum = rows->fixed_probs(mass, x, 7.0f, 1.0f, N);
    for (int i = 0; i < N; i++)
        wrong += mass[i] != (i <= 30 ? UINT32_C(1) << (30 - i) : 0);
    is_int(wrong, 0, "%s: a logit whose exponent is lower by one has half the weight", name);
    ok(sum == (UINT64_C(1) << 31) - 1, "%s: the sum of weights is that of all logits", name);
}

static void test_sums(const ft_row_kernels *rows, const char *name)
{
    const int32_t sums[] = { INT32_MAX, INT32_MIN, 16777217, -16777219, 0, 1 };
    const float scale[] = { 1.0f, 1.0f, 0.5f, 1.0f, 7.0f, 3.0f };
    const float bias[] = { 0.0f, 0.0f, 1.0f, 0.0f, 0.25f, -6.0f };
    /* A sum is rounded to float before it is multiplied, ties to even. */
    const float expected[] = { 0x1p32f, -0x1p32f, 16777217.0f, -33554440.0f, 0.25f, 0.0f };
    float found[FT_COUNT(sums)];
    rows->dequantize_acc(found, sums, 2.0f, scale, bias, FT_COUNT(sums));
    ok(memcmp(found, expected, sizeof found) == 0, "%s: sums are rounded, scaled and then biased",
       name);
}

int main(void)
{
    row_data d = make_data();
    const ft_row_kernels *plain = ft_row_kernels_for(FT_ISA_GENERIC);
    test_norm(plain, &d);
    test_softmax(plain, &d);
    test_softmax_quantized(plain, &d);
    test_softmax_step();
    for (int isa = FT_ISA_GENERIC; isa < FT_ISA_COUNT; isa++)
        if (ft_isa_supported((ft_isa) isa)) {
            test_order(ft_row_kernels_for((ft_isa) isa), &d, ft_isa_name((ft_isa) isa));
            test_quantize(ft_row_kernels_for((ft_isa) isa), ft_isa_name((ft_isa) isa));
            test_activations_of_nan(ft_row_kernels_for((ft_isa) isa), ft_isa_name((ft_isa) isa));
            test_amax(ft_row_kernels_for((ft_isa) isa), ft_isa_name((ft_isa) isa));
            test_largest(ft_row_kernels_for((ft_isa) isa), ft_isa_name((ft_isa) isa));
            test_masses(ft_row_kernels_for((ft_isa) isa), ft_isa_name((ft_isa) isa));
            test_sums(ft_row_kernels_for((ft_isa) isa), ft_isa_name((ft_isa) isa));
        }
    test_sets(&d);
    free_data(&d);
    return done_testing();
}
