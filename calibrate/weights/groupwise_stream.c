/*
 * groupwise_stream.c - a group-wise quantized matrix (values, scales, zero points) as a byte stream
 * for a writer.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/weights/groupwise_stream.h"

#include "kernels/blas.h"
#include "kernels/threads/team.h"
#include "runtime/mem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The symmetric 4-bit grid ends at 7 scales, and float16 at 65504. */
#define MOST_MAGNITUDE (7.0f * 65504.0f)

ft_blocks_bytes ft_blocks_stream_bytes(const ft_weights *w, const ft_blocks_how *how)
{
    size_t count = ft_blocks_count(&(ft_blocks){ .group = how->group }, w->rows, w->cols);
    return (ft_blocks_bytes){
        .codes = ft_panel_bytes(w->rows, w->cols, how->bits),
        .scales = count * sizeof(uint16_t),
        .zeros = how->asymmetric ? count : 0,
    };
}

/* ---- Memory ------------------------------------------------------------------------------- */

/*
 * Takes `bytes` from a buffer whose sections start on cache lines; NULL before it is allocated.
 */
static void *cut(char *memory, size_t *used, size_t bytes)
{
    void *part = memory == NULL ? NULL : memory + *used;
    *used += ft_round_up(bytes, 64);
    return part;
}

/* Lays out all arrays in `memory` and returns the total size; NULL: only the size. */
static size_t lay_out(ft_blocks_stream *s, char *memory)
{
    ft_blocks_bytes bytes = ft_blocks_stream_bytes(s->weights, s->how);
    size_t used = 0, elements = FT_PANEL_ROWS * s->weights->cols;
    size_t grids = FT_PANEL_ROWS * ft_blocks_how_groups(s->how, s->weights->cols);
    s->codes = cut(memory, &used, s->batch * (bytes.codes / s->panels));
    s->scale = cut(memory, &used, bytes.scales);
    s->zero = cut(memory, &used, bytes.zeros);
    s->zero = bytes.zeros > 0 ? s->zero : NULL;
    for (size_t i = 0; i < s->batch; i++) {
        ft_blocks_panel *p = &s->panel[i];
        p->cols = s->weights->cols;
        p->weight = cut(memory, &used, elements * sizeof *p->weight);
        p->grid = cut(memory, &used, grids * sizeof *p->grid);
        p->code = cut(memory, &used, elements);
        if (s->how->round != NULL || s->how->moments != NULL)
            p->work = cut(memory, &used, 2 * elements * sizeof *p->work);
    }
    return used;
}

ft_status ft_blocks_stream_init(ft_blocks_stream *s, const ft_weights *weights,
                                const ft_blocks_how *how, int threads, ft_error *err)
{
    *s = (ft_blocks_stream){ .weights = weights, .how = how };
    FT_TRY(ft_weights_check_dtype(weights, err));
    if (how->round != NULL || how->moments != NULL)
        FT_TRY(ft_blas_load(threads, err));
    s->panels = ft_layout_rows(FT_PANEL32, weights->rows) / FT_PANEL_ROWS;
    s->batch = ft_min_size(s->panels, (size_t) threads);
    s->panel = ft_array(s->batch, sizeof *s->panel);
    s->of_each = ft_array(s->batch, sizeof *s->of_each);
    if (s->panel != NULL && s->of_each != NULL)
        s->memory = ft_alloc(lay_out(s, NULL));
    if (s->memory == NULL)
        return ft_fail(err, FT_ENOMEM, "%s: no memory for %zu panels of %zu columns", weights->name,
                       s->batch, weights->cols);
    lay_out(s, s->memory);
    return FT_OK;
}

/* Frees what is needed to produce bytes, once all have been produced. */
static void release(ft_blocks_stream *s)
{
    free(s->panel);
    free(s->of_each);
    free(s->memory);
    s->panel = NULL;
    s->of_each = NULL;
    s->memory = NULL;
}

void ft_blocks_stream_fini(ft_blocks_stream *s)
{
    release(s);
    *s = (ft_blocks_stream){ 0 };
}

/* ---- Panels ------------------------------------------------------------------------------- */

static void load(ft_blocks_panel *panel, const ft_weights *w, size_t first_row)
{
    panel->rows = ft_min_size(FT_PANEL_ROWS, w->rows - first_row);
    for (size_t row = 0; row < panel->rows; row++)
        ft_weights_load(panel->weight + row * w->cols, w, first_row + row, 0, w->cols);
}

/* Index of the first weight that cannot be quantized; rows * cols: none. */
static size_t first_bad(const ft_blocks_panel *panel)
{
    size_t elements = panel->rows * panel->cols, at = 0;
    while (at < elements && fabsf(panel->weight[at]) <= MOST_MAGNITUDE)
        at++;
    return at;
}

static ft_status refuse(const ft_weights *w, const ft_blocks_panel *panel, size_t index,
                        ft_error *err)
{
    size_t at = first_bad(panel), row = index * FT_PANEL_ROWS + at / panel->cols;
    float weight = panel->weight[at];
    if (!isfinite(weight))
        return ft_fail(err, FT_EFORMAT, "%s: row %zu, column %zu is %s", w->name, row,
                       at % panel->cols, isnan(weight) ? "NaN" : "infinite");
    return ft_fail(err, FT_EFORMAT,
                   "%s: row %zu, column %zu is %g, expected at most %g: scales are float16",
                   w->name, row, at % panel->cols, (double) weight, (double) MOST_MAGNITUDE);
}

static float real_of(const ft_blocks_panel *panel, size_t row, size_t col, const ft_blocks_how *how)
{
    size_t groups = ft_blocks_how_groups(how, panel->cols);
    size_t group = how->group == 0 ? 0 : col / (size_t) how->group;
    return ft_blocks_real(&panel->grid[row * groups + group], panel->code[row * panel->cols + col]);
}

/* x H x^T summed over all rows of a panel; `product` is a buffer of the size of x. */
static double square_by_moments(const double *x, const ft_blocks_panel *panel,
                                const double *moments, double *product)
{
    double sum = 0.0;
    int rows = (int) panel->rows, cols = (int) panel->cols;
    ft_dsymm(CblasRight, CblasUpper, rows, cols, 1.0, moments, cols, x, cols, 0.0, product, cols);
    for (size_t i = 0; i < panel->rows * panel->cols; i++)
        sum += x[i] * product[i];
    return sum > 0.0 ? sum : 0.0;
}

static void measure_results(ft_blocks_cost *cost, const ft_blocks_panel *panel,
                            const ft_blocks_how *how)
{
    size_t elements = panel->rows * panel->cols;
    double *x = panel->work, *rest = x + FT_PANEL_ROWS * panel->cols;
    for (size_t i = 0; i < elements; i++)
        x[i] = (double) panel->weight[i];
    cost->out_signal = square_by_moments(x, panel, how->moments, rest);
    for (size_t i = 0; i < elements; i++)
        x[i] -= (double) real_of(panel, i / panel->cols, i % panel->cols, how);
    cost->out_noise = square_by_moments(x, panel, how->moments, rest);
}

/*
 * Compares quantized with original weights, which are reloaded if rounding may have overwritten
 * them.
 */
static ft_blocks_cost measure(ft_blocks_panel *panel, const ft_weights *w, size_t first_row,
                              const ft_blocks_how *how)
{
    ft_blocks_cost cost = { 0 };
    if (how->round != NULL)
        load(panel, w, first_row);
    for (size_t row = 0; row < panel->rows; row++)
        for (size_t col = 0; col < panel->cols; col++) {
            double weight = (double) panel->weight[row * panel->cols + col];
            double error = weight - (double) real_of(panel, row, col, how);
            double counts = how->importance != NULL ? (double) how->importance[col] : 0.0;
            cost.signal += weight * weight;
            cost.noise += error * error;
            cost.out_signal += counts * (weight * weight);
            cost.out_noise += counts * (error * error);
        }
    if (how->moments != NULL)
        measure_results(&cost, panel, how);
    return cost;
}

/* Quantizes panel number n_done + i, unless it has an invalid weight. */
static void make_panel(ft_blocks_stream *s, size_t i)
{
    const ft_weights *w = s->weights;
    ft_blocks_panel *panel = &s->panel[i];
    size_t index = s->made + i, words = ft_panel_bytes(FT_PANEL_ROWS, w->cols, s->how->bits) / 4;
    load(panel, w, index * FT_PANEL_ROWS);
    if (first_bad(panel) < panel->rows * panel->cols)
        return;
    ft_blocks_quantize(panel, s->how);
    ft_blocks_store(s->codes + i * words, s->scale, s->zero, index, w->rows, panel, s->how);
    s->of_each[i] = measure(panel, w, index * FT_PANEL_ROWS, s->how);
}

static void make_panels(const void *job, int thread, size_t first, size_t end)
{
    (void) thread;
    for (size_t i = first; i < end; i++)
        make_panel((ft_blocks_stream *) (uintptr_t) job, i);
}

/* The next panels; their errors are added in order. */
static ft_status make_batch(ft_blocks_stream *s, ft_error *err)
{
    size_t count = ft_min_size(s->batch, s->panels - s->made);
    ft_team_share((int) s->batch, count, make_panels, s);
    for (size_t i = 0; i < count; i++) {
        if (first_bad(&s->panel[i]) < s->panel[i].rows * s->panel[i].cols)
            return refuse(s->weights, &s->panel[i], s->made + i, err);
        s->cost.signal += s->of_each[i].signal;
        s->cost.noise += s->of_each[i].noise;
        s->cost.out_signal += s->of_each[i].out_signal;
        s->cost.out_noise += s->of_each[i].out_noise;
    }
    s->made += count;
    return FT_OK;
}

/* ---- Bytes -------------------------------------------------------------------------------- */

/* A contiguous range of bytes at `position` in memory; produced if necessary. */
static ft_status find(ft_blocks_stream *s, const ft_blocks_bytes *bytes, const char **at,
                      size_t *count, ft_error *err)
{
    size_t position = s->position, panel_bytes = bytes->codes / s->panels;
    if (position < bytes->codes) {
        if (position == s->made * panel_bytes)
            FT_TRY(make_batch(s, err));
        size_t end = s->made * panel_bytes;
        size_t first = (s->made - 1) / s->batch * s->batch * panel_bytes;
        *at = (const char *) s->codes + (position - first);
        *count = end - position;
    } else if (position - bytes->codes < bytes->scales) {
        *at = (const char *) s->scale + (position - bytes->codes);
        *count = bytes->scales - (position - bytes->codes);
    } else {
        *at = (const char *) s->zero + (position - bytes->codes - bytes->scales);
        *count = bytes->codes + bytes->scales + bytes->zeros - position;
    }
    return FT_OK;
}

ft_status ft_blocks_stream_read(ft_blocks_stream *s, void *out, size_t size, size_t *got,
                                ft_error *err)
{
    ft_blocks_bytes bytes = ft_blocks_stream_bytes(s->weights, s->how);
    size_t end = bytes.codes + bytes.scales + bytes.zeros;
    *got = 0;
    while (*got < size && s->position < end) {
        const char *at;
        size_t count;
        FT_TRY(find(s, &bytes, &at, &count, err));
        count = ft_min_size(count, size - *got);
        memcpy((char *) out + *got, at, count);
        s->position += count;
        *got += count;
    }
    if (s->position == end) /* many streams may be open until the file is complete */
        release(s);
    return FT_OK;
}
