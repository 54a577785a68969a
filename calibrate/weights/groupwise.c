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
static float round_scale(float span, int32_t steps)
{
    uint16_t bits = ft_f16_from_float(span / (float) steps);
    if (bits == 0 || ft_float_from_f16(bits) * ((float) steps + 0.5f) < span)
        bits++;
    return ft_float_from_f16(bits);
}

static ft_blocks_grid make_grid(float span, int32_t steps, int32_t zero, int32_t most)
{
    float scale = span > 0.0f ? round_scale(span, steps) : 1.0f;
    return (ft_blocks_grid){ .scale = scale, .inverse = 1.0f / scale, .zero = zero, .most = most };
}

static ft_blocks_grid asymmetric_grid(range r, int32_t most)
{
    ft_blocks_grid grid = make_grid(r.high - r.low, most, 0, most);
    float zero = rintf(-r.low * grid.inverse);
    grid.zero = zero < (float) most ? (int32_t) zero : most;
    return grid;
}

/*
 * The sum of squared errors, with 16 partial sums: one order on every machine. The clipping error
 * is included.
 */
static double squared_error(const ft_blocks_grid *grid, const float *weight, size_t n,
                            const float *importance)
{
    enum { LANES = 16 };
    float low = (float) -grid->zero, high = (float) (grid->most - grid->zero);
    float sum[LANES] = { 0.0f };
    for (size_t first = 0; first < n; first += LANES) {
        float error[LANES] = { 0.0f };
        size_t count = ft_min_size(LANES, n - first);
        memcpy(error, weight + first, count * sizeof error[0]);
        for (int i = 0; i < LANES; i++) {
            float steps = error[i] * grid->inverse, code = steps;
            code = code < high ? code : high;
            code = code > low ? code : low;
            error[i] = steps - ft_blocks_whole(code);
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
typedef struct choice {
    ft_blocks_grid grid;
    double error;
} choice;

static void consider(choice *best, ft_blocks_grid grid, const float *weight, size_t n,
                     const float *importance)
{
    double error = squared_error(&grid, weight, n, importance);
    if (best->grid.scale <= 0.0f || error < best->error)
        *best = (choice){ grid, error };
}

/* The candidate grids for a group with range `r`, the widest first. */
static void consider_range(choice *best, range r, const float *weight, size_t n,
                           const float *importance, const ft_blocks_how *how)
{
    int32_t most = (1 << how->bits) - 1, zero = 1 << (how->bits - 1), high = zero - 1;
    float amax = r.high > -r.low ? r.high : -r.low;
    if (how->asymmetric) {
        consider(best, asymmetric_grid(r, most), weight, n, importance);
        return;
    }
    consider(best, make_grid(amax, high, zero, most), weight, n, importance);
    if (r.high * (float) zero <= amax * ((float) high + 0.5f) && amax > 0.0f)
        consider(best, make_grid(amax, zero, zero, most), weight, n, importance);
}

ft_blocks_grid ft_blocks_choose(const float *weight, size_t n, const float *importance,
                                const ft_blocks_how *how)
{
    range r = range_of(weight, n);
    choice best = { .error = 0.0 };
    for (int i = 20; i >= (how->clip ? 10 : 20); i--) {
        float ratio = (float) i / 20.0f;
        consider_range(&best, (range){ r.low * ratio, r.high * ratio }, weight, n, importance, how);
    }
    return best.grid;
}

/* ---- Panels ------------------------------------------------------------------------------- */

static void choose_grids(ft_blocks_panel *panel, const ft_blocks_how *how)
{
    ft_blocks_grid *grid = panel->grid;
    for (size_t row = 0; row < panel->rows; row++)
        for (size_t first = 0, n; first < panel->cols; first += n) {
            n = ft_blocks_group_cols(how, panel->cols, first);
            *grid++ =
                ft_blocks_choose(panel->weight + row * panel->cols + first, n,
                                 how->importance != NULL ? how->importance + first : NULL, how);
        }
}

static void round_to_nearest(ft_blocks_panel *panel, const ft_blocks_how *how)
{
    const ft_blocks_grid *grid = panel->grid;
    for (size_t row = 0; row < panel->rows; row++)
        for (size_t first = 0, n; first < panel->cols; first += n, grid++) {
            size_t at = row * panel->cols + first;
            n = ft_blocks_group_cols(how, panel->cols, first);
            for (size_t i = 0; i < n; i++)
                panel->code[at + i] = ft_blocks_nearest(grid, panel->weight[at + i]);
        }
}

void ft_blocks_quantize(ft_blocks_panel *panel, const ft_blocks_how *how)
{
    choose_grids(panel, how);
    if (how->round != NULL)
        how->round(how->user, panel, how);
    else
        round_to_nearest(panel, how);
}

/* ---- Storing ------------------------------------------------------------------------------ */

static void store_codes(uint32_t *codes, const ft_blocks_panel *panel, int bits)
{
    memset(codes, 0, ft_panel_bytes(FT_PANEL_ROWS, panel->cols, bits));
    const uint8_t *code = panel->code;
    for (size_t row = 0; row < panel->rows; row++)
        for (size_t col = 0; col < panel->cols; col++)
            codes[ft_panel_word(row, col, panel->cols, bits)] |= (uint32_t) *code++
                                                                 << ft_panel_shift(col, bits);
}

static void store_grids(uint16_t *scale, uint8_t *zero, const ft_blocks_panel *panel,
                        size_t padded_rows, size_t groups)
{
    for (size_t group = 0; group < groups; group++)
        for (size_t row = 0; row < FT_PANEL_ROWS; row++) {
            bool pad = row >= panel->rows;
            const ft_blocks_grid *grid = pad ? NULL : &panel->grid[row * groups + group];
            size_t at = group * padded_rows + row;
            scale[at] = pad ? 0 : ft_f16_from_float(grid->scale);
            if (zero != NULL)
                zero[at] = pad ? 0 : (uint8_t) grid->zero;
        }
}

void ft_blocks_store(uint32_t *codes, uint16_t *scale, uint8_t *zero, size_t index, size_t rows,
                     const ft_blocks_panel *panel, const ft_blocks_how *how)
{
    size_t first = index * FT_PANEL_ROWS;
    store_codes(codes, panel, how->bits);
    store_grids(scale + first, zero != NULL ? zero + first : NULL, panel,
                ft_layout_rows(FT_PANEL32, rows), ft_blocks_how_groups(how, panel->cols));
}
