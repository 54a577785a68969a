/*
 * suspects-t.c - the losses that ft-inspect --diff -d measures, of a range and of a matrix.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/tools/inspect/range_error.h"
#include "runtime/tools/inspect/weight_error.h"

#include "calibrate/weights/groupwise_stream.h"
#include "kernels/half.h"
#include "kernels/quant.h"
#include "runtime/mem.h"
#include "tests/lib/random.h"
#include "tests/tap/tap.h"

#include <math.h>
#include <stdlib.h>
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
    ft_weight_rescaling rescaling;
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
    m->rescaling = (ft_weight_rescaling){ .row = NULL };
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
    if (ft_weight_error_measure(&e, &m->a, &m->b, &m->rescaling, &err) != FT_OK)
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
    near(e.best_db - e.group_db, 0.0, 1e-9, "nearest rounding loses nothing");
    ok(e.sqnr_db > 35.0, "the SQNR of the matrix is %.1f dB", e.sqnr_db);
    m.scale[13] *= 4.0f;
    e = weight_error(&m);
    is_int((long long) e.worst_row, 13, "the row with the wrong scale is the worst one");
    near(e.factor, 4.0, 0.01, "the row is four times the float row");
    near(e.group_db, -9.54, 0.1, "its error is three times the row");
    m.scale[13] /= 16.0f;
    e = weight_error(&m);
    near(e.factor, 0.25, 0.01, "a scale that is too small is found as well");
    near(e.group_db, 2.5, 0.1, "its error is three quarters of the row");
}

static void test_rescaled_matrix(void)
{
    matrices m;
    float row[ROWS], col[COLS];
    matrices_init(&m);
    for (size_t i = 0; i < ROWS; i++)
        row[i] = i % 3 == 0 ? 8.0f : 0.5f;
    for (size_t i = 0; i < COLS; i++)
        col[i] = i % 2 == 0 ? 0.5f : 4.0f;
    for (size_t i = 0; i < ROWS * COLS; i++)
        m.real[i] *= row[i / COLS] / col[i % COLS];
    m.rescaling.col = col;
    ok(weight_error(&m).sqnr_db < 20.0, "a matrix whose rows were divided differs");
    m.rescaling = (ft_weight_rescaling){ .row = row };
    ok(weight_error(&m).sqnr_db < 20.0, "a matrix whose columns were multiplied differs");
    m.rescaling.col = col;
    ft_weight_error e = weight_error(&m);
    ok(e.sqnr_db > 35.0 && e.best_db - e.group_db < 1e-9,
       "with the factors of its rows and columns it loses nothing");
}

/* ---- Groups --------------------------------------------------------------------------------- */

enum { GROUP_ROWS = 32, GROUP_COLS = 192, GROUP = 32 };

/* A matrix of 4 bits, and its quantized bytes: values, then scales. */
typedef struct grouped {
    float real[GROUP_ROWS * GROUP_COLS];
    char *bytes;
    uint16_t *scale;
    ft_weight a, b;
} grouped;

static void grouped_init(grouped *g)
{
    rng random = { 17 };
    ft_groupwise_stream stream;
    ft_error err;
    size_t produced = 1, used = 0;
    rng_floats(&random, g->real, GROUP_ROWS * GROUP_COLS, 0.05);
    const ft_weight_matrix matrix = {
        .name = "w", .dtype = FT_F32, .data = g->real, .rows = GROUP_ROWS, .cols = GROUP_COLS
    };
    const ft_groupwise_options options = { .bits = 4, .group = GROUP };
    ft_groupwise_bytes sections = ft_groupwise_stream_bytes(&matrix, &options);
    size_t bytes = sections.quantized + sections.scales;
    g->bytes = ft_calloc_aligned(bytes);
    ft_status status = ft_groupwise_stream_init(&stream, &matrix, &options, 1, &err);
    for (; status == FT_OK && produced > 0; used += produced)
        status = ft_groupwise_stream_read(&stream, g->bytes + used, bytes - used, &produced, &err);
    if (status != FT_OK)
        bail_out("%s", err.text);
    ft_groupwise_stream_fini(&stream);
    g->scale = (void *) (g->bytes + sections.quantized);
    g->a = (ft_weight){
        .name = "w", .rows = GROUP_ROWS, .cols = GROUP_COLS, .dtype = FT_F32, .data = g->real
    };
    g->b = (ft_weight){ .name = "w",
                        .rows = GROUP_ROWS,
                        .cols = GROUP_COLS,
                        .dtype = FT_U4,
                        .layout = FT_PANEL32,
                        .groupwise = { .group = GROUP, .scale = g->scale },
                        .data = g->bytes };
}

static ft_weight_error group_error(const grouped *g)
{
    ft_weight_error e;
    ft_error err;
    if (ft_weight_error_measure(&e, &g->a, &g->b, &(ft_weight_rescaling){ .row = NULL }, &err) !=
        FT_OK)
        bail_out("%s", err.text);
    return e;
}

static void test_groups(void)
{
    grouped g;
    grouped_init(&g);
    ft_weight_error e = group_error(&g);
    /* scales of 11 bits: 0.05 dB at 20 dB */
    near(e.best_db - e.group_db, 0.0, 0.1, "4 bits rounded to nearest lose nothing");
    uint16_t *scale = &g.scale[2 * GROUP_ROWS + 7]; /* group by group */
    *scale = ft_f16_from_float(ft_float_from_f16(*scale) / 4.0f);
    e = group_error(&g);
    ok(e.worst_row == 7 && e.first_col == 2 * GROUP && e.end_col == 3 * GROUP && !e.is_row,
       "a group with a wrong scale is found: row %zu, columns %zu to %zu", e.worst_row, e.first_col,
       e.end_col - 1);
    near(e.factor, 0.25, 0.01, "the group is a quarter of the float group");
    ok(e.best_db - e.group_db > 12.0, "a scale divided by 4 loses %.1f dB", e.best_db - e.group_db);
    free(g.bytes);
}

/*
 * As when later columns compensate rounding errors: the integers are not the nearest ones, which
 * costs the group 7 dB.
 */
static void test_other_rounding(void)
{
    grouped g;
    rng random = { 23 };
    grouped_init(&g);
    for (size_t i = GROUP; i < 2 * GROUP; i++)
        g.real[7 * GROUP_COLS + i] += 0.012f * (float) rng_normal(&random);
    ft_weight_error e = group_error(&g);
    ok(e.best_db - e.group_db < 5.0,
       "a group that is rounded otherwise is not suspicious: it loses %.1f dB",
       e.best_db - e.group_db);
    free(g.bytes);
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
    ok(isinf(e.sqnr_db) && isinf(e.group_db) && isinf(e.best_db), "a matrix of zeros has no error");
    m.b.rows = ROWS - 1;
    is_int(ft_weight_error_measure(&e, &m.a, &m.b, &m.rescaling, &err), FT_ESHAPE,
           "matrices of different shapes are refused");
}

int main(void)
{
    test_range();
    test_odd_ranges();
    test_matrix();
    test_rescaled_matrix();
    test_groups();
    test_other_rounding();
    test_odd_matrices();
    return done_testing();
}
