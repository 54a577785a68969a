/*
 * groupwise.c - group-wise quantization of float weights to 4 or 8 bits, with a scale per row and
 * group.
 *
 * A scale is rounded to float16 before weights are rounded with it, so its error is included.
 * Errors are measured in steps of the grid and scaled at the end: their squares do not underflow,
 * however small the weights are.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/weights/groupwise.h"

#include "kernels/half.h"
#include "runtime/mem.h"

#include <math.h>
#include <string.h>

/* ---- Grids -------------------------------------------------------------------------------- */

/* The lowest and the highest weight of a group, extended to include 0. */
typedef struct range {
    float low, high;
} range;

static range range_of(const float *weight, size_t n)
{
    range r = { 0.0f, 0.0f };
    for (size_t i = 0; i < n; i++) {
        r.low = weight[i] < r.low ? weight[i] : r.low;
        r.high = weight[i] > r.high ? weight[i] : r.high;
    }
    return r;
}

/*
 * The float16 scale that divides `span` into `steps`, or the next larger float16 if the ends would
 * otherwise be more than half a step outside.
 */
static float round_scale(float span, int32_t n_steps)
{
    uint16_t bits = ft_f16_from_float(span / (float) n_steps);
    if (bits == 0 || ft_float_from_f16(bits) * ((float) n_steps + 0.5f) < span)
        bits++;
    return ft_float_from_f16(bits);
}

static ft_groupwise_grid make_grid(float span, int32_t n_steps, int32_t zero, int32_t max_q)
{
    float scale = span > 0.0f ? round_scale(span, n_steps) : 1.0f;
    return (
        ft_groupwise_grid){ .scale = scale, .inverse = 1.0f / scale, .zero = zero, .max_q = max_q };
}

/* The zero point is the nearest one to that of the range, and `shift` steps from there. */
static ft_groupwise_grid asymmetric_grid(range r, int32_t max_q, int32_t shift)
{
    ft_groupwise_grid grid = make_grid(r.high - r.low, max_q, 0, max_q);
    float zero = rintf(-r.low * grid.inverse);
    grid.zero = (zero < (float) max_q ? (int32_t) zero : max_q) + shift;
    grid.zero = grid.zero < 0 ? 0 : grid.zero > max_q ? max_q : grid.zero;
    return grid;
}

/*
 * The sum of squared errors, with 16 partial sums: one order on every machine. The clipping error
 * is included.
 */
static double squared_error(const ft_groupwise_grid *grid, const float *weight, size_t n,
                            const float *importance)
{
    enum { LANES = 16 };
    float low = (float) -grid->zero, high = (float) (grid->max_q - grid->zero);
    float sum[LANES] = { 0.0f };
    for (size_t first = 0; first < n; first += LANES) {
        float error[LANES] = { 0.0f };
        size_t count = ft_min_size(LANES, n - first);
        memcpy(error, weight + first, count * sizeof error[0]);
        for (int i = 0; i < LANES; i++) {
            float n_steps = error[i] * grid->inverse, q = n_steps;
            q = q < high ? q : high;
            q = q > low ? q : low;
            error[i] = n_steps - ft_round_half_even(q);
        }
        for (size_t i = 0; i < count && importance != NULL; i++)
            sum[i] += importance[first + i] * (error[i] * error[i]);
        for (int i = 0; i < LANES && importance == NULL; i++)
            sum[i] += error[i] * error[i];
    }
    double total = 0.0;
    for (int i = 0; i < LANES; i++)
        total += (double) sum[i];
    return total * (double) grid->scale * (double) grid->scale;
}

/* A grid and its error; scale 0: none yet. */
typedef struct best_grid {
    ft_groupwise_grid grid;
    double error;
} best_grid;

static void try_grid(best_grid *best, ft_groupwise_grid grid, const float *weight, size_t n,
                     const float *importance)
{
    double error = squared_error(&grid, weight, n, importance);
    if (best->grid.scale <= 0.0f || error < best->error)
        *best = (best_grid){ grid, error };
}

/* The candidate grids for a group with range `r`, the widest first. */
static void try_range(best_grid *best, range r, const float *weight, size_t n,
                      const float *importance, const ft_groupwise_options *options)
{
    int32_t max_q = (1 << options->bits) - 1, zero = 1 << (options->bits - 1), high = zero - 1;
    float amax = r.high > -r.low ? r.high : -r.low;
    if (options->asymmetric) {
        try_grid(best, asymmetric_grid(r, max_q, 0), weight, n, importance);
        for (int32_t shift = -1; shift <= 1 && options->clip; shift += 2)
            try_grid(best, asymmetric_grid(r, max_q, shift), weight, n, importance);
        return;
    }
    try_grid(best, make_grid(amax, high, zero, max_q), weight, n, importance);
    if (r.high * (float) zero <= amax * ((float) high + 0.5f) && amax > 0.0f)
        try_grid(best, make_grid(amax, zero, zero, max_q), weight, n, importance);
}

ft_groupwise_grid ft_groupwise_choose_grid(const float *weight, size_t n, const float *importance,
                                           const ft_groupwise_options *options)
{
    range r = range_of(weight, n);
    best_grid best = { .error = 0.0 };
    for (int i = 40; i >= (options->clip ? 16 : 40); i--) {
        float ratio = (float) i / 40.0f;
        try_range(&best, (range){ r.low * ratio, r.high * ratio }, weight, n, importance, options);
    }
    return best.grid;
}

/* ---- Panels ------------------------------------------------------------------------------- */

static void choose_grids(ft_groupwise_panel *panel, const ft_groupwise_options *options)
{
    ft_groupwise_grid *grid = panel->grid;
    for (size_t row = 0; row < panel->rows; row++)
        for (size_t first = 0, n; first < panel->cols; first += n) {
            n = ft_groupwise_group_cols(options, panel->cols, first);
            *grid++ = ft_groupwise_choose_grid(
                panel->weight + row * panel->cols + first, n,
                options->importance != NULL ? options->importance + first : NULL, options);
        }
}

static void round_nearest(ft_groupwise_panel *panel, const ft_groupwise_options *options)
{
    const ft_groupwise_grid *grid = panel->grid;
    for (size_t row = 0; row < panel->rows; row++)
        for (size_t first = 0, n; first < panel->cols; first += n, grid++) {
            size_t at = row * panel->cols + first;
            n = ft_groupwise_group_cols(options, panel->cols, first);
            for (size_t i = 0; i < n; i++)
                panel->q[at + i] = ft_groupwise_round_nearest(grid, panel->weight[at + i]);
        }
}

void ft_groupwise_quantize(ft_groupwise_panel *panel, const ft_groupwise_options *options)
{
    choose_grids(panel, options);
    if (options->round != NULL)
        options->round(options->user, panel, options);
    else
        round_nearest(panel, options);
}

/* ---- Storing ------------------------------------------------------------------------------ */

static void store_values(uint32_t *q_words, const ft_groupwise_panel *panel, int bits)
{
    memset(q_words, 0, ft_panel_bytes(FT_PANEL_ROWS, panel->cols, bits));
    const uint8_t *q = panel->q;
    for (size_t row = 0; row < panel->rows; row++)
        for (size_t col = 0; col < panel->cols; col++)
            q_words[ft_panel_word(row, col, panel->cols, bits)] |= (uint32_t) *q++
                                                                   << ft_panel_shift(col, bits);
}

static void store_grids(uint16_t *scale, uint8_t *zero, const ft_groupwise_panel *panel,
                        size_t padded_rows, size_t groups)
{
    for (size_t group = 0; group < groups; group++)
        for (size_t row = 0; row < FT_PANEL_ROWS; row++) {
            bool is_padding = row >= panel->rows;
            const ft_groupwise_grid *grid = is_padding ? NULL : &panel->grid[row * groups + group];
            size_t at = group * padded_rows + row;
            scale[at] = is_padding ? 0 : ft_f16_from_float(grid->scale);
            if (zero != NULL)
                zero[at] = is_padding ? 0 : (uint8_t) grid->zero;
        }
}

void ft_groupwise_store_panel(uint32_t *q_words, uint16_t *scale, uint8_t *zero, size_t index,
                              size_t rows, const ft_groupwise_panel *panel,
                              const ft_groupwise_options *options)
{
    size_t first = index * FT_PANEL_ROWS;
    store_values(q_words, panel, options->bits);
    store_grids(scale + first, zero != NULL ? zero + first : NULL, panel,
                ft_layout_rows(FT_PANEL32, rows),
                ft_groupwise_options_groups(options, panel->cols));
}
