/*
 * i8_amx.c - int8 GEMM with AMX: tiles of 16 rows x 64 bytes.
 *
 * A panel of i8_avx512.c already has the form of tiles: 16 quads of 16 weight rows are 16 rows of
 * 64 bytes. Its bytes are unsigned, weight + 128, and the accumulators of each row start at -128
 * times the sum of its x. TDPBSUD multiplies signed by unsigned bytes, so the sums equal those of
 * vpdpbusd.
 *
 * Four accumulators, 32 rows of x against 32 weight rows, take two tiles of x and two of the panel
 * for every 64 elements of k. The operating system keeps the tiles of each thread; they are
 * released at the end, so that they are not part of its state in between.
 *
 * Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, TDPBSUD.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cpu/gemm/int8/i8_amx.h"

#include "kernels/cpu/base/simd.h"

#include <string.h>

enum { TILE_ROWS = 16, TILE_BYTES = 64, TILE_QUADS = 16 };

/* The operand of LDTILECFG. */
typedef struct tile_config {
    uint8_t palette, start_row, reserved[14];
    uint16_t bytes_per_row[16];
    uint8_t rows[16];
} tile_config;

/* Tiles: 0 .. 3 accumulators, first those of the first rows; 4 and 5 of x; 6 and 7 of the panel. */
static void configure(size_t rows)
{
    size_t first = ft_min_size(rows, TILE_ROWS), second = rows - first;
    _Alignas(64) tile_config config = { .palette = 1 };
    for (int i = 0; i < 8; i++) {
        bool is_second = i == 2 || i == 3 || i == 5;
        config.rows[i] = (uint8_t) (i >= 6 ? TILE_QUADS : is_second ? second : first);
        config.bytes_per_row[i] = config.rows[i] > 0 ? TILE_BYTES : 0;
    }
    _tile_loadconfig(&config);
}

/* One step of k: x [rows, 64] and the panel's quads, for one or two tiles of each. */
typedef struct step {
    const int8_t *x;
    size_t x_stride;
    const char *w;
    size_t w_stride;
} step;

FT_INLINE void multiply_step(const step *s, bool second_rows, bool second_cols)
{
    _tile_loadd(4, s->x, s->x_stride);
    _tile_loadd(6, s->w, s->w_stride);
    _tile_dpbsud(0, 4, 6);
    if (second_cols) {
        _tile_loadd(7, s->w + TILE_BYTES, s->w_stride);
        _tile_dpbsud(1, 4, 7);
    }
    if (second_rows) {
        _tile_loadd(5, s->x + TILE_ROWS * s->x_stride, s->x_stride);
        _tile_dpbsud(2, 5, 6);
        if (second_cols)
            _tile_dpbsud(3, 5, 7);
    }
}

/* The last step, with fewer than 16 quads: copies, padded with zeros. */
FT_INLINE void multiply_tail(const ft_i8_tile *t, const step *s, size_t quads, bool second_rows,
                             bool second_cols)
{
    _Alignas(64) int8_t x[2 * TILE_ROWS * TILE_BYTES] = { 0 };
    _Alignas(64) char w[TILE_QUADS * 2 * TILE_BYTES] = { 0 };
    for (size_t row = 0; row < t->rows; row++)
        memcpy(x + row * TILE_BYTES, s->x + row * s->x_stride, 4 * quads);
    for (size_t q = 0; q < quads; q++)
        memcpy(w + q * 2 * TILE_BYTES, s->w + q * s->w_stride,
               second_cols ? 2 * TILE_BYTES : TILE_BYTES);
    multiply_step(&(step){ x, TILE_BYTES, w, 2 * TILE_BYTES }, second_rows, second_cols);
}

/* Restores the order of a vector of the panel and adds the initial accumulators. */
static void store_rows(const ft_i8_tile *t, const int32_t *sums, size_t first, size_t rows,
                       int32_t *out)
{
    const __m512i order =
        _mm512_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7, 8, 12, 9, 13, 10, 14, 11, 15);
    for (size_t row = 0; row < rows; row++, sums += TILE_ROWS) {
        __m512i sum = _mm512_permutexvar_epi32(order, _mm512_load_si512(sums));
        _mm512_storeu_si512(out + (first + row) * t->out_stride,
                            _mm512_add_epi32(sum, _mm512_set1_epi32(t->acc_init[first + row])));
    }
}

FT_INLINE void store_tiles(const ft_i8_tile *t, int32_t *out, bool second_rows, bool second_cols)
{
    _Alignas(64) int32_t sums[4][TILE_ROWS * TILE_ROWS];
    size_t first = ft_min_size(t->rows, TILE_ROWS);
    _tile_stored(0, sums[0], TILE_BYTES);
    if (second_cols)
        _tile_stored(1, sums[1], TILE_BYTES);
    if (second_rows)
        _tile_stored(2, sums[2], TILE_BYTES);
    if (second_rows && second_cols)
        _tile_stored(3, sums[3], TILE_BYTES);
    store_rows(t, sums[0], 0, first, out);
    if (second_cols)
        store_rows(t, sums[1], 0, first, out + TILE_ROWS);
    if (second_rows)
        store_rows(t, sums[2], first, t->rows - first, out);
    if (second_rows && second_cols)
        store_rows(t, sums[3], first, t->rows - first, out + TILE_ROWS);
}

/* All of k against one or two vectors of the panel; quads are w_stride bytes apart. */
FT_INLINE void multiply_vectors(const ft_i8_tile *t, const char *w, size_t w_stride, int32_t *out,
                                const int8_t *prefetch, bool second_rows, bool second_cols)
{
    step s = { t->x, t->x_stride, w, w_stride };
    size_t q = 0;
    _tile_zero(0);
    _tile_zero(1);
    if (second_rows) {
        _tile_zero(2);
        _tile_zero(3);
    }
    for (; q + TILE_QUADS <= t->k_quads; q += TILE_QUADS) {
        multiply_step(&s, second_rows, second_cols);
        for (int block = 0; block < 2; block++, prefetch += t->prefetch.stride)
            ft_i8_prefetch_lines(prefetch, t->prefetch.lines);
        s.x += TILE_BYTES;
        s.w += TILE_QUADS * w_stride;
    }
    if (q < t->k_quads)
        multiply_tail(t, &s, t->k_quads - q, second_rows, second_cols);
    store_tiles(t, out, second_rows, second_cols);
}

FT_INLINE void multiply_panel(const ft_i8_tile *t, const char *panel, size_t vectors,
                              bool second_rows)
{
    size_t w_stride = vectors * TILE_BYTES;
    for (size_t v = 0; v < vectors; v += 2) {
        /* Every part of a panel sees the whole k: one of them prefetches. */
        ft_i8_tile part = *t;
        part.prefetch.lines = v == 0 ? t->prefetch.lines : 0;
        if (v + 1 < vectors)
            multiply_vectors(&part, panel + v * TILE_BYTES, w_stride, t->out + v * 16,
                             t->prefetch.at, second_rows, true);
        else
            multiply_vectors(&part, panel + v * TILE_BYTES, w_stride, t->out + v * 16,
                             t->prefetch.at, second_rows, false);
    }
}

void ft_i8_amx_gemm_block(const ft_i8_tile *t, const void *panel, size_t panel_rows)
{
    configure(t->rows);
    if (t->rows > TILE_ROWS)
        multiply_panel(t, panel, (panel_rows + 15) / 16, true);
    else
        multiply_panel(t, panel, (panel_rows + 15) / 16, false);
    _tile_release();
}
