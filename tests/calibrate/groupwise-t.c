/*
 * groupwise-t.c - group-wise quantization to 4 and 8 bits: grids, quantized values, bytes, errors.
 *
 * The oracle is written for readability: it tries every quantized value in double precision.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/weights/groupwise_stream.h"
#include "kernels/half.h"
#include "runtime/mem.h"
#include "tests/lib/random.h"
#include "tests/tap/tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Matrices ----------------------------------------------------------------------------- */

static float *random_floats(uint64_t seed, size_t n)
{
    float *x = malloc(n * sizeof *x);
    rng r = { seed };
    rng_floats(&r, x, n, 0.05);
    for (size_t i = 0; i < n; i += 37) /* outliers make ranges differ */
        x[i] *= 4.0f;
    return x;
}

static ft_weight_matrix floats_as_weights(const float *x, size_t rows, size_t cols)
{
    return (
        ft_weight_matrix){ .name = "w", .dtype = FT_F32, .data = x, .rows = rows, .cols = cols };
}

/* The contents of a stream. */
typedef struct packed {
    unsigned char *bytes;
    ft_groupwise_bytes part;
    ft_groupwise groupwise;
    ft_groupwise_error error;
} packed;

static packed pack_by(const ft_weight_matrix *w, const ft_groupwise_options *options, int threads,
                      size_t piece)
{
    packed p = { .part = ft_groupwise_stream_bytes(w, options), .groupwise.group = options->group };
    size_t total = p.part.quantized + p.part.scales + p.part.zeros, done = 0, got = 1;
    ft_groupwise_stream stream;
    ft_error err;
    p.bytes = ft_calloc_aligned(total + piece);
    memset(p.bytes, 0xa5, total + piece);
    if (ft_groupwise_stream_init(&stream, w, options, threads, &err) != FT_OK)
        bail_out("%s", err.text);
    while (done < total && got > 0) {
        if (ft_groupwise_stream_read(&stream, p.bytes + done, piece, &got, &err) != FT_OK)
            bail_out("%s", err.text);
        done += got;
    }
    if (done != total || stream.allocation != NULL ||
        ft_groupwise_stream_read(&stream, p.bytes + done, 1, &got, &err) != FT_OK || got != 0)
        bail_out("the stream has %zu bytes of %zu, or keeps its memory", done, total);
    p.error = stream.error;
    p.groupwise.scale = (const uint16_t *) (const void *) (p.bytes + p.part.quantized);
    p.groupwise.zero = options->asymmetric ? p.bytes + p.part.quantized + p.part.scales : NULL;
    ft_groupwise_stream_fini(&stream);
    return p;
}

static packed pack(const ft_weight_matrix *w, const ft_groupwise_options *options)
{
    return pack_by(w, options, 1, 4096);
}

static double real_of(const packed *p, size_t row, size_t col, const ft_weight_matrix *w, int bits)
{
    const uint32_t *quantized = (const uint32_t *) (const void *) p->bytes;
    size_t at = ft_groupwise_scale_index(&p->groupwise, row, col, w->rows);
    return (double) ft_float_from_f16(p->groupwise.scale[at]) *
           ((int32_t) ft_panel_value(quantized, row, col, w->cols, bits) -
            ft_groupwise_zero_point(&p->groupwise, at, bits));
}

/* ---- The oracle --------------------------------------------------------------------------- */

/* The smallest error of any quantized value. */
static double min_error(double weight, double scale, int zero, int bits)
{
    double least = (double) INFINITY;
    for (int code = 0; code < 1 << bits; code++)
        least = fmin(least, fabs(weight - scale * (code - zero)));
    return least;
}

/*
 * Checks a whole matrix.  Rounding in float may pick the farther of two values whose distances
 * differ only by rounding: an error may exceed the smallest one by 1e-5 of a scale.  Without
 * clipping an error is at most half a scale plus the shift of the range ends by rounding the scale
 * to float16: 2^-11 of 7 or 127 scales, 0.07.  For asymmetric grids rounding the zero point shifts
 * them by another half scale.
 */
static void test_matrix(size_t rows, size_t cols, const ft_groupwise_options *options)
{
    float *x = random_floats(rows * 1000 + cols, rows * cols);
    ft_weight_matrix w = floats_as_weights(x, rows, cols);
    packed p = pack(&w, options);
    size_t count = ft_groupwise_scale_count(&p.groupwise, rows, cols);
    int far = 0, clipped = 0, pads = 0;
    double signal = 0.0, noise = 0.0, most = options->asymmetric ? 1.07 : 0.57;
    for (size_t i = 0; i < rows * cols; i++) {
        size_t at = ft_groupwise_scale_index(&p.groupwise, i / cols, i % cols, rows);
        double scale = (double) ft_float_from_f16(p.groupwise.scale[at]), weight = (double) x[i];
        double error = fabs(weight - real_of(&p, i / cols, i % cols, &w, options->bits));
        int zero = ft_groupwise_zero_point(&p.groupwise, at, options->bits);
        far += !(error <= min_error(weight, scale, zero, options->bits) + 1e-5 * scale);
        clipped += !(error <= most * scale);
        signal += weight * weight;
        noise += error * error;
    }
    for (size_t at = 0; at < count; at++) {
        bool pad = at % ft_layout_rows(FT_PANEL32, rows) >= rows;
        pads +=
            pad && (p.groupwise.scale[at] != 0 || (p.groupwise.zero && p.groupwise.zero[at] != 0));
        pads += !pad && p.groupwise.scale[at] == 0;
    }
    const char *what = options->asymmetric ? "asymmetric" : "symmetric";
    is_int(far, 0,
           "%d bits, %s, %zu x %zu, group size %d: every quantized value is the nearest one",
           options->bits, what, rows, cols, options->group);
    if (!options->clip)
        is_int(clipped, 0, "group-wise quantization without clipping search clips no weight");
    is_int(pads, 0, "every row has a nonzero scale and padding rows have none");
    /* 1e-9: the order of the sums differs. */
    near(p.error.signal / signal, 1.0, 1e-9, "the reported signal is the energy of the weights");
    near(p.error.noise / noise, 1.0, 1e-9,
         "the reported noise is the energy of the quantization error");
    free(p.bytes);
    free(x);
}

/* ---- Grids -------------------------------------------------------------------------------- */

static double error_on(const ft_groupwise_grid *grid, const float *x, const float *importance,
                       size_t n)
{
    double sum = 0.0;
    for (size_t i = 0; i < n; i++) {
        double error = (double) x[i] - (double) ft_groupwise_dequantize(
                                           grid, ft_groupwise_round_nearest(grid, x[i]));
        sum += error * error * (importance != NULL ? (double) importance[i] : 1.0);
    }
    return sum;
}

/* Each search is at least as good as the search that it extends. */
static void test_searches(int bits, bool asymmetric)
{
    enum { N = 64 };
    size_t worse = 0, better = 0, heavier = 0, lighter = 0;
    rng r = { 5 };
    for (int i = 0; i < 200; i++) {
        float x[N], importance[N];
        rng_floats(&r, x, N, 0.02);
        for (int k = 0; k < N; k++)
            importance[k] = (float) exp(2.0 * rng_normal(&r));
        ft_groupwise_options options = { .bits = bits, .asymmetric = asymmetric };
        ft_groupwise_grid plain = ft_groupwise_choose_grid(x, N, NULL, &options);
        options.clip = true;
        ft_groupwise_grid clipped = ft_groupwise_choose_grid(x, N, NULL, &options);
        ft_groupwise_grid weighted = ft_groupwise_choose_grid(x, N, importance, &options);
        /* Searches sum in float with an error of 1e-6 of the sum; this oracle sums in double. */
        double tolerance = 1.0 + 1e-5;
        worse += error_on(&clipped, x, NULL, N) > error_on(&plain, x, NULL, N) * tolerance;
        better += error_on(&clipped, x, NULL, N) < error_on(&plain, x, NULL, N);
        heavier += error_on(&weighted, x, importance, N) >
                   error_on(&clipped, x, importance, N) * tolerance;
        lighter +=
            error_on(&weighted, x, importance, N) < error_on(&clipped, x, importance, N) * 0.999;
    }
    const char *what = asymmetric ? "asymmetric" : "symmetric";
    is_int((long long) worse, 0, "%d bits, %s: clipping search never increases the squared error",
           bits, what);
    is_int((long long) heavier, 0, "importance weights never increase the weighted squared error");
    ok(bits == 8 || better > 100,
       "clipping search reduces the squared error in most groups, %zu of 200", better);
    ok(bits == 8 || lighter > 50,
       "importance weights reduce the weighted squared error in many groups, %zu of 200", lighter);
}

static void test_ends(void)
{
    float x[32] = { -0.8f, 0.1f, 0.2f, 0.3f, -0.4f, 0.5f, -0.6f, 0.7f };
    const ft_groupwise_options four = { .bits = 4 }, eight = { .bits = 8 };
    ft_groupwise_grid g = ft_groupwise_choose_grid(x, 32, NULL, &four);
    near((double) g.scale, 0.1, 1e-4,
         "a symmetric 4-bit grid maps a negative extreme to -8 when that fits better");
    is_int(ft_groupwise_round_nearest(&g, -0.8f), 0, "the quantized value -8 is stored as 0");
    is_int(ft_groupwise_round_nearest(&g, 0.7f), 15, "the quantized value 7 is stored as 15");
    for (int i = 0; i < 32; i++)
        x[i] = -x[i];
    g = ft_groupwise_choose_grid(x, 32, NULL, &four);
    near((double) g.scale, 0.8 / 7, 1e-4, "a symmetric 4-bit grid maps a positive extreme to 7");
    x[3] = -0.8f;
    g = ft_groupwise_choose_grid(x, 32, NULL, &four);
    near((double) g.scale, 0.8 / 7, 1e-4,
         "a symmetric 4-bit grid maps extremes of both signs to 7 when -8 would clip one");
    g = ft_groupwise_choose_grid(x, 32, NULL, &eight);
    near((double) g.scale, 0.8 / 127, 1e-5, "a symmetric 8-bit grid maps the extreme to 127");
}

static void test_zero_is_kept(void)
{
    size_t lost = 0;
    rng r = { 77 };
    for (int i = 0; i < 300; i++) {
        float x[40];
        double centre = rng_uniform(&r, -3.0, 3.0);
        for (int k = 0; k < 40; k++)
            x[k] = (float) (centre + rng_uniform(&r, -1.0, 1.0));
        ft_groupwise_options options = { .bits = i % 2 ? 4 : 8,
                                         .asymmetric = true,
                                         .clip = i % 3 == 0 };
        ft_groupwise_grid g = ft_groupwise_choose_grid(x, 40, NULL, &options);
        lost += ft_groupwise_dequantize(&g, ft_groupwise_round_nearest(&g, 0.0f)) != 0.0f ||
                g.zero < 0 || g.zero > g.max_q;
    }
    is_int((long long) lost, 0,
           "every asymmetric grid represents 0 exactly, whatever the weight range");
}

static void test_extremes(int bits, bool asymmetric)
{
    static const float sizes[] = { 0.0f, 1e-38f, 6e-8f, 3e-7f, 1e-6f, 1.0f, 1e4f, 458528.0f };
    int wrong = 0, far = 0;
    for (size_t i = 0; i < FT_COUNT(sizes); i++) {
        float x[33];
        for (int k = 0; k < 33; k++)
            x[k] = sizes[i] * (float) (k - 16) / 16.0f;
        ft_groupwise_options options = { .bits = bits, .asymmetric = asymmetric };
        ft_groupwise_grid g = ft_groupwise_choose_grid(x, 33, NULL, &options);
        wrong += !(g.scale > 0.0f) || !isfinite(g.scale) ||
                 ft_float_from_f16(ft_f16_from_float(g.scale)) != g.scale;
        wrong +=
            sizes[i] <= 0.0f && (g.scale != 1.0f || ft_groupwise_round_nearest(&g, 0.0f) != g.zero);
        for (int k = 0; k < 33; k++) /* test_matrix() explains 1.07 */
            far +=
                !(fabsf(x[k] - ft_groupwise_dequantize(&g, ft_groupwise_round_nearest(&g, x[k]))) <=
                  1.07f * g.scale);
    }
    const char *what = asymmetric ? "asymmetric" : "symmetric";
    is_int(wrong, 0, "%d bits, %s: scales of every magnitude are positive float16 values", bits,
           what);
    is_int(far, 0, "the range of every grid covers the weights of its group");
}

/* Columns of zero importance do not affect the grid. */
static void test_importance(void)
{
    float x[64], importance[64];
    rng r = { 6 };
    rng_floats(&r, x, 64, 0.1);
    for (int i = 0; i < 64; i++)
        importance[i] = i < 32 ? 1.0f : 0.0f;
    x[50] = 3.0f;
    const ft_groupwise_options options = { .bits = 4, .clip = true };
    ft_groupwise_grid all = ft_groupwise_choose_grid(x, 64, NULL, &options);
    ft_groupwise_grid some = ft_groupwise_choose_grid(x, 64, importance, &options);
    near((double) some.scale / (3.0 / 7), 0.4, 1e-3,
         "clipping search clips an outlier that has zero importance");
    ok(all.scale > some.scale, "clipping search without importance keeps the outlier");
    memset(importance, 0, sizeof importance);
    some = ft_groupwise_choose_grid(x, 64, importance, &options);
    near((double) some.scale / (3.0 / 7), 1.0, 1e-3,
         "clipping search clips nothing when every column has zero importance");

    float rows[2 * 64];
    memcpy(rows, x, sizeof x);
    memcpy(rows + 64, x, sizeof x);
    for (int i = 0; i < 64; i++)
        importance[i] = (float) (1 + i);
    ft_weight_matrix w = floats_as_weights(rows, 2, 64);
    ft_groupwise_options grouped = {
        .bits = 4, .clip = true, .group = 32, .importance = importance
    };
    packed p = pack(&w, &grouped);
    ft_groupwise_grid second = ft_groupwise_choose_grid(x + 32, 32, importance + 32, &grouped);
    near((double) ft_float_from_f16(p.groupwise.scale[32 + 1]), (double) second.scale, 0.0,
         "each group uses the importance of its own columns");
    free(p.bytes);
}

/* ---- Custom rounding ---------------------------------------------------------------------- */

static void round_down(const void *user, ft_groupwise_panel *panel,
                       const ft_groupwise_options *options)
{
    size_t groups = ft_groupwise_options_groups(options, panel->cols);
    for (size_t i = 0; i < panel->rows * panel->cols; i++) {
        const ft_groupwise_grid *grid =
            &panel->grid[i / panel->cols * groups + i % panel->cols / (size_t) options->group];
        float steps = floorf(panel->weight[i] * grid->inverse) + (float) grid->zero;
        panel->q[i] = (uint8_t) fminf(fmaxf(steps, 0.0f), (float) grid->max_q);
        panel->weight[i] = *(const float *) user;
    }
}

static void test_rounding(void)
{
    enum { ROWS = 45, COLS = 96 };
    float *x = random_floats(3, ROWS * COLS), poison = NAN;
    ft_weight_matrix w = floats_as_weights(x, ROWS, COLS);
    ft_groupwise_options options = { .bits = 4, .group = 64 };
    packed nearest = pack(&w, &options);
    options.round = round_down;
    options.user = &poison;
    packed p = pack_by(&w, &options, 2, 1000);
    size_t above = 0;
    double noise = 0.0;
    for (size_t i = 0; i < ROWS * COLS; i++) {
        double real = real_of(&p, i / COLS, i % COLS, &w, 4);
        above += real > (double) x[i] + 1e-3; /* 2^-11 of the lowest value: scales are float16 */
        noise += (real - (double) x[i]) * (real - (double) x[i]);
    }
    is_int((long long) above, 0, "a custom rounding function decides the quantized values");
    /* 1e-9: the order of the sums differs. */
    near(p.error.noise / noise, 1.0, 1e-9,
         "the reported noise includes the error of the custom rounding function");
    ok(memcmp(p.groupwise.scale, nearest.groupwise.scale, p.part.scales) == 0,
       "a custom rounding function keeps the scales");
    free(nearest.bytes);
    free(p.bytes);
    free(x);
}

/* ---- Bytes -------------------------------------------------------------------------------- */

static void test_pieces(void)
{
    enum { ROWS = 133, COLS = 200 };
    static const size_t pieces[] = { 1, 13, 4096, 1 << 20 };
    float *x = random_floats(8, ROWS * COLS);
    ft_weight_matrix w = floats_as_weights(x, ROWS, COLS);
    ft_groupwise_options options = { .bits = 8, .group = 128, .asymmetric = true, .clip = true };
    packed whole = pack(&w, &options);
    size_t total = whole.part.quantized + whole.part.scales + whole.part.zeros;
    is_int((long long) total, 160 * 224 + 2 * 160 * 3,
           "the stream holds the quantized values, scales and zero points in that order");
    for (size_t i = 0; i < FT_COUNT(pieces); i++)
        for (int threads = 1; threads <= 7; threads += 3) {
            packed p = pack_by(&w, &options, threads, pieces[i]);
            ok(memcmp(p.bytes, whole.bytes, total) == 0 && p.error.noise == whole.error.noise,
               "reading the stream %zu bytes at a time with %d threads gives the same bytes",
               pieces[i], threads);
            free(p.bytes);
        }
    free(whole.bytes);
    free(x);
}

static void test_f16(ft_dtype dtype)
{
    enum { ROWS = 5, COLS = 100 };
    float x[ROWS * COLS];
    uint16_t half[ROWS * COLS + 1];
    float *random = random_floats(4, ROWS * COLS);
    for (size_t i = 0; i < ROWS * COLS; i++) {
        half[i] = dtype == FT_F16 ? ft_f16_from_float(random[i]) : ft_bf16_from_float(random[i]);
        x[i] = dtype == FT_F16 ? ft_float_from_f16(half[i]) : ft_float_from_bf16(half[i]);
    }
    memmove((char *) half + 1, half, sizeof x / 2); /* weights need no alignment */
    ft_weight_matrix wide = floats_as_weights(x, ROWS, COLS), narrow = wide;
    narrow.dtype = dtype;
    narrow.data = (char *) half + 1;
    ft_groupwise_options options = { .bits = 4, .group = 32 };
    packed a = pack(&wide, &options), b = pack(&narrow, &options);
    ok(memcmp(a.bytes, b.bytes, a.part.quantized + a.part.scales) == 0,
       "%s weights quantize like their float32 values", ft_dtype_name(dtype));
    free(a.bytes);
    free(b.bytes);
    free(random);
}

static void is_refused(const ft_weight_matrix *w, ft_status status, const char *text)
{
    ft_groupwise_options options = { .bits = 4, .group = 32 };
    ft_groupwise_stream stream;
    ft_error err = { .text = "" };
    char out[64];
    size_t got;
    ft_status found = ft_groupwise_stream_init(&stream, w, &options, 2, &err);
    if (found == FT_OK)
        found = ft_groupwise_stream_read(&stream, out, sizeof out, &got, &err);
    ft_groupwise_stream_fini(&stream);
    is_int(found, status, "ft_groupwise_stream_read() refuses an invalid weight: %s", text);
    is_str(err.text, text, "the quantization error names the matrix, the position and the value");
}

static void test_refusals(void)
{
    enum { ROWS = 70, COLS = 33 };
    float *x = random_floats(2, ROWS * COLS);
    ft_weight_matrix w = floats_as_weights(x, ROWS, COLS);
    x[40 * COLS + 5] = NAN;
    x[50 * COLS + 5] = INFINITY;
    is_refused(&w, FT_EFORMAT, "w: row 40, column 5 is NaN");
    x[40 * COLS + 5] = -INFINITY;
    is_refused(&w, FT_EFORMAT, "w: row 40, column 5 is infinite");
    x[40 * COLS + 5] = -5e5f;
    is_refused(&w, FT_EFORMAT,
               "w: row 40, column 5 is -500000, expected at most 458528: scales are float16");
    w.dtype = FT_I32;
    is_refused(&w, FT_EUNSUPPORTED, "w: dtype I32, expected F32, F16 or BF16");
    free(x);
}

int main(void)
{
    static const size_t shapes[][2] = { { 1, 1 }, { 3, 33 }, { 32, 128 }, { 50, 200 }, { 70, 97 } };
    static const int32_t groups[] = { 0, 32, 64, 128 };
    for (size_t i = 0; i < FT_COUNT(shapes); i++)
        for (int k = 0; k < 16; k++)
            test_matrix(shapes[i][0], shapes[i][1],
                        &(ft_groupwise_options){ .bits = k & 1 ? 8 : 4,
                                                 .asymmetric = k & 2,
                                                 .group = groups[k >> 2],
                                                 .clip = i == 2 });
    for (int k = 0; k < 4; k++) {
        test_searches(k & 1 ? 8 : 4, k & 2);
        test_extremes(k & 1 ? 8 : 4, k & 2);
    }
    test_ends();
    test_zero_is_kept();
    test_importance();
    test_rounding();
    test_pieces();
    test_f16(FT_F16);
    test_f16(FT_BF16);
    test_refusals();
    return done_testing();
}
