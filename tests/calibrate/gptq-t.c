/*
 * gptq-t.c - GPTQ: against a reference implementation, its properties and its edge cases.
 *
 * The reference follows the paper's derivation in double precision: it keeps H^-1 and eliminates
 * each column that it has rounded, so it uses neither a Cholesky factor nor blocks of columns.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/weights/groupwise_stream.h"
#include "calibrate/weights/gptq.h"
#include "kernels/half.h"
#include "runtime/mem.h"
#include "tests/lib/random.h"
#include "tests/tap/tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Problems ----------------------------------------------------------------------------- */

/* A panel with its grids, and the second moments of its inputs. */
typedef struct problem {
    ft_groupwise_options options;
    ft_groupwise_panel panel;
    float *original; /* its weights */
    double *moments;
} problem;

/* Moments of correlated inputs of very different magnitudes. */
static double *random_moments(uint64_t seed, size_t cols)
{
    size_t rows = 3 * cols;
    double *x = ft_calloc(rows * cols, sizeof *x),
           *moments = ft_calloc(cols * cols, sizeof *moments);
    rng r = { seed };
    for (size_t row = 0; row < rows; row++) {
        double shared = rng_normal(&r);
        for (size_t col = 0; col < cols; col++)
            x[row * cols + col] =
                (rng_normal(&r) + (col % 3 != 0 ? 2.0 * shared : 0.0)) * (col % 7 == 1 ? 8.0 : 1.0);
    }
    for (size_t i = 0; i < cols; i++)
        for (size_t k = 0; k < cols; k++)
            for (size_t row = 0; row < rows; row++)
                moments[i * cols + k] += x[row * cols + i] * x[row * cols + k];
    free(x);
    return moments;
}

static double *diagonal(size_t cols, double value)
{
    double *moments = ft_calloc(cols * cols, sizeof *moments);
    for (size_t i = 0; i < cols; i++)
        moments[i * cols + i] = value;
    return moments;
}

static problem make(uint64_t seed, size_t rows, size_t cols, const ft_groupwise_options *options,
                    double *moments)
{
    problem p = { .options = *options,
                  .panel = { .rows = rows, .cols = cols },
                  .moments = moments };
    size_t elements = rows * cols;
    rng r = { seed };
    p.original = ft_calloc(elements, sizeof(float));
    p.panel.weight = ft_calloc(elements, sizeof(float));
    p.panel.scratch = ft_calloc(2 * FT_PANEL_ROWS * cols, sizeof(double));
    p.panel.q = ft_calloc(elements, 1);
    p.panel.grid =
        ft_calloc(rows * ft_groupwise_options_groups(options, cols), sizeof(ft_groupwise_grid));
    rng_floats(&r, p.original, elements, 0.05);
    memcpy(p.panel.weight, p.original, elements * sizeof(float));
    memset(p.panel.q, 0xa5, elements);
    memset(p.panel.scratch, 0xff, 2 * FT_PANEL_ROWS * cols * sizeof(double)); /* NaN */
    return p;
}

static void release(problem *p)
{
    free(p->original);
    free(p->panel.weight);
    free(p->panel.scratch);
    free(p->panel.q);
    free(p->panel.grid);
    free(p->moments);
}

enum { NEAREST = -2, DEFAULT = -1, FORMULA = 0 };

/*
 * Quantizes by round-to-nearest, by GPTQ as the toolchain does, or with `sweeps` sweeps over single
 * values and none over groups.
 */
static void solve(problem *p, int sweeps)
{
    ft_gptq g = { 0 };
    ft_error err;
    if (sweeps != NEAREST && ft_gptq_init(&g, p->moments, p->panel.cols, 1, "x", &err) != FT_OK)
        bail_out("%s", err.text);
    g.sweeps = sweeps == DEFAULT ? g.sweeps : sweeps;
    g.group_sweeps = sweeps == DEFAULT ? g.group_sweeps : 0;
    p->options.round = sweeps != NEAREST ? ft_gptq_round : NULL;
    p->options.user = &g;
    ft_groupwise_quantize(&p->panel, &p->options);
    ft_gptq_fini(&g);
}

static const ft_groupwise_grid *grid_of(const problem *p, size_t row, size_t col)
{
    size_t groups = ft_groupwise_options_groups(&p->options, p->panel.cols);
    size_t group = p->options.group == 0 ? 0 : col / (size_t) p->options.group;
    return &p->panel.grid[row * groups + group];
}

static double lost(const problem *p, const uint8_t *code, size_t row, size_t col)
{
    size_t at = row * p->panel.cols + col;
    return (double) p->original[at] -
           (double) ft_groupwise_dequantize(grid_of(p, row, col), code[at]);
}

/* The output error of a quantized row: (w - q) H (w - q)^T. */
static double cost_of_row(const problem *p, const uint8_t *code, size_t row)
{
    size_t cols = p->panel.cols;
    double sum = 0.0;
    for (size_t i = 0; i < cols; i++)
        for (size_t k = 0; k < cols; k++)
            sum += lost(p, code, row, i) * p->moments[i * cols + k] * lost(p, code, row, k);
    return sum;
}

static double cost_of(const problem *p)
{
    double sum = 0.0;
    for (size_t row = 0; row < p->panel.rows; row++)
        sum += cost_of_row(p, p->panel.q, row);
    return sum;
}

/* ---- The reference ------------------------------------------------------------------------ */

/* Inverts a positive definite matrix by elimination. */
static void invert(double *a, size_t n)
{
    for (size_t pivot = 0; pivot < n; pivot++) {
        double scale = 1.0 / a[pivot * n + pivot];
        a[pivot * n + pivot] = 1.0;
        for (size_t k = 0; k < n; k++)
            a[pivot * n + k] *= scale;
        for (size_t row = 0; row < n; row++) {
            double factor = a[row * n + pivot];
            if (row == pivot)
                continue;
            a[row * n + pivot] = 0.0;
            for (size_t k = 0; k < n; k++)
                a[row * n + k] -= factor * a[pivot * n + k];
        }
    }
}

/* The remaining column with the largest input; the first one of equals. */
static size_t next_column(const double *moments, const bool *done, size_t cols)
{
    size_t best = cols;
    for (size_t i = 0; i < cols; i++)
        if (!done[i] && (best == cols || moments[i * cols + i] > moments[best * cols + best]))
            best = i;
    return best;
}

/* Rounds one row with the inverse of the damped H, which it overwrites. */
static void oracle_row(uint8_t *code, const problem *p, size_t row, double *inverse)
{
    size_t n = p->panel.cols;
    double *w = ft_calloc(n, sizeof *w);
    bool *done = ft_calloc(n, sizeof *done);
    for (size_t i = 0; i < n; i++)
        w[i] = (double) p->original[row * n + i];
    for (size_t step = 0; step < n; step++) {
        size_t j = next_column(p->moments, done, n);
        const ft_groupwise_grid *grid = grid_of(p, row, j);
        code[row * n + j] = ft_groupwise_round_nearest(grid, (float) w[j]);
        double pivot = inverse[j * n + j];
        double error = (w[j] - (double) ft_groupwise_dequantize(grid, code[row * n + j])) / pivot;
        done[j] = true;
        for (size_t i = 0; i < n; i++)
            w[i] -= done[i] ? 0.0 : error * inverse[j * n + i];
        for (size_t i = 0; i < n; i++) {
            double factor = inverse[i * n + j] / pivot;
            for (size_t k = 0; k < n && !done[i]; k++)
                inverse[i * n + k] -= factor * inverse[j * n + k];
        }
    }
    free(w);
    free(done);
}

static uint8_t *oracle(const problem *p)
{
    size_t n = p->panel.cols;
    double *damped = ft_calloc(n * n, sizeof *damped), *inverse = ft_calloc(n * n, sizeof *inverse);
    double mean = 0.0;
    uint8_t *code = ft_calloc(p->panel.rows * n, 1);
    for (size_t i = 0; i < n; i++)
        mean += p->moments[i * n + i] / (double) n;
    memcpy(damped, p->moments, n * n * sizeof *damped);
    for (size_t i = 0; i < n; i++)
        damped[i * n + i] += 0.01 * mean;
    invert(damped, n);
    for (size_t row = 0; row < p->panel.rows; row++) {
        memcpy(inverse, damped, n * n * sizeof *inverse);
        oracle_row(code, p, row, inverse);
    }
    free(damped);
    free(inverse);
    return code;
}

/*
 * A weight halfway between two grid values may round differently in float and in double, which
 * changes the rest of its row: this happens to one random row in hundreds.  Such a row has about
 * the same error on average, and no single one has a much larger error.
 */
static void test_formula(size_t rows, size_t cols, const ft_groupwise_options *options)
{
    problem p = make(cols, rows, cols, options, random_moments(cols + 1, cols));
    solve(&p, FORMULA);
    uint8_t *expected = oracle(&p);
    size_t different = 0;
    double ratio = 0.0;
    for (size_t row = 0; row < rows; row++) {
        double ours = cost_of_row(&p, p.panel.q, row), theirs = cost_of_row(&p, expected, row);
        different += memcmp(p.panel.q + row * cols, expected + row * cols, cols) != 0;
        ratio = fmax(ratio, ours / theirs);
    }
    ok(different * 10 <= rows,
       "%d bits, %zu x %zu, group size %d: GPTQ matches the reference solution except in %zu rows",
       options->bits, rows, cols, options->group, different);
    ok(ratio < 1.2, "GPTQ rows that differ from the reference cost at most %.4f times as much",
       ratio);
    free(expected);
    release(&p);
}

/* ---- Properties --------------------------------------------------------------------------- */

/* For uncorrelated inputs there is no error to compensate. */
static void test_identity(size_t rows, size_t cols, const ft_groupwise_options *options,
                          double value)
{
    problem p = make(7 * cols, rows, cols, options, diagonal(cols, value));
    problem q = make(7 * cols, rows, cols, options, diagonal(cols, value));
    solve(&p, FORMULA);
    solve(&q, NEAREST);
    ok(memcmp(p.panel.q, q.panel.q, rows * cols) == 0,
       "%d bits, %zu x %zu, group size %d%s: GPTQ with H = %g I equals round-to-nearest",
       options->bits, rows, cols, options->group, options->asymmetric ? ", asymmetric" : "", value);
    release(&p);
    release(&q);
}

static void test_gain(const ft_groupwise_options *options)
{
    enum { ROWS = 32, COLS = 160 };
    problem p = make(3, ROWS, COLS, options, random_moments(4, COLS));
    problem q = make(3, ROWS, COLS, options, random_moments(4, COLS));
    solve(&p, DEFAULT);
    solve(&q, NEAREST);
    double ours = cost_of(&p), nearest = cost_of(&q);
    ok(ours < 0.7 * nearest,
       "%d bits: GPTQ reduces the output error to %.3f of the round-to-nearest error",
       options->bits, ours / nearest);
    int zeros = 0, scales = 0;
    for (size_t i = 0; i < ROWS * ft_groupwise_options_groups(options, COLS); i++) {
        const ft_groupwise_grid *grid = &p.panel.grid[i], *before = &q.panel.grid[i];
        float f16 = ft_float_from_f16(ft_f16_from_float(grid->scale));
        zeros += grid->zero != before->zero;
        scales += f16 < grid->scale || f16 > grid->scale || grid->scale < 0.5f * before->scale ||
                  grid->scale > 2.0f * before->scale;
    }
    is_int(zeros, 0, "GPTQ uses the zero points of round-to-nearest");
    is_int(scales, 0, "GPTQ moves scales to other float16 values, by a factor of 2 at most");
    release(&p);
    release(&q);
}

/* Each sweep reduces the error of the damped H, which has 1 % of its mean diagonal added. */
static void test_sweeps(const ft_groupwise_options *options)
{
    enum { ROWS = 20, COLS = 160, MAX_SIZE = 6 };
    double error[MAX_SIZE];
    int raised = 0;
    for (int sweeps = 0; sweeps < MAX_SIZE; sweeps++) {
        problem p = make(23, ROWS, COLS, options, random_moments(24, COLS));
        solve(&p, sweeps);
        double mean = 0.0;
        for (size_t i = 0; i < COLS; i++)
            mean += p.moments[i * COLS + i] / COLS;
        for (size_t i = 0; i < COLS; i++)
            p.moments[i * COLS + i] += 0.01 * mean;
        error[sweeps] = cost_of(&p);
        raised += sweeps > 0 && error[sweeps] > error[sweeps - 1] * (1.0 + 1e-12);
        release(&p);
    }
    is_int(raised, 0, "%d bits: coordinate-descent sweeps never increase the error", options->bits);
    ok(error[MAX_SIZE - 1] < error[0],
       "coordinate-descent sweeps reduce the error to %.3f of its initial value",
       error[MAX_SIZE - 1] / error[0]);
}

/* Dead inputs: channels that are always 0. */
static void test_dead(void)
{
    enum { ROWS = 5, COLS = 70 };
    const ft_groupwise_options options = { .bits = 4, .group = 32, .asymmetric = true };
    problem p = make(11, ROWS, COLS, &options, random_moments(12, COLS));
    problem q = make(11, ROWS, COLS, &options, diagonal(COLS, 0.0));
    for (size_t i = 0; i < COLS; i++)
        for (size_t k = 0; k < COLS; k++)
            if (i % 9 == 4 || k % 9 == 4)
                p.moments[i * COLS + k] = 0.0;
    solve(&p, DEFAULT);
    int wrong = 0, zeros = 0;
    for (size_t i = 0; i < ROWS * COLS; i++) {
        bool is_zero = p.panel.q[i] == grid_of(&p, i / COLS, i % COLS)->zero;
        wrong += i % COLS % 9 == 4 && !is_zero;
        zeros += is_zero;
    }
    is_int(wrong, 0, "GPTQ quantizes the weights of dead input channels to 0");
    ok(zeros < ROWS * COLS / 2, "GPTQ keeps the weights of live input channels");
    solve(&q, DEFAULT);
    wrong = 0;
    for (size_t i = 0; i < ROWS * COLS; i++)
        wrong += q.panel.q[i] != grid_of(&q, i / COLS, i % COLS)->zero;
    is_int(wrong, 0, "GPTQ quantizes every weight to 0 when all input channels are dead");
    release(&p);
    release(&q);
}

static void is_refused(double *moments, size_t cols, const char *what)
{
    ft_gptq g;
    ft_error err = { .text = "" };
    is_int(ft_gptq_init(&g, moments, cols, 2, "layer.0.x", &err), FT_EFORMAT,
           "ft_gptq_init() refuses an invalid Hessian: %s", what);
    is_str(err.text, "layer.0.x: the sums of its inputs are not those of a square",
           "the ft_gptq_init() error names the matrix");
    ft_gptq_fini(&g);
    free(moments);
}

static void test_refusals(void)
{
    double *moments = diagonal(40, 1.0);
    moments[1] = moments[40] = 5.0;
    is_refused(moments, 40, "it is not positive semidefinite");
    moments = diagonal(40, 1.0);
    moments[3] = moments[120] = (double) NAN;
    is_refused(moments, 40, "it contains NaN");
}

/* ---- Whole matrices ----------------------------------------------------------------------- */

typedef struct written {
    unsigned char *bytes;
    size_t size;
    ft_groupwise_error error;
} written;

static written write(const ft_weight_matrix *w, const ft_groupwise_options *options, int threads)
{
    ft_groupwise_bytes part = ft_groupwise_stream_bytes(w, options);
    written out = { .size = part.quantized + part.scales + part.zeros };
    ft_groupwise_stream stream;
    ft_error err;
    size_t got;
    out.bytes = ft_calloc(out.size, 1);
    if (ft_groupwise_stream_init(&stream, w, options, threads, &err) != FT_OK ||
        ft_groupwise_stream_read(&stream, out.bytes, out.size, &got, &err) != FT_OK)
        bail_out("%s", err.text);
    out.error = stream.error;
    ft_groupwise_stream_fini(&stream);
    return out;
}

/* The output error that a stream reports, against direct sums. */
static void test_stream(void)
{
    enum { ROWS = 70, COLS = 150 };
    const ft_groupwise_options plain = { .bits = 4, .group = 64 };
    float *weight = ft_calloc(ROWS * COLS, sizeof *weight);
    rng r = { 5 };
    rng_floats(&r, weight, ROWS * COLS, 0.1);
    ft_weight_matrix w = {
        .name = "w", .dtype = FT_F32, .data = weight, .rows = ROWS, .cols = COLS
    };
    double *moments = random_moments(6, COLS), noise = 0.0;
    ft_gptq g;
    ft_error err;
    if (ft_gptq_init(&g, moments, COLS, 1, "x", &err) != FT_OK)
        bail_out("%s", err.text);
    ft_groupwise_options options = plain;
    options.round = ft_gptq_round;
    options.user = &g;
    options.moments = moments;
    written one = write(&w, &options, 1), three = write(&w, &options, 3);
    ok(memcmp(one.bytes, three.bytes, one.size) == 0,
       "GPTQ with three threads writes the bytes of one thread");
    ok(one.error.out_noise == three.error.out_noise,
       "GPTQ with three threads reports the error of one thread");
    for (size_t first = 0; first < ROWS; first += FT_PANEL_ROWS) {
        size_t rows = ft_min_size(FT_PANEL_ROWS, ROWS - first);
        problem p = make(1, rows, COLS, &plain, random_moments(6, COLS));
        memcpy(p.original, weight + first * COLS, rows * COLS * sizeof(float));
        memcpy(p.panel.weight, p.original, rows * COLS * sizeof(float));
        solve(&p, DEFAULT);
        noise += cost_of(&p);
        release(&p);
    }
    near(one.error.out_noise / noise, 1.0, 1e-9,
         "the reported output error is the sum over all panels");
    options.round = NULL;
    written nearest = write(&w, &options, 2);
    ok(nearest.error.out_noise > one.error.out_noise && nearest.error.noise < one.error.noise,
       "GPTQ lowers the output error and raises the weight error");
    near(nearest.error.out_signal / one.error.out_signal, 1.0, 1e-9,
         "the reported output signal does not depend on the rounding method");
    free(one.bytes);
    free(three.bytes);
    free(nearest.bytes);
    ft_gptq_fini(&g);
    free(moments);
    free(weight);
}

int main(void)
{
    static const int32_t groups[] = { 32, 128, 0 };
    for (int i = 0; i < 12; i++) {
        ft_groupwise_options options = {
            .bits = i & 1 ? 8 : 4, .asymmetric = i & 2, .group = groups[i >> 2], .clip = i == 5
        };
        test_identity(32, 300, &options, 1.0);
        test_identity(9, 33, &options, 0.37);
        test_formula(32, i & 1 ? 96 : 150, &options);
    }
    test_identity(1, 1, &(ft_groupwise_options){ .bits = 4, .group = 32 }, 3.0);
    test_gain(&(ft_groupwise_options){ .bits = 4, .group = 32 });
    test_gain(&(ft_groupwise_options){ .bits = 8, .group = 0, .asymmetric = true });
    test_sweeps(&(ft_groupwise_options){ .bits = 4, .group = 32 });
    test_sweeps(&(ft_groupwise_options){ .bits = 4, .group = 64, .asymmetric = true });
    test_sweeps(&(ft_groupwise_options){ .bits = 8, .group = 0 });
    test_dead();
    test_refusals();
    test_stream();
    return done_testing();
}
