/*
 * group_descent-t.c - coordinate descent over whole groups: errors only fall, also where descent
 * over single values and scales has ended, and the gradient stays that of the values.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/weights/group_descent.h"
#include "runtime/mem.h"
#include "tests/lib/random.h"
#include "tests/tap/tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 12 };

typedef struct problem {
    ft_groupwise_options options;
    ft_groupwise_panel panel;
    ft_gptq gptq;
    float *weight; /* the panel's, which rounding may overwrite */
    double *moments, *gradient;
} problem;

static bool is_dead(size_t col)
{
    return col % 9 == 4;
}

/* Moments of correlated inputs of different magnitudes, some of which are always 0. */
static double *random_moments(rng *r, size_t cols)
{
    size_t rows = 3 * cols;
    double *x = ft_calloc(rows * cols, sizeof *x),
           *moments = ft_calloc(cols * cols, sizeof *moments);
    for (size_t row = 0; row < rows; row++) {
        double shared = rng_normal(r);
        for (size_t col = 0; col < cols; col++)
            x[row * cols + col] =
                is_dead(col) ? 0.0 : (rng_normal(r) + 2.0 * shared) * (col % 7 == 1 ? 8.0 : 1.0);
    }
    for (size_t i = 0; i < cols; i++)
        for (size_t k = 0; k < cols; k++)
            for (size_t row = 0; row < rows; row++)
                moments[i * cols + k] += x[row * cols + i] * x[row * cols + k];
    free(x);
    return moments;
}

static double lost(const problem *p, size_t row, size_t col)
{
    size_t cols = p->panel.cols, groups = ft_groupwise_options_groups(&p->options, cols);
    size_t group = p->options.group == 0 ? 0 : col / (size_t) p->options.group;
    return (double) p->weight[row * cols + col] -
           (double) ft_groupwise_dequantize(&p->panel.grid[row * groups + group],
                                            p->panel.q[row * cols + col]);
}

/* (w - q) H of one value, and the error of a panel, both with the damped H. */
static double gradient_at(const problem *p, size_t row, size_t col)
{
    double sum = p->gptq.damping * lost(p, row, col);
    for (size_t i = 0; i < p->panel.cols; i++)
        sum += lost(p, row, i) * p->moments[i * p->panel.cols + col];
    return sum;
}

static double error_of(const problem *p)
{
    double sum = 0.0;
    for (size_t row = 0; row < ROWS; row++)
        for (size_t col = 0; col < p->panel.cols; col++)
            sum += lost(p, row, col) * gradient_at(p, row, col);
    return sum;
}

/* A panel that GPTQ and descent over single values and scales have quantized. */
static problem make(uint64_t seed, size_t cols, const ft_groupwise_options *options)
{
    rng r = { seed };
    problem p = { .options = *options, .panel = { .rows = ROWS, .cols = cols } };
    ft_error err;
    size_t elements = ROWS * cols;
    p.weight = ft_calloc(elements, sizeof(float));
    p.gradient = ft_calloc(elements, sizeof(double));
    p.panel.weight = ft_calloc(elements, sizeof(float));
    p.panel.scratch = ft_calloc(2 * FT_PANEL_ROWS * cols, sizeof(double));
    p.panel.q = ft_calloc(elements, 1);
    p.panel.grid =
        ft_calloc(ROWS * ft_groupwise_options_groups(options, cols), sizeof(ft_groupwise_grid));
    p.moments = random_moments(&r, cols);
    rng_floats(&r, p.weight, elements, 0.05);
    memcpy(p.panel.weight, p.weight, elements * sizeof(float));
    if (ft_gptq_init(&p.gptq, p.moments, cols, 1, "x", &err) != FT_OK)
        bail_out("%s", err.text);
    p.gptq.group_sweeps = 0;
    p.options.round = ft_gptq_round;
    p.options.user = &p.gptq;
    ft_groupwise_quantize(&p.panel, &p.options);
    for (size_t i = 0; i < elements; i++) /* of dead columns it is not used */
        p.gradient[i] = is_dead(i % cols) ? 0.0 : gradient_at(&p, i / cols, i % cols);
    return p;
}

static void release(problem *p)
{
    free(p->weight);
    free(p->gradient);
    free(p->panel.weight);
    free(p->panel.scratch);
    free(p->panel.q);
    free(p->panel.grid);
    free(p->moments);
    ft_gptq_fini(&p->gptq);
}

/* Relative to the largest: sums of hundreds of doubles in another order. */
static double gradient_difference(const problem *p)
{
    double largest = 0.0, difference = 0.0;
    for (size_t i = 0; i < ROWS * p->panel.cols; i++) {
        size_t row = i / p->panel.cols, col = i % p->panel.cols;
        if (is_dead(col))
            continue;
        double expected = gradient_at(p, row, col);
        largest = fmax(largest, fabs(expected));
        difference = fmax(difference, fabs(p->gradient[i] - expected));
    }
    return difference / largest;
}

static int count_nonzero_dead(const problem *p)
{
    int count = 0;
    size_t cols = p->panel.cols, groups = ft_groupwise_options_groups(&p->options, cols);
    for (size_t i = 0; i < ROWS * cols; i++) {
        size_t group = p->options.group == 0 ? 0 : i % cols / (size_t) p->options.group;
        count +=
            is_dead(i % cols) && p->panel.q[i] != p->panel.grid[i / cols * groups + group].zero;
    }
    return count;
}

static void test_descent(size_t cols, const ft_groupwise_options *options, double expected)
{
    problem p = make(cols, cols, options);
    char text[100];
    snprintf(text, sizeof text, "%d bits, %zu columns in groups of %d%s", options->bits, cols,
             options->group, options->asymmetric ? ", asymmetric" : "");
    double first = error_of(&p), last = first;
    int raised = 0, sweeps = 0;
    for (bool changed = true; changed && sweeps < 20; sweeps++) {
        changed = ft_group_descent_sweep(&p.gptq, &p.panel, &p.options, p.gradient);
        double error = error_of(&p);
        raised += error > last * (1.0 + 1e-12);
        last = error;
    }
    is_int(raised, 0, "%s: no sweep over groups increases the error", text);
    ok(sweeps < 20, "%s: sweeps over groups end, here after %d", text, sweeps);
    ok(last < expected * first,
       "%s: groups reduce the error that single values leave, to %.3f of it", text, last / first);
    ok(gradient_difference(&p) < 1e-9, "%s: the gradient stays that of the values", text);
    is_int(count_nonzero_dead(&p), 0, "%s: values of dead columns remain 0", text);
    release(&p);
}

/* Two values whose errors nearly cancel: each alone is at its best, but not both. */
static void test_pair(void)
{
    double moments[4] = { 1.0, 0.999, 0.999, 1.0 }, gradient[2];
    float weight[2] = { 0.49f, 0.49f };
    uint8_t q[2] = { 9, 8 };
    ft_groupwise_grid grid = { .scale = 1.0f, .inverse = 1.0f, .zero = 8, .max_q = 15 };
    ft_groupwise_panel panel = { .rows = 1, .cols = 2, .weight = weight, .grid = &grid, .q = q };
    ft_groupwise_options options = { .bits = 4, .group = 32 };
    ft_gptq gptq = { .cols = 2, .moments = moments };
    weight[0] = 3.6f; /* q is (1, 0) and must become (4, -3) or better: the sum counts */
    weight[1] = -2.6f;
    for (int i = 0; i < 2; i++)
        gradient[i] = (3.6 - 1.0) * moments[i] + (-2.6 - 0.0) * moments[2 + i];
    bool changed = ft_group_descent_sweep(&gptq, &panel, &options, gradient);
    double x = 3.6 - (double) grid.scale * (q[0] - 8), y = -2.6 - (double) grid.scale * (q[1] - 8);
    double before = 2.6 * 2.6 * 2.0 * (1.0 - 0.999), after = x * x + y * y + 2.0 * 0.999 * x * y;
    ok(changed && after < 0.1 * before,
       "two values of a group move together where neither improves alone: error %.5f, before %.5f",
       after, before);
}

static void test_wide(void)
{
    const ft_groupwise_options options = { .bits = 4, .group = 0, .asymmetric = true };
    problem p = make(5, FT_GROUP_DESCENT_COLS + 1, &options);
    double before = error_of(&p);
    ok(!ft_group_descent_sweep(&p.gptq, &p.panel, &p.options, p.gradient) &&
           error_of(&p) <= before && error_of(&p) >= before,
       "groups of more than %d columns stay as they are", FT_GROUP_DESCENT_COLS);
    release(&p);
}

int main(void)
{
    test_pair();
    test_descent(96, &(ft_groupwise_options){ .bits = 4, .group = 32 }, 0.99);
    test_descent(96, &(ft_groupwise_options){ .bits = 4, .group = 32, .asymmetric = true }, 0.99);
    test_descent(150, &(ft_groupwise_options){ .bits = 4, .group = 64, .clip = true }, 0.99);
    test_descent(100, &(ft_groupwise_options){ .bits = 4, .group = 128, .asymmetric = true }, 0.99);
    test_descent(70, &(ft_groupwise_options){ .bits = 8, .group = 32 }, 1.0);
    test_wide();
    return done_testing();
}
