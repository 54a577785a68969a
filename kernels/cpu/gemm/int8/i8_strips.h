/*
 * i8_strips.h - panel packing and the loops of the GEMMs shared by the instruction sets with
 * vectors of 128 or 256 bits.
 *
 * A panel consists of strips of 8 rows. A strip holds, for each quad, 8 rows x 4 k (plus what else
 * a file adds to it). The even rows come first, as in COL4_4R2_8C; the accumulators are stored in
 * the order of the rows.
 *
 * The including file defines QUAD_BYTES, the bytes of a quad of a strip, TILE_STRIPS, the strips of
 * a register tile, ROW_STEP, the rows of x that it multiplies at once, and the functions declared
 * here. Its header for the vectors defines strip_quad, a quad of a strip, and strip_acc, the 8
 * accumulators of a row of x.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CPU_GEMM_INT8_I8_STRIPS_H
#define FT_KERNELS_CPU_GEMM_INT8_I8_STRIPS_H

#include "kernels/cpu/gemm/int8/i8.h"
#include "kernels/cpu/base/simd_i32.h"

enum { STRIP = 8 /* rows */, PACK_ROWS = STRIP, BLOCK_QUADS = FT_I8_BLOCK / 4 };

typedef strip_quad packed_quad;

/* The accumulators of a register tile. */
typedef strip_acc tile_acc[FT_I8_TILE][TILE_STRIPS];

/* ---- By the header for the vectors -------------------------------------------------------- */

/* Two quads of a COL4_4R2_8C tile: 16 bytes of even rows and, 128 bytes later, 16 of odd rows. */
FT_INLINE void load_two_quads(strip_quad quads[2], const int8_t *tile);

/* Four quads of 8 rows of 16 bytes. */
FT_INLINE void transpose_rows(strip_quad quads[4], const int8_t *from, size_t stride);

/* One quad of 8 columns, from 4 rows of 8 bytes. */
FT_INLINE strip_quad transpose_cols(const int8_t *from, size_t stride);

/* Brings 8 accumulators of stream_tile() into the order of the weight rows. */
FT_INLINE void unpermute_stored(int32_t *acc);

/* ---- By the including file ---------------------------------------------------------------- */

/* Stores `count` quads of a strip, from the even quad `q` on. */
FT_INLINE void store_quads(char *strip, size_t quad_bytes, size_t q, const strip_quad *quads,
                           size_t count);

FT_INLINE void init_acc(tile_acc sum, const int32_t *acc_init, int rows);

/* sum += `quads` quads of each row of x times those of TILE_STRIPS strips. */
FT_INLINE void dot_block(tile_acc sum, const char *w, size_t strip,
                         const int8_t *const x[FT_I8_TILE], size_t at, int rows);
FT_INLINE void dot_tail(tile_acc sum, const char *w, size_t strip,
                        const int8_t *const x[FT_I8_TILE], size_t at, size_t quads, int rows);

/* Stores the accumulators of a row and a strip in the order of the weight rows. */
FT_INLINE void store_acc(int32_t *to, tile_acc sum, int row, int strip);

/* out += a tile of 8 weight rows x 32 k times all rows of x; the tile is loaded once. */
static void stream_tile(const ft_i8_tile *tile, const int8_t *weights, const int8_t *x,
                        int32_t *out);

/* ---- Packing ------------------------------------------------------------------------------ */

FT_INLINE size_t strip_bytes(size_t k)
{
    return (k + 31) / 32 * 8 * QUAD_BYTES;
}

static void pack_col4(void *panel, const int8_t *w, size_t padded_n, size_t k, size_t first,
                      size_t rows)
{
    enum { PREFETCH_DISTANCE = 4 }; /* blocks of k */
    size_t block_bytes = padded_n * 32, strips = (rows + STRIP - 1) / STRIP;
    const int8_t *block = w + first * 32;
    for (size_t k_offset = 0; k_offset < k; k_offset += 32, block += block_bytes)
        for (size_t strip = 0; strip < strips; strip++) {
            const int8_t *tile = block + strip * 256;
            char *to = (char *) panel + strip * strip_bytes(k);
            for (size_t line = 0; line < 256; line += 64)
                __builtin_prefetch(
                    (const void *) ((uintptr_t) tile + PREFETCH_DISTANCE * block_bytes + line));
            FT_UNROLL
            for (size_t q = 0; q < 8; q += 2) {
                strip_quad quads[2];
                load_two_quads(quads, tile + q * 16);
                store_quads(to, QUAD_BYTES, k_offset / 4 + q, quads, 2);
            }
        }
}

/* Strip `row` / STRIP; each of its quads has QUAD_BYTES. */
FT_INLINE char *packed_vector(void *panel, size_t row, size_t rows, size_t k, size_t *quad_bytes)
{
    (void) rows;
    *quad_bytes = QUAD_BYTES;
    return (char *) panel + row / STRIP * strip_bytes(k);
}

#include "kernels/cpu/gemm/int8/i8_pack_rows.h"

/* A quad of at most 8 columns, padded with zeros. */
FT_INLINE strip_quad load_cols(const int8_t *from, size_t stride, size_t rows, size_t height)
{
    if (rows == STRIP && height == 4)
        return transpose_cols(from, stride);
    int8_t edge[4][STRIP] = { 0 };
    for (size_t i = 0; i < height; i++)
        memcpy(edge[i], from + i * stride, rows);
    return transpose_cols(edge[0], sizeof edge[0]);
}

static void pack_cols(void *panel, const int8_t *from, size_t stride, size_t rows, size_t k)
{
    for (size_t row = 0; row < rows; row += STRIP) {
        size_t n_rows = ft_min_size(rows - row, STRIP);
        char *to = (char *) panel + row / STRIP * strip_bytes(k);
        for (size_t i = 0; i < k; i += 8) {
            const int8_t *src = from + i * stride + row;
            size_t count = k - i > 4 ? 2 : 1;
            strip_quad quads[2];
            quads[0] = load_cols(src, stride, n_rows, ft_min_size(k - i, 4));
            if (count == 2)
                quads[1] = load_cols(src + 4 * stride, stride, n_rows, ft_min_size(k - i - 4, 4));
            store_quads(to, QUAD_BYTES, i / 4, quads, count);
        }
    }
}

/* ---- Multiplying -------------------------------------------------------------------------- */

/*
 * rows x TILE_STRIPS strips, with the accumulators of all of k in registers. The last row is
 * repeated up to a multiple of ROW_STEP.
 */
FT_INLINE void gemm_strips(const ft_i8_tile *tile, const char *w, size_t strip,
                           const ft_i8_prefetch *prefetch, int32_t *out, int rows)
{
    const int8_t *x[FT_I8_TILE], *prefetch_at = prefetch->at;
    int padded_rows = (rows + ROW_STEP - 1) / ROW_STEP * ROW_STEP;
    tile_acc sum;
    FT_UNROLL
    for (int row = 0; row < padded_rows; row++)
        x[row] = tile->x + (size_t) (row < rows ? row : rows - 1) * tile->x_stride;
    init_acc(sum, tile->acc_init, padded_rows);
    size_t q = 0;
    for (; q + 8 <= tile->k_quads; q += 8, prefetch_at += prefetch->stride) {
        ft_i8_prefetch_lines(prefetch_at, prefetch->lines);
        dot_block(sum, w + q * QUAD_BYTES, strip, x, 4 * q, padded_rows);
    }
    dot_tail(sum, w + q * QUAD_BYTES, strip, x, 4 * q, tile->k_quads - q, padded_rows);
    FT_UNROLL
    for (int row = 0; row < rows; row++) {
        int32_t *to = out + (size_t) row * tile->out_stride;
        FT_UNROLL
        for (int i = 0; i < TILE_STRIPS; i++, to += STRIP)
            store_acc(to, sum, row, i);
    }
}

typedef void strips_fn(const ft_i8_tile *tile, const char *w, size_t strip,
                       const ft_i8_prefetch *prefetch, int32_t *out);

#define STRIPS_FUNCTION(rows)                                                                      \
    static void gemm_strips_##rows(const ft_i8_tile *tile, const char *w, size_t strip,            \
                                   const ft_i8_prefetch *prefetch, int32_t *out)                   \
    {                                                                                              \
        gemm_strips(tile, w, strip, prefetch, out, rows);                                          \
    }
STRIPS_FUNCTION(1)
STRIPS_FUNCTION(2)
STRIPS_FUNCTION(3)
STRIPS_FUNCTION(4)
STRIPS_FUNCTION(5)
STRIPS_FUNCTION(6)

/* TILE_STRIPS strips of the panel at a time; each iteration prefetches its share of the lines. */
static void gemm_tile(const ft_i8_tile *tile, const void *panel, size_t panel_rows)
{
    static strips_fn *const functions[FT_I8_TILE] = { gemm_strips_1, gemm_strips_2, gemm_strips_3,
                                                      gemm_strips_4, gemm_strips_5, gemm_strips_6 };
    strips_fn *fn = functions[tile->rows - 1];
    size_t rows = TILE_STRIPS * STRIP, strip = strip_bytes(4 * tile->k_quads);
    size_t n_iterations = (panel_rows + rows - 1) / rows;
    for (size_t i = 0; i < n_iterations; i++) {
        ft_i8_prefetch prefetch = { .stride = tile->prefetch.stride };
        prefetch.at = tile->prefetch.at +
                      64 * ft_i8_partition(tile->prefetch.lines, i, n_iterations, &prefetch.lines);
        fn(tile, (const char *) panel + i * TILE_STRIPS * strip, strip, &prefetch,
           tile->out + i * rows);
    }
}

/* In memory order, two neighbouring blocks of k at a time, one tile of 8 rows each. */
static void stream(const ft_i8_tile *tile, const int8_t *w, size_t padded_n, size_t first,
                   size_t weight_rows)
{
    enum { PREFETCH_DISTANCE = 96 }; /* rows */
    size_t block_bytes = padded_n * 32, blocks = tile->k_quads / 8;
    size_t streamed_bytes = ft_round_up(weight_rows, STRIP) * 32;
    for (size_t row = 0; row < tile->rows; row++)
        for (size_t i = 0; i < weight_rows; i += STRIP)
            for (size_t j = 0; j < STRIP; j++)
                tile->out[row * tile->out_stride + i + j] = tile->acc_init[row];
    for (size_t block = 0; block < blocks; block += 2) {
        const int8_t *at = w + block * block_bytes + first * 32;
        for (size_t row = 0; row < weight_rows; row += STRIP, at += STRIP * 32) {
            size_t prefetch =
                PREFETCH_DISTANCE * 32 +
                (row + PREFETCH_DISTANCE < weight_rows ? 0 : 2 * block_bytes - streamed_bytes);
            for (size_t i = block; i < block + 2 && i < blocks; i++) {
                const int8_t *weights = at + (i - block) * block_bytes;
                FT_UNROLL
                for (size_t line = 0; line < 256; line += 64)
                    __builtin_prefetch((const void *) ((uintptr_t) weights + prefetch + line));
                stream_tile(tile, weights, tile->x + i * 32, tile->out + row);
            }
        }
    }
    for (size_t row = 0; row < tile->rows; row++)
        for (size_t i = 0; i < weight_rows; i += STRIP)
            unpermute_stored(tile->out + row * tile->out_stride + i);
}

#endif
