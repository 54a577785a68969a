/*
 * groupwise_stream.c - a group-wise quantized matrix (values, scales, zero points) as a byte stream
 * for a writer.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/weights/groupwise_stream.h"

#include "kernels/linalg.h"
#include "kernels/threads/team.h"
#include "runtime/mem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The symmetric 4-bit grid ends at 7 scales, and float16 at 65504. */
#define MAX_MAGNITUDE (7.0f * 65504.0f)

ft_groupwise_bytes ft_groupwise_stream_bytes(const ft_weight_matrix *w,
                                             const ft_groupwise_options *options)
{
    size_t count =
        ft_groupwise_scale_count(&(ft_groupwise){ .group = options->group }, w->rows, w->cols);
    return (ft_groupwise_bytes){
        .quantized = ft_panel_bytes(w->rows, w->cols, options->bits),
        .scales = count * sizeof(uint16_t),
        .zeros = options->asymmetric ? count : 0,
    };
}

/* ---- Memory ------------------------------------------------------------------------------- */

/*
 * Takes `bytes` from a buffer whose sections start on cache lines; NULL before it is allocated.
 */
static void *take_section(char *allocation, size_t *used, size_t bytes)
{
    void *section = allocation == NULL ? NULL : allocation + *used;
    *used += ft_round_up(bytes, 64);
    return section;
}

static bool needs_scratch(const ft_groupwise_options *options)
{
    return options->round != NULL || options->moments != NULL || options->correction != NULL;
}

/* Lays out all arrays in `memory` and returns the total size; NULL: only the size. */
static size_t layout_buffers(ft_groupwise_stream *s, char *allocation)
{
    ft_groupwise_bytes bytes = ft_groupwise_stream_bytes(s->weights, s->options);
    size_t used = 0, elements = FT_PANEL_ROWS * s->weights->cols;
    size_t grids = FT_PANEL_ROWS * ft_groupwise_options_groups(s->options, s->weights->cols);
    s->quantized = take_section(allocation, &used, s->batch * (bytes.quantized / s->panels));
    s->scale = take_section(allocation, &used, bytes.scales);
    s->zero = take_section(allocation, &used, bytes.zeros);
    s->zero = bytes.zeros > 0 ? s->zero : NULL;
    for (size_t i = 0; i < s->batch; i++) {
        ft_groupwise_panel *p = &s->panel[i];
        p->cols = s->weights->cols;
        p->weight = take_section(allocation, &used, elements * sizeof *p->weight);
        p->grid = take_section(allocation, &used, grids * sizeof *p->grid);
        p->q = take_section(allocation, &used, elements);
        if (needs_scratch(s->options))
            p->scratch = take_section(allocation, &used, 2 * elements * sizeof *p->scratch);
    }
    return used;
}

ft_status ft_groupwise_stream_init(ft_groupwise_stream *s, const ft_weight_matrix *weights,
                                   const ft_groupwise_options *options, int threads, ft_error *err)
{
    *s = (ft_groupwise_stream){ .weights = weights, .options = options };
    FT_TRY(ft_weight_matrix_check_dtype(weights, err));
    if (needs_scratch(options))
        FT_TRY(ft_linalg_init(&s->linalg, 1, err));
    s->panels = ft_layout_rows(FT_PANEL32, weights->rows) / FT_PANEL_ROWS;
    s->batch = ft_min_size(s->panels, (size_t) threads);
    s->panel = ft_calloc(s->batch, sizeof *s->panel);
    s->panel_error = ft_calloc(s->batch, sizeof *s->panel_error);
    if (s->panel != NULL && s->panel_error != NULL)
        s->allocation = ft_calloc_aligned(layout_buffers(s, NULL));
    if (s->allocation == NULL)
        return ft_fail(err, FT_ENOMEM, "%s: no memory for %zu panels of %zu columns", weights->name,
                       s->batch, weights->cols);
    layout_buffers(s, s->allocation);
    return FT_OK;
}

/* Frees what is needed to produce bytes, once all have been produced. */
static void release(ft_groupwise_stream *s)
{
    free(s->panel);
    free(s->panel_error);
    free(s->allocation);
    s->panel = NULL;
    s->panel_error = NULL;
    s->allocation = NULL;
}

void ft_groupwise_stream_fini(ft_groupwise_stream *s)
{
    release(s);
    *s = (ft_groupwise_stream){ 0 };
}

/* ---- Panels ------------------------------------------------------------------------------- */

/* W becomes W + W M. */
static void correct_panel(ft_groupwise_panel *panel, const ft_linalg *linalg,
                          const double *correction)
{
    size_t cols = panel->cols;
    memset(panel->scratch, 0, panel->rows * cols * sizeof *panel->scratch);
    ft_linalg_dgemm(linalg,
                    &(ft_dgemm){ .m = panel->rows,
                                 .n = cols,
                                 .k = cols,
                                 .a = { .f32 = panel->weight, .row_stride = cols, .col_stride = 1 },
                                 .b = { .f64 = correction, .row_stride = cols, .col_stride = 1 },
                                 .c = panel->scratch,
                                 .c_stride = cols });
    for (size_t i = 0; i < panel->rows * cols; i++)
        panel->weight[i] = (float) ((double) panel->weight[i] + panel->scratch[i]);
}

static void load_panel(const ft_groupwise_stream *s, ft_groupwise_panel *panel, size_t first_row)
{
    const ft_weight_matrix *w = s->weights;
    panel->rows = ft_min_size(FT_PANEL_ROWS, w->rows - first_row);
    for (size_t row = 0; row < panel->rows; row++)
        ft_weight_matrix_load(panel->weight + row * w->cols, w, first_row + row, 0, w->cols);
    if (s->options->correction != NULL)
        correct_panel(panel, &s->linalg, s->options->correction);
}

/* Index of the first weight that cannot be quantized; rows * cols: none. */
static size_t first_invalid(const ft_groupwise_panel *panel)
{
    size_t elements = panel->rows * panel->cols, begin = 0;
    while (begin < elements && fabsf(panel->weight[begin]) <= MAX_MAGNITUDE)
        begin++;
    return begin;
}

static ft_status fail_invalid(const ft_weight_matrix *w, const ft_groupwise_panel *panel,
                              size_t index, ft_error *err)
{
    size_t begin = first_invalid(panel), row = index * FT_PANEL_ROWS + begin / panel->cols;
    float weight = panel->weight[begin];
    if (!isfinite(weight))
        return ft_fail(err, FT_EFORMAT, "%s: row %zu, column %zu is %s", w->name, row,
                       begin % panel->cols, isnan(weight) ? "NaN" : "infinite");
    return ft_fail(err, FT_EFORMAT,
                   "%s: row %zu, column %zu is %g, expected at most %g: scales are float16",
                   w->name, row, begin % panel->cols, (double) weight, (double) MAX_MAGNITUDE);
}

static float dequantized_at(const ft_groupwise_panel *panel, size_t row, size_t col,
                            const ft_groupwise_options *options)
{
    size_t groups = ft_groupwise_options_groups(options, panel->cols);
    size_t group = options->group == 0 ? 0 : col / (size_t) options->group;
    return ft_groupwise_dequantize(&panel->grid[row * groups + group],
                                   panel->q[row * panel->cols + col]);
}

/* x H x^T summed over all rows of a panel; `x_moments` is a buffer of the size of x. */
static double quadratic_form(const ft_linalg *linalg, const double *x,
                             const ft_groupwise_panel *panel, const double *moments,
                             double *x_moments)
{
    double sum = 0.0;
    size_t rows = panel->rows, cols = panel->cols;
    memset(x_moments, 0, rows * cols * sizeof *x_moments);
    ft_linalg_dgemm(linalg,
                    &(ft_dgemm){ .m = rows,
                                 .n = cols,
                                 .k = cols,
                                 .a = { .f64 = x, .row_stride = cols, .col_stride = 1 },
                                 .b = { .f64 = moments, .row_stride = cols, .col_stride = 1 },
                                 .c = x_moments,
                                 .c_stride = cols });
    for (size_t i = 0; i < rows * cols; i++)
        sum += x[i] * x_moments[i];
    return sum > 0.0 ? sum : 0.0;
}

static void measure_output_error(ft_groupwise_error *cost, const ft_linalg *linalg,
                                 const ft_groupwise_panel *panel,
                                 const ft_groupwise_options *options)
{
    size_t elements = panel->rows * panel->cols;
    double *x = panel->scratch, *buffer = x + FT_PANEL_ROWS * panel->cols;
    for (size_t i = 0; i < elements; i++)
        x[i] = (double) panel->weight[i];
    cost->out_signal = quadratic_form(linalg, x, panel, options->moments, buffer);
    for (size_t i = 0; i < elements; i++)
        x[i] -= (double) dequantized_at(panel, i / panel->cols, i % panel->cols, options);
    cost->out_noise = quadratic_form(linalg, x, panel, options->moments, buffer);
}

/*
 * Compares quantized with original weights, which are reloaded if rounding may have overwritten
 * them.
 */
static ft_groupwise_error measure_error(const ft_groupwise_stream *s, ft_groupwise_panel *panel,
                                        size_t first_row)
{
    const ft_groupwise_options *options = s->options;
    ft_groupwise_error cost = { 0 };
    if (options->round != NULL)
        load_panel(s, panel, first_row);
    for (size_t row = 0; row < panel->rows; row++)
        for (size_t col = 0; col < panel->cols; col++) {
            double weight = (double) panel->weight[row * panel->cols + col];
            double error = weight - (double) dequantized_at(panel, row, col, options);
            double column_weight =
                options->importance != NULL ? (double) options->importance[col] : 0.0;
            cost.signal += weight * weight;
            cost.noise += error * error;
            cost.out_signal += column_weight * (weight * weight);
            cost.out_noise += column_weight * (error * error);
        }
    if (options->moments != NULL)
        measure_output_error(&cost, &s->linalg, panel, options);
    return cost;
}

/* Quantizes panel number n_done + i, unless it has an invalid weight. */
static void quantize_panel(ft_groupwise_stream *s, size_t i)
{
    const ft_weight_matrix *w = s->weights;
    ft_groupwise_panel *panel = &s->panel[i];
    size_t index = s->n_done + i,
           panel_words = ft_panel_bytes(FT_PANEL_ROWS, w->cols, s->options->bits) / 4;
    load_panel(s, panel, index * FT_PANEL_ROWS);
    if (first_invalid(panel) < panel->rows * panel->cols)
        return;
    ft_groupwise_quantize(panel, s->options);
    ft_groupwise_store_panel(s->quantized + i * panel_words, s->scale, s->zero, index, w->rows,
                             panel, s->options);
    s->panel_error[i] = measure_error(s, panel, index * FT_PANEL_ROWS);
}

static void quantize_panels(const void *job, int thread, size_t first, size_t end)
{
    (void) thread;
    for (size_t i = first; i < end; i++)
        quantize_panel((ft_groupwise_stream *) (uintptr_t) job, i);
}

/* The next panels; their errors are added in order. */
static ft_status quantize_batch(ft_groupwise_stream *s, ft_error *err)
{
    size_t count = ft_min_size(s->batch, s->panels - s->n_done);
    ft_parallel_for((int) s->batch, count, quantize_panels, s);
    for (size_t i = 0; i < count; i++) {
        if (first_invalid(&s->panel[i]) < s->panel[i].rows * s->panel[i].cols)
            return fail_invalid(s->weights, &s->panel[i], s->n_done + i, err);
        s->error.signal += s->panel_error[i].signal;
        s->error.noise += s->panel_error[i].noise;
        s->error.out_signal += s->panel_error[i].out_signal;
        s->error.out_noise += s->panel_error[i].out_noise;
    }
    s->n_done += count;
    return FT_OK;
}

/* ---- Bytes -------------------------------------------------------------------------------- */

/* A contiguous range of bytes at `position` in memory; produced if necessary. */
static ft_status next_section(ft_groupwise_stream *s, const ft_groupwise_bytes *bytes,
                              const char **begin, size_t *count, ft_error *err)
{
    size_t position = s->position, panel_bytes = bytes->quantized / s->panels;
    if (position < bytes->quantized) {
        if (position == s->n_done * panel_bytes)
            FT_TRY(quantize_batch(s, err));
        size_t end = s->n_done * panel_bytes;
        size_t first = (s->n_done - 1) / s->batch * s->batch * panel_bytes;
        *begin = (const char *) s->quantized + (position - first);
        *count = end - position;
    } else if (position - bytes->quantized < bytes->scales) {
        *begin = (const char *) s->scale + (position - bytes->quantized);
        *count = bytes->scales - (position - bytes->quantized);
    } else {
        *begin = (const char *) s->zero + (position - bytes->quantized - bytes->scales);
        *count = bytes->quantized + bytes->scales + bytes->zeros - position;
    }
    return FT_OK;
}

ft_status ft_groupwise_stream_read(ft_groupwise_stream *s, void *out, size_t size, size_t *n_read,
                                   ft_error *err)
{
    ft_groupwise_bytes bytes = ft_groupwise_stream_bytes(s->weights, s->options);
    size_t end = bytes.quantized + bytes.scales + bytes.zeros;
    *n_read = 0;
    while (*n_read < size && s->position < end) {
        const char *begin;
        size_t count;
        FT_TRY(next_section(s, &bytes, &begin, &count, err));
        count = ft_min_size(count, size - *n_read);
        memcpy((char *) out + *n_read, begin, count);
        s->position += count;
        *n_read += count;
    }
    if (s->position == end) /* many streams may be open until the file is complete */
        release(s);
    return FT_OK;
}
