/*
 * suspects-t.c - the losses that ft-inspect --diff -d measures, of a range and of a matrix.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/tools/inspect/range_error.h"
#include "runtime/tools/inspect/weight_error.h"

#include "kernels/half.h"
#include "kernels/quant.h"
#include "tests/lib/random.h"
#include "tests/tap/tap.h"

#include <math.h>
#include <string.h>

/* ---- Ranges --------------------------------------------------------------------------------- */

enum { SAMPLED = 20000 };

static void count_normal(ft_counts *counts)
{
    rng random = { 3 };
    if (!ft_counts_init(counts))
        bail_out("no memory for counters");
    for (int i = 0; i < SAMPLED; i++)
        ft_counts_add_value(counts, ft_bits_from_float(fabsf((float) rng_normal(&random))), 1);
    ft_counts_finalize(counts);
}

static ft_range_error range_error(ft_counts *counts, float amax)
{
    ft_range_error e;
    ft_error err;
    if (ft_range_error_measure(&e, "x", counts, amax, &err) != FT_OK)
        bail_out("%s", err.text);
    return e;
}

static void test_range(void)
{
    ft_counts counts;
    count_normal(&counts);
    ft_range_error best = range_error(&counts, range_error(&counts, 1.0f).best_amax);
    near(best.best_db - best.sqnr_db, 0.0, 1e-9, "the best range loses nothing");
    ft_range_error wide = range_error(&counts, 4.0f * best.amax);
    /* a step that is four times as large: 12.04 dB, and a little clipping less */
    near(wide.best_db - wide.sqnr_db, 12.0, 0.5, "a range that is four times too wide loses 12 dB");
    is_int((long long) (1e6 * wide.clipped), 0, "a range beyond all values clips none");
    ft_range_error narrow = range_error(&counts, best.amax / 4.0f);
    ok(narrow.best_db - narrow.sqnr_db > 20.0 && narrow.clipped > 0.1,
       "a range that is four times too narrow clips, and loses more than 20 dB");
    ok(narrow.max >= best.amax && narrow.max < 6.1f, "the largest value is reported");
    ft_counts_fini(&counts);
}

static void test_odd_ranges(void)
{
    ft_counts counts;
    ft_error err;
    ft_range_error e;
    if (!ft_counts_init(&counts))
        bail_out("no memory for counters");
    ft_counts_add_value(&counts, 0, 5);
    ft_counts_finalize(&counts);
    e = range_error(&counts, 1.0f);
    ok(isinf(e.sqnr_db) && isinf(e.best_db) && e.max <= 0.0f, "a point of zeros loses nothing");
    ft_counts_add_value(&counts, FT_COUNT_INFINITY, 1);
    is_int(ft_range_error_measure(&e, "layer.0.x", &counts, 1.0f, &err), FT_EFORMAT,
           "an infinite value is refused");
    has(err.text, "layer.0.x: 0 NaN and 1 infinities", "the error names the point and the count");
    ft_counts_fini(&counts);
}

/* ---- Matrices ------------------------------------------------------------------------------- */

enum { ROWS = 24, COLS = 64 };

typedef struct matrices {
    float real[ROWS * COLS], scale[ROWS];
    int8_t quantized[ROWS * COLS];
    ft_weight a, b;
    const float *smoothing;
} matrices;

static void matrices_init(matrices *m)
{
    rng random = { 11 };
    rng_floats(&random, m->real, ROWS * COLS, 0.05);
    for (size_t row = 0; row < ROWS; row++) {
        float amax = 0.0f;
        for (size_t i = 0; i < COLS; i++)
            amax = fmaxf(amax, fabsf(m->real[row * COLS + i]));
        m->scale[row] = ft_scale_from_amax(amax);
        for (size_t i = 0; i < COLS; i++)
            m->quantized[ft_offset(FT_COL4_4R2_8C, row, i, ROWS, COLS)] =
                ft_quantize(m->real[row * COLS + i], ft_inverse_scale(m->scale[row]));
    }
    m->smoothing = NULL;
    m->a = (ft_weight){ .name = "w", .rows = ROWS, .cols = COLS, .dtype = FT_F32, .data = m->real };
    m->b = (ft_weight){ .name = "w",
                        .rows = ROWS,
                        .cols = COLS,
                        .dtype = FT_I8,
                        .layout = FT_COL4_4R2_8C,
                        .scale = m->scale,
                        .data = m->quantized };
}

static ft_weight_error weight_error(const matrices *m)
{
    ft_weight_error e;
    ft_error err;
    if (ft_weight_error_measure(&e, &m->a, &m->b, m->smoothing, &err) != FT_OK)
        bail_out("%s", err.text);
    return e;
}

static void test_matrix(void)
{
    matrices m;
    matrices_init(&m);
    ft_weight_error e = weight_error(&m);
    ok(ft_weight_is_quantized(&m.b) && !ft_weight_is_quantized(&m.a),
       "an int8 matrix is quantized and a float one is not");
    near(e.best_db - e.row_db, 0.0, 1e-9, "nearest rounding loses nothing");
    ok(e.sqnr_db > 35.0, "the SQNR of the matrix is %.1f dB", e.sqnr_db);
    m.scale[13] *= 4.0f;
    e = weight_error(&m);
    is_int((long long) e.worst_row, 13, "the row with the wrong scale is the worst one");
    near(e.factor, 4.0, 0.01, "the row is four times the float row");
    near(e.row_db, -9.54, 0.1, "its error is three times the row");
    m.scale[13] /= 16.0f;
    e = weight_error(&m);
    near(e.factor, 0.25, 0.01, "a scale that is too small is found as well");
    near(e.row_db, 2.5, 0.1, "its error is three quarters of the row");
}

static void test_smoothed_matrix(void)
{
    matrices m;
    float smoothing[COLS];
    matrices_init(&m);
    for (size_t i = 0; i < COLS; i++)
        smoothing[i] = i % 2 == 0 ? 0.5f : 4.0f;
    for (size_t i = 0; i < ROWS * COLS; i++)
        m.real[i] *= smoothing[i % COLS];
    ok(weight_error(&m).sqnr_db < 20.0, "a matrix whose columns were divided differs");
    m.smoothing = smoothing;
    ft_weight_error e = weight_error(&m);
    ok(e.sqnr_db > 35.0 && e.best_db - e.row_db < 1e-9,
       "with the smoothing of its input it loses nothing");
}

static void test_odd_matrices(void)
{
    matrices m;
    ft_error err;
    ft_weight_error e;
    matrices_init(&m);
    memset(m.real, 0, sizeof m.real);
    memset(m.quantized, 0, sizeof m.quantized);
    e = weight_error(&m);
    ok(isinf(e.sqnr_db) && isinf(e.row_db) && isinf(e.best_db), "a matrix of zeros has no error");
    m.b.rows = ROWS - 1;
    is_int(ft_weight_error_measure(&e, &m.a, &m.b, NULL, &err), FT_ESHAPE,
           "matrices of different shapes are refused");
}

int main(void)
{
    test_range();
    test_odd_ranges();
    test_matrix();
    test_smoothed_matrix();
    test_odd_matrices();
    return done_testing();
}
