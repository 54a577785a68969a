/*
 * correction-t.c - the correction for errors of the quantized prefix: against its equation, and in
 * the weights that are rounded.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/weights/correction.h"
#include "calibrate/weights/groupwise_stream.h"
#include "runtime/mem.h"
#include "tests/lib/random.h"
#include "tests/tap/tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { COLS = 210, TOKENS = 500, ROWS = 40 };

static ft_error err;

/* Inputs xq behind a prefix, and the differences d = x - xq, which partly follow xq. */
typedef struct inputs {
    double *xq, *d; /* [TOKENS, COLS] */
    double *cross;  /* [COLS, COLS]: sum of d[i] * xq[j] */
    ft_input_stats stats;
} inputs;

static double *products(const double *a, const double *b)
{
    double *sums = ft_calloc(COLS * COLS, sizeof *sums);
    for (size_t row = 0; row < TOKENS; row++)
        for (size_t i = 0; i < COLS; i++)
            for (size_t k = 0; k < COLS; k++)
                sums[i * COLS + k] += a[row * COLS + i] * b[row * COLS + k];
    return sums;
}

static inputs make_inputs(void)
{
    rng r = { 3 };
    inputs in = { .xq = ft_calloc(TOKENS * COLS, sizeof(double)),
                  .d = ft_calloc(TOKENS * COLS, sizeof(double)) };
    for (size_t i = 0; i < TOKENS * COLS; i++)
        in.xq[i] = rng_normal(&r) * (i % 7 == 0 ? 4.0 : 1.0);
    for (size_t i = 0; i < TOKENS * COLS; i++)
        in.d[i] = 0.2 * in.xq[i / COLS * COLS + (i * 5 + 1) % COLS] + 0.1 * rng_normal(&r);
    in.cross = products(in.d, in.xq);
    in.stats = (ft_input_stats){ .name = "x",
                                 .cols = COLS,
                                 .moments = products(in.xq, in.xq),
                                 .cross = ft_calloc(COLS * COLS, sizeof(double)) };
    memcpy(in.stats.cross, in.cross, COLS * COLS * sizeof(double));
    return in;
}

static void free_inputs(inputs *in)
{
    free(in->xq);
    free(in->d);
    free(in->cross);
    free(in->stats.moments);
    free(in->stats.cross);
}

/* M (H + damping) = C. */
static void test_equation(const inputs *in)
{
    const double *m = in->stats.cross, *h = in->stats.moments;
    double worst = 0.0, largest = 0.0, mean = 0.0;
    for (size_t i = 0; i < COLS; i++)
        mean += h[i * COLS + i] / COLS;
    for (size_t i = 0; i < COLS; i++)
        for (size_t k = 0; k < COLS; k++) {
            double sum = 0.1 * mean * m[i * COLS + k];
            for (size_t l = 0; l < COLS; l++)
                sum += m[i * COLS + l] * h[l * COLS + k];
            worst = fmax(worst, fabs(sum - in->cross[i * COLS + k]));
            largest = fmax(largest, fabs(in->cross[i * COLS + k]));
        }
    ok(worst < 1e-10 * largest, "the correction solves M (H + damping) = C");
}

/* The square error of W + W M on xq, relative to the outputs of W on x; M NULL: 0. */
static double output_error(const inputs *in, const float *w, const double *m)
{
    double noise = 0.0, signal = 0.0, corrected[COLS];
    for (size_t row = 0; row < 4; row++) {
        for (size_t i = 0; i < COLS; i++) {
            corrected[i] = (double) w[row * COLS + i];
            for (size_t k = 0; k < COLS && m != NULL; k++)
                corrected[i] += (double) w[row * COLS + k] * m[k * COLS + i];
        }
        for (size_t token = 0; token < TOKENS; token++) {
            double wanted = 0.0, found = 0.0;
            for (size_t i = 0; i < COLS; i++) {
                double xq = in->xq[token * COLS + i];
                wanted += (double) w[row * COLS + i] * (xq + in->d[token * COLS + i]);
                found += corrected[i] * xq;
            }
            noise += (wanted - found) * (wanted - found);
            signal += wanted * wanted;
        }
    }
    return noise / signal;
}

/* Quantizes to 8 bits. The error that the stream reports is that of the corrected weights. */
static ft_groupwise_error quantize(const inputs *in, const float *w, const double *correction,
                                   int threads, unsigned char *bytes, size_t size)
{
    ft_weight_matrix matrix = {
        .name = "w", .dtype = FT_F32, .data = w, .rows = ROWS, .cols = COLS
    };
    ft_groupwise_options options = {
        .bits = 8, .group = 32, .moments = in->stats.moments, .correction = correction
    };
    ft_groupwise_stream stream;
    size_t n_read;
    if (ft_groupwise_stream_init(&stream, &matrix, &options, threads, &err) != FT_OK ||
        ft_groupwise_stream_read(&stream, bytes, size, &n_read, &err) != FT_OK)
        bail_out("%s", err.text);
    ft_groupwise_error error = stream.error;
    ft_groupwise_stream_fini(&stream);
    return error;
}

static void test_weights(const inputs *in)
{
    enum { SIZE = 1 << 16 };
    static unsigned char one[SIZE], three[SIZE], plain[SIZE];
    static float w[ROWS * COLS];
    rng r = { 8 };
    rng_floats(&r, w, ROWS * COLS, 0.1);
    double before = output_error(in, w, NULL), after = output_error(in, w, in->stats.cross);
    ok(after < 0.5 * before,
       "corrected weights have %.3f of the output error behind the prefix, uncorrected ones %.3f",
       after, before);
    ft_groupwise_error error = quantize(in, w, in->stats.cross, 1, one, SIZE);
    quantize(in, w, in->stats.cross, 3, three, SIZE);
    quantize(in, w, NULL, 1, plain, SIZE);
    ok(memcmp(one, three, SIZE) == 0, "three threads correct weights to the bytes of one thread");
    ok(memcmp(one, plain, SIZE) != 0, "corrected weights are rounded to other values");
    ok(error.out_noise < 1e-3 * error.out_signal && error.noise < 1e-3 * error.signal,
       "the error of quantized weights is relative to the corrected ones");
}

static void test_refusal(inputs *in)
{
    in->stats.moments[5] = (double) NAN;
    in->stats.moments[5 * COLS] = (double) NAN;
    is_int(ft_correction_solve(&in->stats, 1, &err), FT_EFORMAT,
           "ft_correction_solve() refuses moments that are not those of inputs");
    is_str(err.text, "x: the sums of its inputs are not those of a square",
           "the ft_correction_solve() error names the input");
}

int main(void)
{
    inputs in = make_inputs(), again = make_inputs();
    if (ft_correction_solve(&in.stats, 1, &err) != FT_OK ||
        ft_correction_solve(&again.stats, 3, &err) != FT_OK)
        bail_out("%s", err.text);
    test_equation(&in);
    ok(memcmp(in.stats.cross, again.stats.cross, COLS * COLS * sizeof(double)) == 0,
       "the correction has the same bits with three threads");
    test_weights(&in);
    test_refusal(&again);
    free_inputs(&in);
    free_inputs(&again);
    return done_testing();
}
