/*
 * factors-t.c - SmoothQuant: the error of quantized pairs of inputs and weights, and the search for
 * factors.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/smooth/factors.h"
#include "kernels/quant.h"
#include "runtime/mem.h"
#include "tests/lib/random.h"
#include "tests/tap/tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 24, INPUTS = 64, OUTPUTS = 40, LARGE = 19 };

static ft_error err;

/* ---- Inputs and weights ------------------------------------------------------------------- */

/* An input whose halves have rows of random values, and one matrix that reads it. */
typedef struct subject {
    float x[2][ROWS * INPUTS], amax[2][INPUTS], w[OUTPUTS * INPUTS];
    double square[2][INPUTS];
    ft_input_stats input;
    ft_weight_matrix weights;
    ft_scale_fold fold;
} subject;

static void measure_half(subject *s, int half)
{
    for (size_t i = 0; i < (size_t) ROWS * INPUTS; i++) {
        float value = s->x[half][i];
        s->amax[half][i % INPUTS] = fmaxf(s->amax[half][i % INPUTS], fabsf(value));
        s->square[half][i % INPUTS] += (double) value * (double) value;
    }
    s->input.half[half] = (ft_half_stats){
        .x = s->x[half], .rows = ROWS, .amax = s->amax[half], .square = s->square[half]
    };
}

/* Column LARGE of half i is large[i] times as large as the others. */
static void make(subject *s, double first, double second)
{
    rng r = { 7 };
    memset(s, 0, sizeof *s);
    rng_floats(&r, s->w, (size_t) OUTPUTS * INPUTS, 0.1);
    for (int half = 0; half < 2; half++) {
        rng_floats(&r, s->x[half], (size_t) ROWS * INPUTS, 1.0);
        for (size_t row = 0; row < ROWS; row++)
            s->x[half][row * INPUTS + LARGE] *= (float) (half == 0 ? first : second);
        measure_half(s, half);
    }
    s->input.name = "x";
    s->input.cols = INPUTS;
    s->weights = (ft_weight_matrix){
        .name = "w", .dtype = FT_F32, .data = s->w, .rows = OUTPUTS, .cols = INPUTS
    };
    s->fold = (ft_scale_fold){ .cols = INPUTS, .norm = { 0, -1 }, .producer = -1, .bias = -1 };
}

static ft_smooth_choice search(const subject *s, bool per_token, double alpha, int threads,
                               float factor[INPUTS])
{
    ft_smooth_choice choice;
    ft_smooth_problem problem = { .fold = &s->fold,
                                  .input = &s->input,
                                  .weights = &s->weights,
                                  .count = 1,
                                  .per_token = per_token,
                                  .alpha = alpha,
                                  .threads = threads };
    if (ft_smooth_search(factor, &choice, &problem, &err) != FT_OK)
        bail_out("%s", err.text);
    return choice;
}

/* ---- The error of a pair ------------------------------------------------------------------ */

/* The error with scales per row, in the order of the definition. */
static double direct_error(const subject *s, const float *factor)
{
    double noise = 0.0, signal = 0.0;
    for (size_t row = 0; row < ROWS; row++)
        for (size_t out = 0; out < OUTPUTS; out++) {
            const float *x = s->x[1] + row * INPUTS, *w = s->w + out * INPUTS;
            float x_amax = 0.0f, w_amax = 0.0f;
            for (size_t i = 0; i < INPUTS; i++) {
                x_amax = fmaxf(x_amax, fabsf(x[i] / factor[i]));
                w_amax = fmaxf(w_amax, fabsf(w[i] * factor[i]));
            }
            double exact = 0.0, product = 0.0;
            for (size_t i = 0; i < INPUTS; i++) {
                float x_inverse = ft_inverse_scale(ft_scale_from_amax(x_amax));
                float w_inverse = ft_inverse_scale(ft_scale_from_amax(w_amax));
                exact += (double) x[i] * (double) w[i];
                product += (double) ft_quantize_to_float(x[i] / factor[i], x_inverse) *
                           (double) ft_quantize_to_float(w[i] * factor[i], w_inverse);
            }
            double found =
                product * (double) ft_scale_from_amax(x_amax) * (double) ft_scale_from_amax(w_amax);
            noise += (found - exact) * (found - exact);
            signal += exact * exact;
        }
    return noise / signal;
}

static double pair_error(const subject *s, bool per_token, const float *factor)
{
    ft_pair pair = { .fit = &s->input.half[0],
                     .judge = &s->input.half[1],
                     .cols = INPUTS,
                     .weights = &s->weights,
                     .count = 1,
                     .per_token = per_token };
    if (ft_pair_init(&pair, 1, &err) != FT_OK)
        bail_out("%s", err.text);
    double error = ft_pair_error(&pair, factor);
    ft_pair_fini(&pair);
    return error;
}

static void test_error(void)
{
    static subject s;
    float factor[INPUTS];
    make(&s, 20.0, 20.0);
    for (int i = 0; i < INPUTS; i++)
        factor[i] = 1.0f + (float) (i % 7);
    double expected = direct_error(&s, factor);
    near(pair_error(&s, true, factor) / expected, 1.0, 1e-9,
         "the error with scales per token equals that of the definition");
    ok(pair_error(&s, false, factor) > expected,
       "one scale for the tensor has a larger error than scales per token");
    make(&s, 1.0, 20.0);
    for (int i = 0; i < INPUTS; i++)
        factor[i] = 1.0f;
    ok(pair_error(&s, false, factor) > 0.3,
       "values beyond the range of the first half are clipped in the second half");
}

/* ---- The search --------------------------------------------------------------------------- */

static double ratio(const float *factor)
{
    float other = factor[LARGE == 0];
    return (double) factor[LARGE] / (double) other;
}

static void test_search(void)
{
    static subject s;
    float factor[INPUTS], again[INPUTS];
    make(&s, 20.0, 20.0);
    for (int per_token = 0; per_token < 2; per_token++) {
        const char *what = per_token ? "scales per token" : "one scale";
        ft_smooth_choice choice = search(&s, per_token, -1.0, 1, factor);
        ok(choice.smooths && choice.error < 0.5 * choice.error_without,
           "%s: factors leave %.2f of the error of an input with a large column", what,
           choice.error / choice.error_without);
        ok(ratio(factor) > 3.0, "%s: the large column is divided by the largest factor", what);
        search(&s, per_token, -1.0, 3, again);
        ok(memcmp(factor, again, sizeof factor) == 0,
           "%s: three threads find the factors of one thread", what);
    }
    s.input.half[1].rows = 0;
    ok(!search(&s, false, -1.0, 1, factor).smooths,
       "without a second half of the samples there are no factors");
    make(&s, 1.0, 20.0);
    ft_smooth_choice choice = search(&s, false, 1.0, 1, factor);
    ok(choice.smooths && ratio(factor) > 3.0,
       "the factors of a given alpha are those of both halves together");
}

/* Columns that are large in samples of the second half only are clipped if factors are tight. */
static void test_unseen(void)
{
    static subject s;
    float factor[INPUTS], one[INPUTS];
    make(&s, 1.0, 1.0);
    for (size_t half = 0; half < 2; half++)
        for (size_t row = 0; row < ROWS; row += 4)
            s.x[half][row * INPUTS + (row / 4 * 2 + half) * 5] = 30.0f;
    for (int half = 0; half < 2; half++) {
        memset(s.amax[half], 0, sizeof s.amax[half]);
        memset(s.square[half], 0, sizeof s.square[half]);
        measure_half(&s, half);
    }
    for (int i = 0; i < INPUTS; i++)
        one[i] = 1.0f;
    ft_smooth_choice choice = search(&s, false, -1.0, 1, factor);
    near(choice.error_without, pair_error(&s, false, one), 0.0,
         "the error without factors is that of factors 1");
    ok(!choice.smooths || choice.alpha < 0.5,
       "alpha stays small if other samples have other large columns");
}

/* ---- The formula -------------------------------------------------------------------------- */

static void test_formula(void)
{
    static subject s;
    float factor[INPUTS];
    double most = 0.0, least = HUGE_VAL, wrong = 0.0;
    make(&s, 8.0, 20.0);
    search(&s, true, 0.25, 1, factor);
    double expected[INPUTS];
    for (size_t i = 0; i < INPUTS; i++) {
        double x = fmax((double) s.amax[0][i], (double) s.amax[1][i]), w = 0.0;
        for (size_t k = 0; k < OUTPUTS; k++)
            w = fmax(w, fabs((double) s.w[k * INPUTS + i]));
        expected[i] = pow(x, 0.25) / pow(w, 0.75);
        most = fmax(most, (double) factor[i]);
        least = fmin(least, (double) factor[i]);
    }
    for (size_t i = 0; i < INPUTS; i++)
        wrong =
            fmax(wrong,
                 fabs((double) factor[i] / (double) factor[0] / (expected[i] / expected[0]) - 1.0));
    near(wrong, 0.0, 1e-6, "factors are x^alpha / w^(1 - alpha), up to one constant");
    near(most * least, 1.0, 1e-6, "the largest factor is the inverse of the smallest");

    s.fold.heads = 8;
    s.fold.kv_heads = 2;
    search(&s, true, 0.5, 1, factor);
    int different = 0;
    for (size_t i = 0; i < INPUTS; i++)
        different +=
            factor[i] !=
            factor[ft_scale_fold_row(&s.fold, i) % 8 + ft_scale_fold_row(&s.fold, i) / 8 * 32];
    is_int(different, 0, "columns of query heads that share a KV head have equal factors");

    make(&s, 0.0, 0.0);
    search(&s, true, 1.0, 1, factor);
    ok(isfinite(factor[LARGE]) && factor[LARGE] > 0.0f,
       "a column that is always zero has a positive factor");
}

int main(void)
{
    test_error();
    test_search();
    test_unseen();
    test_formula();
    return done_testing();
}
