/*
 * i8_amx.c - int8 GEMM with AMX: tiles of 16 rows x 64 bytes.
 *
 * A panel of i8_avx512.c already has the form of tiles: 16 quads of 16 weight rows are 16 rows of
 * 64 bytes. Its bytes are unsigned, weight + 128, and the accumulators of each row start at -128
 * times the sum of its x. TDPBSUD multiplies signed by unsigned bytes, so the sums equal those of
 * vpdpbusd.
 *
 * Four accumulators, 32 rows of x against 32 weight rows, take two tiles of x and two of the panel
 * for every 64 elements of k. A tile comes four times as fast from L1 as from L2, so 768 elements
 * of 32 weight rows, 24 KB, are multiplied by all rows of a block before the next ones. Until the
 * last of them the sums stay in packed order. The operating system keeps the tiles of each thread;
 * they are released at the end, so that they are not part of its state in between.
 *
 * Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, TDPBSUD.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cpu/gemm/int8/i8_amx.h"

#include "kernels/cpu/base/simd.h"

#include <string.h>

enum {
    TILE_ROWS = 16,
    TILE_BYTES = 64,
    TILE_QUADS = 16,
    PAIR_ROWS = 2 * TILE_ROWS, /* of x, whose two tiles share those of the panel */
    CHUNK_QUADS = 192,         /* of k: what stays in L1 */
};

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

/* Up to PAIR_ROWS rows of x against a chunk of k of one or two vectors of the panel. */
typedef struct product {
    step first;
    size_t rows, quads;
    int32_t *out; /* the sums so far, in packed order */
    size_t out_stride;
    bool continues; /* there are sums */
    ft_i8_prefetch prefetch;
} product;

/* The last step, with fewer than 16 quads: copies, padded with zeros. */
FT_INLINE void multiply_tail(const step *s, size_t rows, size_t quads, bool second_rows,
                             bool second_cols)
{
    _Alignas(64) int8_t x[PAIR_ROWS * TILE_BYTES] = { 0 };
    _Alignas(64) char w[TILE_QUADS * 2 * TILE_BYTES] = { 0 };
    for (size_t row = 0; row < rows; row++)
        memcpy(x + row * TILE_BYTES, s->x + row * s->x_stride, 4 * quads);
    for (size_t q = 0; q < quads; q++)
        memcpy(w + q * 2 * TILE_BYTES, s->w + q * s->w_stride,
               second_cols ? 2 * TILE_BYTES : TILE_BYTES);
    multiply_step(&(step){ x, TILE_BYTES, w, 2 * TILE_BYTES }, second_rows, second_cols);
}

FT_INLINE void begin_sums(const product *p, bool second_rows, bool second_cols)
{
    size_t bytes = p->out_stride * sizeof *p->out;
    int32_t *second = p->out + TILE_ROWS * p->out_stride;
    if (!p->continues) {
        _tile_zero(0);
        _tile_zero(1);
        if (second_rows) { /* otherwise these tiles have no rows, and the instruction faults */
            _tile_zero(2);
            _tile_zero(3);
        }
        return;
    }
    _tile_loadd(0, p->out, bytes);
    if (second_cols)
        _tile_loadd(1, p->out + TILE_ROWS, bytes);
    if (second_rows)
        _tile_loadd(2, second, bytes);
    if (second_rows && second_cols)
        _tile_loadd(3, second + TILE_ROWS, bytes);
}

FT_INLINE void store_sums(const product *p, bool second_rows, bool second_cols)
{
    size_t bytes = p->out_stride * sizeof *p->out;
    int32_t *second = p->out + TILE_ROWS * p->out_stride;
    _tile_stored(0, p->out, bytes);
    if (second_cols)
        _tile_stored(1, p->out + TILE_ROWS, bytes);
    if (second_rows)
        _tile_stored(2, second, bytes);
    if (second_rows && second_cols)
        _tile_stored(3, second + TILE_ROWS, bytes);
}

FT_INLINE void multiply_tiles(const product *p, bool second_rows, bool second_cols)
{
    step s = p->first;
    const int8_t *prefetch = p->prefetch.at;
    size_t q = 0;
    begin_sums(p, second_rows, second_cols);
    for (; q + TILE_QUADS <= p->quads; q += TILE_QUADS) {
        multiply_step(&s, second_rows, second_cols);
        for (int block = 0; block < 2; block++, prefetch += p->prefetch.stride)
            ft_i8_prefetch_lines(prefetch, p->prefetch.lines);
        s.x += TILE_BYTES;
        s.w += TILE_QUADS * s.w_stride;
    }
    if (q < p->quads)
        multiply_tail(&s, p->rows, p->quads - q, second_rows, second_cols);
    store_sums(p, second_rows, second_cols);
}

static void multiply(const product *p, bool second_cols)
{
    if (p->rows > TILE_ROWS && second_cols)
        multiply_tiles(p, true, true);
    else if (p->rows > TILE_ROWS)
        multiply_tiles(p, true, false);
    else if (second_cols)
        multiply_tiles(p, false, true);
    else
        multiply_tiles(p, false, false);
}

/* Restores the order of sums of one or two vectors and adds the initial accumulators. */
static void finish_sums(const product *p, const int32_t *acc_init, bool second_cols)
{
    const __m512i order = _mm512_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7, 8, 12, 9, 13, 10, 14, 11, 15);
    for (size_t row = 0; row < p->rows; row++) {
        int32_t *out = p->out + row * p->out_stride;
        __m512i init = _mm512_set1_epi32(acc_init[row]);
        for (int v = 0; v <= second_cols; v++, out += TILE_ROWS) {
            __m512i sum = _mm512_permutexvar_epi32(order, _mm512_loadu_si512(out));
            _mm512_storeu_si512(out, _mm512_add_epi32(sum, init));
        }
    }
}

/* The part of the lines to prefetch that rows `index` of `count` request, from quad q on. */
static ft_i8_prefetch prefetch_share(const ft_i8_prefetch *all, size_t q, size_t index,
                                     size_t count)
{
    ft_i8_prefetch share = { .stride = all->stride };
    size_t first = ft_i8_partition(all->lines, index, count, &share.lines);
    share.at = all->at + q / (FT_I8_BLOCK / 4) * all->stride + first * 64;
    return share;
}

/* All rows against a chunk of k of one or two vectors of the panel, `col` rows from its first. */
static void multiply_chunk(const ft_i8_tile *t, const char *w, size_t w_stride, size_t col,
                           size_t q, bool second_cols)
{
    size_t pairs = (t->rows + PAIR_ROWS - 1) / PAIR_ROWS, configured = 0;
    for (size_t pair = 0; pair < pairs; pair++) {
        size_t row = pair * PAIR_ROWS;
        product p = {
            .first = { t->x + row * t->x_stride + 4 * q, t->x_stride, w, w_stride },
            .rows = ft_min_size(t->rows - row, PAIR_ROWS),
            .quads = ft_min_size(t->k_quads - q, CHUNK_QUADS),
            .out = t->out + row * t->out_stride + col,
            .out_stride = t->out_stride,
            .continues = q > 0,
            .prefetch = prefetch_share(&t->prefetch, q, pair, pairs),
        };
        if (col > 0) /* the first rows of the panel have requested all lines */
            p.prefetch.lines = 0;
        if (p.rows != configured)
            configure(p.rows);
        configured = p.rows;
        multiply(&p, second_cols);
        if (q + p.quads == t->k_quads)
            finish_sums(&p, t->acc_init + row, second_cols);
    }
}

void ft_i8_amx_gemm_block(const ft_i8_tile *t, const void *panel, size_t panel_rows)
{
    size_t vectors = (panel_rows + TILE_ROWS - 1) / TILE_ROWS, w_stride = vectors * TILE_BYTES;
    for (size_t v = 0; v < vectors; v += 2)
        for (size_t q = 0; q < t->k_quads; q += CHUNK_QUADS)
            multiply_chunk(t, (const char *) panel + q * w_stride + v * TILE_BYTES, w_stride,
                           v * TILE_ROWS, q, v + 1 < vectors);
    _tile_release();
}
