/*
 * quantizer.c - see quantizer.h.
 *
 * Each step starts from the results that the device has for the step before, so that a difference
 * shows where it arises.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#ifdef HAVE_CUDA

#include "tests/cuda/quantize/quantizer.h"

#include "calibrate/weights/correction.h"
#include "calibrate/weights/gptq.h"
#include "calibrate/weights/groupwise_stream.h"
#include "runtime/mem.h"
#include "tests/cuda/quantize/problem.h"
#include "kernels/half.h"
#include "tests/lib/random.h"
#include "tests/tap/tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const ft_weight_quantizer *const calls = &ft_cuda_weight_quantizer;

static ft_quantizer *open_quantizer(void)
{
    ft_quantizer *q;
    ft_error err;
    must_succeed(calls->open(&q, test_device(), &err), &err);
    return q;
}

/* Passes if all elements of [cols, cols] are within their tolerance; reports the first that is not.
 */
typedef double tolerance_fn(const void *user, size_t row, size_t col);

static void check_matrix(const char *what, const problem *p, const double *found,
                         const double *expected, tolerance_fn *tolerance, const void *user)
{
    size_t n = p->cols, wrong = 0, first = 0;
    double worst = 0.0;
    for (size_t i = 0; i < n * n; i++) {
        double limit = tolerance(user, i / n, i % n), difference = fabs(found[i] - expected[i]);
        first = wrong == 0 ? i : first;
        wrong += difference <= limit ? 0 : 1;
        worst = limit > 0.0 && difference / limit > worst ? difference / limit : worst;
    }
    if (!ok(wrong == 0, "%s of %zu columns equal the CPU's up to rounding", what, n))
        diag("%zu elements differ, first [%zu, %zu]: %.17g, expected %.17g", wrong, first / n,
             first % n, found[first], expected[first]);
    diag("largest difference: %.3g of the tolerance", worst);
}

/* ---- Sums --------------------------------------------------------------------------------- */

/* What rounding may do to sums of products: diagonals of both factors, and multiples of a unit. */
typedef struct sums_tolerance {
    double *left, *right; /* [cols]: sums of squares */
    double relative, absolute;
} sums_tolerance;

static double tolerance_of_sums(const void *user, size_t row, size_t col)
{
    const sums_tolerance *t = user;
    return t->relative * sqrt(t->left[row] * t->right[col]) + t->absolute;
}

/*
 * Products of a sample are float32 on the device: an error of 2^-24 for each of up to 150
 * additions. Differences become float16, with an error of 2^-11. Either side rounds each sample to
 * half a unit.
 */
static void check_sums(const problem *p, const ft_quantizer *q, const double *cross)
{
    size_t n = p->cols;
    ft_exact_sums sums;
    add_samples_cpu(p, &sums, q->unit);
    double *square = ft_calloc(n, sizeof *square), *difference = ft_calloc(n, sizeof *square);
    double *magnitude = ft_calloc(n, sizeof *square), *device = copy_of(q->moments.data, n * n * 8);
    double *found_magnitude = ft_calloc(n, sizeof *square);
    double *found_square = ft_calloc(n, sizeof *square);
    ft_exact_sums_columns(&sums, magnitude, square);
    calls->columns(q, found_magnitude, found_square);
    for (size_t i = 0; i < n; i++)
        difference[i] = (double) sums.difference[i] * 0x1p-60;
    size_t different = 0;
    for (size_t i = 0; i < n; i++)
        different += (size_t) !(fabs(square[i] - found_square[i]) <= 1e-12 * square[i]) ||
                     !(fabs(magnitude[i] - found_magnitude[i]) <= 1e-12 * magnitude[i]);
    is_int((long long) different, 0,
           "sums of squares and magnitudes of %zu columns equal the CPU's up to rounding", n);
    double *moments = ft_exact_sums_take_moments(&sums);
    check_matrix("second moments", p, device, moments, tolerance_of_sums,
                 &(sums_tolerance){ square, square, 150 * 0x1p-24, SAMPLES * q->unit });
    double *expected = ft_exact_sums_take_cross(&sums);
    if (p->has_cross)
        check_matrix("cross moments", p, cross, expected, tolerance_of_sums,
                     &(sums_tolerance){ difference, square,
                                        p->dtype == FT_BF16  ? 0x1p-8
                                        : p->dtype == FT_F16 ? 0x1p-11 + 150 * 0x1p-24
                                                             : 150 * 0x1p-24,
                                        SAMPLES * q->unit });
    free(square);
    free(difference);
    free(magnitude);
    free(found_magnitude);
    free(found_square);
    free(device);
    free(moments);
    free(expected);
    ft_exact_sums_fini(&sums);
}

/* The integer sums, before they become doubles. */
static int64_t *integer_sums(const problem *p, const ft_cuda_buffer *sums)
{
    return copy_of(sums->data, p->cols * p->cols * sizeof(int64_t));
}

static void check_order_of_samples(const problem *p)
{
    ft_quantizer *q = open_quantizer();
    size_t bytes = p->cols * p->cols * sizeof(int64_t);
    int64_t *moments[2], *cross[2] = { NULL, NULL };
    for (int i = 0; i < 2; i++) {
        add_samples(p, q, i == 1);
        moments[i] = integer_sums(p, &q->moments);
        cross[i] = p->has_cross ? integer_sums(p, &q->cross) : NULL;
    }
    ok(memcmp(moments[0], moments[1], bytes) == 0 &&
           (!p->has_cross || memcmp(cross[0], cross[1], bytes) == 0),
       "sums of %zu columns do not depend on the order of the samples", p->cols);
    for (int i = 0; i < 2; i++) {
        free(moments[i]);
        free(cross[i]);
    }
    calls->close(q);
}

/* ---- Factors ------------------------------------------------------------------------------ */

/* Relative to the diagonal of U in this row, [cols]. */
static double tolerance_of_upper(const void *user, size_t row, size_t col)
{
    const double *diagonal = user;
    (void) col;
    return 1e-5 * diagonal[row];
}

/* Relative to the largest element. */
static double tolerance_of_correction(const void *user, size_t row, size_t col)
{
    (void) row;
    (void) col;
    return 1e-9 * *(const double *) user;
}

static void check_upper(const problem *p, const ft_quantizer *q, const ft_gptq *g)
{
    size_t n = p->cols, different = 0;
    uint32_t *order = copy_of(q->order.data, n * sizeof *order);
    float *upper = copy_of(q->upper.data, n * n * sizeof *upper);
    double *found = ft_calloc(n * n, sizeof *found), *expected = ft_calloc(n * n, sizeof *found);
    double *diagonal = ft_calloc(n, sizeof *diagonal);
    for (size_t i = 0; i < n; i++) {
        different += order[i] != g->order[i];
        diagonal[i] = (double) g->upper[i * g->stride + i];
        for (size_t k = 0; k < n; k++) {
            found[i * n + k] = (double) upper[i * n + k];
            expected[i * n + k] = (double) g->upper[i * g->stride + k];
        }
    }
    is_int((long long) different, 0, "the rounding order of %zu columns is the CPU's", n);
    is_int((long long) q->n_dead, (long long) g->n_dead,
           "%zu columns have as many dead ones as on "
           "the CPU",
           n);
    near(q->damping, g->damping, 1e-12 * g->damping, "the damping is the CPU's");
    check_matrix("U", p, found, expected, tolerance_of_upper, diagonal);
    free(order);
    free(upper);
    free(found);
    free(expected);
    free(diagonal);
}

/* `cross`: the sums, which become M. */
static void check_correction(const problem *p, const double *found, double *moments, double *cross)
{
    ft_error err;
    ft_input_stats input = { .name = "x", .cols = p->cols, .moments = moments, .cross = cross };
    must_succeed(ft_correction_solve(&input, 1, &err), &err);
    double largest = 0.0;
    for (size_t i = 0; i < p->cols * p->cols; i++)
        largest = fabs(cross[i]) > largest ? fabs(cross[i]) : largest;
    check_matrix("corrections", p, found, cross, tolerance_of_correction, &largest);
}

/* ---- Matrices ----------------------------------------------------------------------------- */

typedef struct matrix_case {
    size_t rows;
    ft_dtype dtype;
    ft_quantizer_options options;
    bool importance, factors;
} matrix_case;

/* The random weights of a case. */
typedef struct weights {
    ft_weight_matrix matrix;
    float *row_factor, *col_factor, *importance;
    void *data;
} weights;

static weights make_weights(const problem *p, const matrix_case *c, uint64_t seed)
{
    size_t count = c->rows * p->cols;
    rng r = { seed };
    float *x = ft_calloc(count, sizeof *x);
    weights w = { .importance = ft_calloc(p->cols, sizeof(float)),
                  .row_factor = ft_calloc(c->rows, sizeof(float)),
                  .col_factor = ft_calloc(p->cols, sizeof(float)) };
    rng_floats(&r, x, count, 0.05);
    for (size_t i = 0; i < p->cols; i++) {
        w.importance[i] = (float) rng_uniform(&r, 0.0, 3.0);
        w.col_factor[i] = (float) rng_uniform(&r, 0.5, 2.0);
    }
    for (size_t i = 0; i < c->rows; i++)
        w.row_factor[i] = (float) rng_uniform(&r, 0.5, 2.0);
    memset(x, 0, ft_min_size(p->cols, 40) * sizeof *x); /* a group of zeros */
    uint16_t *half = ft_calloc(count, sizeof *half);
    for (size_t i = 0; i < count; i++)
        half[i] = c->dtype == FT_F16 ? ft_f16_from_float(x[i]) : ft_bf16_from_float(x[i]);
    w.data = c->dtype == FT_F32 ? (void *) x : (void *) half;
    free(c->dtype == FT_F32 ? (void *) half : (void *) x);
    w.matrix = (ft_weight_matrix){ .name = "w",
                                   .dtype = c->dtype,
                                   .data = w.data,
                                   .rows = c->rows,
                                   .cols = p->cols,
                                   .row_factor = c->factors ? w.row_factor : NULL,
                                   .col_factor = c->factors ? w.col_factor : NULL };
    return w;
}

static void free_weights(weights *w)
{
    free(w->importance);
    free(w->row_factor);
    free(w->col_factor);
    free(w->data);
}

static ft_status quantize(ft_quantizer *q, const weights *w, const ft_quantizer_options *options,
                          void *bytes, ft_quantizer_error *error, ft_error *err)
{
    const ft_weight_matrix *m = &w->matrix;
    return calls->quantize(q,
                           &(ft_quantizer_matrix){ .name = m->name,
                                                   .dtype = m->dtype,
                                                   .data = m->data,
                                                   .rows = m->rows,
                                                   .cols = m->cols,
                                                   .row_factor = m->row_factor,
                                                   .col_factor = m->col_factor },
                           options, bytes, error, err);
}

static ft_groupwise_error quantize_cpu(const weights *w, const ft_groupwise_options *options,
                                       void *bytes, size_t size)
{
    ft_groupwise_stream stream;
    ft_error err;
    size_t n_read;
    must_succeed(ft_groupwise_stream_init(&stream, &w->matrix, options, 1, &err), &err);
    must_succeed(ft_groupwise_stream_read(&stream, bytes, size, &n_read, &err), &err);
    ft_groupwise_error error = stream.error;
    ft_groupwise_stream_fini(&stream);
    return error;
}

/* "33 x 96, 4 bits, group 32, ...", for sentences. */
static void describe(char out[200], const problem *p, const matrix_case *c)
{
    snprintf(out, 200, "%zu x %zu %s, %d bits, group %d%s%s%s%s%s%s, %d sweeps", c->rows, p->cols,
             ft_dtype_name(c->dtype), c->options.bits, c->options.group,
             c->options.asymmetric ? ", asymmetric" : "", c->options.clip ? ", clip" : "",
             c->importance ? ", importance" : "", c->factors ? ", factors" : "",
             p->has_dead ? ", dead columns" : "", p->has_cross ? ", corrected" : "",
             c->options.sweeps);
}

static size_t count_equal(const problem *p, const matrix_case *c, const void *found,
                          const void *expected)
{
    size_t equal = 0, first = SIZE_MAX;
    for (size_t i = 0; i < c->rows * p->cols; i++) {
        bool same = ft_panel_value(found, i / p->cols, i % p->cols, p->cols, c->options.bits) ==
                    ft_panel_value(expected, i / p->cols, i % p->cols, p->cols, c->options.bits);
        equal += same;
        first = !same && first == SIZE_MAX ? i : first;
    }
    if (first != SIZE_MAX)
        diag("first different value: [%zu, %zu], %zu equal of %zu", first / p->cols,
             first % p->cols, equal, c->rows * p->cols);
    return equal;
}

/*
 * Rounding to nearest and the choice of grids give the CPU's bytes. With GPTQ, sums of another
 * order move values that lie between two grid points.
 */
static void compare(const problem *p, const matrix_case *c, const char *found, const char *expected,
                    size_t size, const ft_quantizer_error *error,
                    const ft_groupwise_error *expected_error)
{
    char text[200];
    describe(text, p, c);
    size_t equal = count_equal(p, c, found, expected);
    size_t values = ft_panel_bytes(c->rows, p->cols, c->options.bits);
    ok(100 * equal >= 99 * c->rows * p->cols, "%s: at least 99 %% of the values are the CPU's",
       text);
    near(error->out_noise, expected_error->out_noise, 5e-3 * expected_error->out_noise,
         "%s: the output error is the CPU's up to 0.5 %%", text);
    near(error->noise, expected_error->noise, 5e-3 * expected_error->noise,
         "%s: the error of the weights is the CPU's up to 0.5 %%", text);
    near(error->signal, expected_error->signal, 1e-9 * expected_error->signal,
         "%s: the sum of squares of the weights is the CPU's up to rounding", text);
    near(error->out_signal, expected_error->out_signal, 1e-9 * expected_error->out_signal,
         "%s: the sum of squares of the outputs is the CPU's up to rounding", text);
    if (!p->has_cross && (!c->options.gptq || c->options.sweeps == 0))
        ok(memcmp(found + values, expected + values, size - values) == 0,
           "%s: scales and zero points are the CPU's", text);
    if (!p->has_cross && !c->options.gptq)
        ok(memcmp(found, expected, size) == 0, "%s: rounded to nearest, all bytes are the CPU's",
           text);
}

/* A value of a matrix as its bytes say, rounded to the dtype of the weights. */
static float dequantized_at(const problem *p, const matrix_case *c, const char *bytes, size_t row,
                            size_t col)
{
    const char *scales = bytes + ft_panel_bytes(c->rows, p->cols, c->options.bits);
    ft_groupwise params = { .group = c->options.group, .scale = (const void *) scales };
    size_t count = ft_groupwise_scale_count(&params, c->rows, p->cols);
    if (c->options.asymmetric)
        params.zero = (const uint8_t *) scales + count * sizeof *params.scale;
    size_t index = ft_groupwise_scale_index(&params, row, col, c->rows);
    int32_t value =
        (int32_t) ft_panel_value((const void *) bytes, row, col, p->cols, c->options.bits) -
        ft_groupwise_zero_point(&params, index, c->options.bits);
    float exact = ft_float_from_f16(params.scale[index]) * (float) value;
    return c->dtype == FT_F32   ? exact
           : c->dtype == FT_F16 ? ft_float_from_f16(ft_f16_from_float(exact))
                                : ft_float_from_bf16(ft_bf16_from_float(exact));
}

/* `found`: the dequantized values that the device stored next to these bytes. */
static void check_dequantized(const problem *p, const matrix_case *c, const char *bytes,
                              const void *found)
{
    size_t different = 0, first = 0;
    for (size_t i = 0; i < c->rows * p->cols; i++) {
        float expected = dequantized_at(p, c, bytes, i / p->cols, i % p->cols);
        bool same = ft_bits_from_float(ft_cuda_load_float(found, c->dtype, i)) ==
                    ft_bits_from_float(expected);
        first = !same && different == 0 ? i : first;
        different += same ? 0 : 1;
    }
    if (!is_int((long long) different, 0, "%zu x %zu %s: dequantized values are those of the bytes",
                c->rows, p->cols, ft_dtype_name(c->dtype)))
        diag("first different value: [%zu, %zu]", first / p->cols, first % p->cols);
}

static void check_case(const problem *p, ft_quantizer *q, const ft_gptq *g, const double *m,
                       const matrix_case *c, uint64_t seed)
{
    weights w = make_weights(p, c, seed);
    ft_gptq with_sweeps = *g;
    with_sweeps.sweeps = c->options.sweeps;
    with_sweeps.group_sweeps = 0; /* the device has none */
    ft_quantizer_options options = c->options;
    options.importance = c->importance ? w.importance : NULL;
    const ft_groupwise_options expected_options = {
        .bits = options.bits,
        .group = options.group,
        .asymmetric = options.asymmetric,
        .clip = options.clip,
        .importance = options.importance,
        .correction = m,
        .round = options.gptq ? ft_gptq_round : NULL,
        .user = &with_sweeps,
        .moments = g->moments,
    };
    ft_groupwise_bytes sections = ft_groupwise_stream_bytes(&w.matrix, &expected_options);
    size_t size = sections.quantized + sections.scales + sections.zeros;
    char *found = ft_calloc(1, size), *again = ft_calloc(1, size);
    char *expected = ft_calloc_aligned(size);
    ft_quantizer_error error, error_again;
    ft_error err;
    size_t dense = c->rows * p->cols * (c->dtype == FT_F32 ? 4 : 2);
    memset(found, 0xa5, size);
    options.dequantized = take_device_memory(dense);
    must_succeed(quantize(q, &w, &options, found, &error, &err), &err);
    void *dequantized = copy_of(options.dequantized, dense);
    check_dequantized(p, c, found, dequantized);
    free_device_memory(options.dequantized);
    options.dequantized = NULL;
    must_succeed(quantize(q, &w, &options, again, &error_again, &err), &err);
    ft_groupwise_error expected_error = quantize_cpu(&w, &expected_options, expected, size);
    compare(p, c, found, expected, size, &error, &expected_error);
    ok(memcmp(found, again, size) == 0 && memcmp(&error, &error_again, sizeof error) == 0,
       "%zu x %zu: a second run gives the same bytes and errors", c->rows, p->cols);
    free(dequantized);
    free(found);
    free(again);
    free(expected);
    free_weights(&w);
}

/* ---- Inputs ------------------------------------------------------------------------------- */

static double *doubles_of(const int64_t *sums, size_t count, double unit)
{
    double *values = ft_calloc(count, sizeof *values);
    for (size_t i = 0; i < count; i++)
        values[i] = (double) sums[i] * unit;
    return values;
}

/* All steps for one input, and these matrices that read it; `small`: with little work memory. */
static void check_input(problem *p, const matrix_case *cases, size_t count, bool small,
                        uint64_t seed)
{
    ft_quantizer *q = open_quantizer();
    q->product_cols = small ? 48 : q->product_cols;
    q->stripe_elements = small ? 64 * p->cols : q->stripe_elements;
    ft_gptq g;
    ft_error err;
    size_t n = p->cols;
    double *cross = NULL, *m = NULL;
    problem_init(p, seed);
    add_samples(p, q, false);
    if (p->has_cross) {
        int64_t *sums = integer_sums(p, &q->cross);
        cross = doubles_of(sums, n * n, q->unit);
        free(sums);
    }
    must_succeed(calls->factorize(q, "x", &err), &err);
    check_sums(p, q, cross);
    double *moments = copy_of(q->moments.data, n * n * sizeof *moments);
    must_succeed(ft_gptq_init(&g, moments, n, 1, "x", &err), &err);
    check_upper(p, q, &g);
    if (p->has_cross) {
        m = copy_of(q->cross.data, n * n * sizeof *m);
        check_correction(p, m, moments, cross);
    }
    for (size_t i = 0; i < count; i++)
        check_case(p, q, &g, m, &cases[i], seed + i + 1);
    check_order_of_samples(p);
    ft_gptq_fini(&g);
    free(moments);
    free(cross);
    free(m);
    calls->close(q);
    problem_fini(p);
}

/* ---- Refusals ----------------------------------------------------------------------------- */

static void check_refused_samples(void)
{
    static const struct {
        float value;
        const char *text;
    } cases[] = { { NAN, "x: column 33 is not finite on the sample data" },
                  { INFINITY, "x: column 33 is not finite on the sample data" },
                  { 1e20f, "x: column 33 has a sum of squares of 1e+40, too large" } };
    for (size_t i = 0; i < FT_COUNT(cases); i++) {
        problem p = { .cols = 96, .dtype = FT_F32 };
        ft_quantizer *q = open_quantizer();
        float rows[2 * 96] = { 0 };
        ft_error err;
        problem_init(&p, 7);
        add_samples(&p, q, false);
        rows[96 + 33] = cases[i].value;
        add_rows(&p, q, rows, 2);
        is_int(calls->factorize(q, "x", &err), FT_EFORMAT, "a sample with %g is refused",
               (double) cases[i].value);
        has(err.text, cases[i].text, "its message names the column of %g", (double) cases[i].value);
        add_samples(&p, q, false);
        is_int(calls->factorize(q, "x", &err), FT_OK, "the next input is factorized");
        calls->close(q);
        problem_fini(&p);
    }
}

static void check_refused_weights(void)
{
    static const struct {
        float value;
        const char *text;
    } cases[] = { { NAN, "w: row 34, column 7 is NaN" },
                  { -INFINITY, "w: row 34, column 7 is infinite" },
                  { 1e6f, "w: row 34, column 7 is 1e+06, expected at most 458528" } };
    problem p = { .cols = 96, .dtype = FT_F16 };
    matrix_case c = { .rows = 40, .dtype = FT_F32, .options = { .bits = 4, .group = 32 } };
    ft_quantizer *q = open_quantizer();
    ft_error err;
    ft_quantizer_error error;
    static char bytes[64 * 96];
    problem_init(&p, 8);
    add_samples(&p, q, false);
    must_succeed(calls->factorize(q, "x", &err), &err);
    weights w = make_weights(&p, &c, 9);
    for (size_t i = 0; i < FT_COUNT(cases); i++) {
        ((float *) w.data)[34 * 96 + 7] = cases[i].value;
        ((float *) w.data)[35 * 96 + 2] = NAN;
        is_int(quantize(q, &w, &c.options, bytes, &error, &err), FT_EFORMAT,
               "a matrix with %g is refused", (double) cases[i].value);
        has(err.text, cases[i].text, "its message names the first such weight, %g",
            (double) cases[i].value);
    }
    w.matrix.cols = 64;
    is_int(quantize(q, &w, &c.options, bytes, &error, &err), FT_ESHAPE,
           "a matrix with other columns than the sums is refused");
    free_weights(&w);
    calls->close(q);
    problem_fini(&p);
}

/* ---- All ---------------------------------------------------------------------------------- */

static float *factors(size_t cols)
{
    return ft_calloc(cols, sizeof(float));
}

void check_quantizer(void)
{
    enum { S = FT_QUANTIZER_SWEEPS };
    static const matrix_case nearest[] = {
        { 33, FT_F16, { .bits = 4, .group = 32 }, false, false },
        { 70, FT_F32, { .bits = 4, .group = 64, .asymmetric = true, .clip = true }, false, true },
        { 33, FT_BF16, { .bits = 8, .group = 0, .clip = true }, true, false },
        { 32, FT_F16, { .bits = 8, .group = 128, .asymmetric = true }, true, true },
    };
    static const matrix_case gptq[] = {
        { 33, FT_F16, { .bits = 4, .group = 32, .gptq = true }, false, false },
        { 70,
          FT_F32,
          { .bits = 4, .group = 64, .clip = true, .gptq = true, .sweeps = S },
          false,
          true },
        { 33,
          FT_BF16,
          { .bits = 4, .group = 0, .asymmetric = true, .gptq = true, .sweeps = S },
          false,
          false },
        { 256,
          FT_F16,
          { .bits = 4, .group = 32, .asymmetric = true, .clip = true, .gptq = true, .sweeps = S },
          true,
          false },
        { 70, FT_F16, { .bits = 8, .group = 128, .gptq = true, .sweeps = 2 }, false, false },
    };
    problem inputs[] = {
        { .cols = 96, .dtype = FT_F16 },
        { .cols = 200, .dtype = FT_F32, .has_dead = true },
        { .cols = 200, .dtype = FT_F16, .has_cross = true, .factor = factors(200) },
        { .cols = 256, .dtype = FT_BF16, .has_cross = true },
        { .cols = 640, .dtype = FT_F16, .has_cross = true, .has_dead = true },
    };
    for (size_t i = 0; i < FT_COUNT(inputs); i++) {
        problem copy = inputs[i];
        check_input(&inputs[i], gptq, FT_COUNT(gptq), i % 2 == 1, 100 * i + 1);
        copy.factor = copy.factor != NULL ? factors(copy.cols) : NULL;
        check_input(&copy, nearest, FT_COUNT(nearest), i % 2 == 0, 100 * i + 50);
    }
    check_refused_samples();
    check_refused_weights();
}

#endif
