/*
 * i8_ymm.h - panel packing and the loops of the GEMMs shared by the instruction sets with 256-bit
 * vectors.
 *
 * A panel consists of strips of 8 rows. A strip holds, for each quad, one vector of 8 rows x 4 k
 * (plus what else a file adds to it). The even rows come first, as in COL4_4R2_8C; unpermute()
 * restores the order of the outputs.
 *
 * The including file defines QUAD_BYTES, the bytes of a quad of a strip, TILE_STRIPS, the strips of
 * a register tile, and the functions declared here.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CPU_GEMM_INT8_I8_YMM_H
#define FT_KERNELS_CPU_GEMM_INT8_I8_YMM_H

#include "kernels/cpu/gemm/int8/i8.h"
#include "kernels/cpu/base/simd_i32.h"

enum { STRIP = 8 /* rows */ };

/* Stores a quad of a strip. */
static void store_quad(char *to, __m256i weights);

/* sum += one quad of each row, at x[row] + at, times the quads of TILE_STRIPS strips. */
FT_INLINE void dot_rows(__m256i sum[FT_I8_TILE][TILE_STRIPS], const char *w, size_t strip,
                        const int8_t *const x[FT_I8_TILE], size_t at, int rows);

/* out += a tile of 8 weight rows x 32 k times all rows of x; the tile is loaded once. */
static void stream_tile(const ft_i8_tile *tile, const int8_t *weights, const int8_t *x,
                        int32_t *out);

FT_INLINE size_t strip_bytes(size_t k)
{
    return (k + 31) / 32 * 8 * QUAD_BYTES;
}

/* Restores the order of dwords 0 2 4 6 1 3 5 7 to 0 1 2 3 4 5 6 7. */
FT_INLINE __m256i unpermute(__m256i acc)
{
    return _mm256_permutevar8x32_epi32(acc, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}

/* Two quads of a COL4_4R2_8C tile: 16 bytes of even rows and, 128 bytes later, 16 of odd rows. */
FT_INLINE void load_two_quads(__m256i quads[2], const int8_t *tile)
{
    __m256i even = _mm256_loadu_si256((const __m256i *) tile);
    __m256i odd = _mm256_loadu_si256((const __m256i *) (tile + 128));
    quads[0] = _mm256_permute2x128_si256(even, odd, 0x20);
    quads[1] = _mm256_permute2x128_si256(even, odd, 0x31);
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
            char *to = (char *) panel + strip * strip_bytes(k) + k_offset / 4 * QUAD_BYTES;
            for (size_t line = 0; line < 256; line += 64)
                __builtin_prefetch(
                    (const void *) ((uintptr_t) tile + PREFETCH_DISTANCE * block_bytes + line));
            FT_UNROLL
            for (size_t q = 0; q < 8; q += 2) {
                __m256i quads[2];
                load_two_quads(quads, tile + q * 16);
                store_quad(to + q * QUAD_BYTES, quads[0]);
                store_quad(to + (q + 1) * QUAD_BYTES, quads[1]);
            }
        }
}

/* Four quads of 8 rows of 16 bytes. */
FT_INLINE void transpose_rows(__m256i quads[4], const int8_t *from, size_t stride)
{
    __m256i pair[4]; /* rows 2i and 2i + 1 */
    FT_UNROLL
    for (size_t i = 0; i < 4; i++) {
        __m128i even = _mm_loadu_si128((const __m128i *) (from + 2 * i * stride));
        __m128i odd = _mm_loadu_si128((const __m128i *) (from + (2 * i + 1) * stride));
        pair[i] = _mm256_inserti128_si256(_mm256_castsi128_si256(even), odd, 1);
    }
    __m256i low01 = _mm256_unpacklo_epi32(pair[0], pair[1]);
    __m256i high01 = _mm256_unpackhi_epi32(pair[0], pair[1]);
    __m256i low23 = _mm256_unpacklo_epi32(pair[2], pair[3]);
    __m256i high23 = _mm256_unpackhi_epi32(pair[2], pair[3]);
    quads[0] = _mm256_unpacklo_epi64(low01, low23);
    quads[1] = _mm256_unpackhi_epi64(low01, low23);
    quads[2] = _mm256_unpacklo_epi64(high01, high23);
    quads[3] = _mm256_unpackhi_epi64(high01, high23);
}

/* Strip `row` / STRIP; each of its quads has QUAD_BYTES. */
FT_INLINE char *packed_vector(void *panel, size_t row, size_t rows, size_t k, size_t *quad_bytes)
{
    (void) rows;
    *quad_bytes = QUAD_BYTES;
    return (char *) panel + row / STRIP * strip_bytes(k);
}

#include "kernels/cpu/gemm/int8/i8_pack_rows.h"

/* One quad of 8 columns, from 4 rows of 8 bytes. */
FT_INLINE __m256i transpose_cols(const int8_t *from, size_t stride)
{
    __m128i row[4];
    FT_UNROLL
    for (size_t i = 0; i < 4; i++)
        row[i] = _mm_loadl_epi64((const __m128i *) (from + i * stride));
    __m128i row01 = _mm_unpacklo_epi8(row[0], row[1]), row23 = _mm_unpacklo_epi8(row[2], row[3]);
    __m256i cols = _mm256_castsi128_si256(_mm_unpacklo_epi16(row01, row23));
    cols = _mm256_inserti128_si256(cols, _mm_unpackhi_epi16(row01, row23), 1);
    return _mm256_permutevar8x32_epi32(cols, _mm256_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7));
}

static void pack_cols(void *panel, const int8_t *from, size_t stride, size_t rows, size_t k)
{
    for (size_t row = 0; row < rows; row += STRIP) {
        size_t n_rows = rows - row < STRIP ? rows - row : STRIP;
        char *to = (char *) panel + row / STRIP * strip_bytes(k);
        for (size_t i = 0; i < k; i += 4, to += QUAD_BYTES) {
            const int8_t *src = from + i * stride + row;
            size_t height = k - i < 4 ? k - i : 4;
            if (n_rows == STRIP && height == 4) {
                store_quad(to, transpose_cols(src, stride));
            } else {
                int8_t edge[4][STRIP] = { 0 };
                for (size_t j = 0; j < height; j++)
                    memcpy(edge[j], src + j * stride, n_rows);
                store_quad(to, transpose_cols(edge[0], sizeof edge[0]));
            }
        }
    }
}

/* rows x TILE_STRIPS strips, with the accumulators of all of k in registers. */
FT_INLINE void gemm_strips(const ft_i8_tile *tile, const char *w, size_t strip,
                           const ft_i8_prefetch *prefetch, int32_t *out, int rows)
{
    const int8_t *x[FT_I8_TILE], *prefetch_at = prefetch->at;
    __m256i sum[FT_I8_TILE][TILE_STRIPS];
    FT_UNROLL
    for (int row = 0; row < rows; row++) {
        x[row] = tile->x + (size_t) row * tile->x_stride;
        FT_UNROLL
        for (int i = 0; i < TILE_STRIPS; i++)
            sum[row][i] = _mm256_set1_epi32(tile->acc_init[row]);
    }
    size_t q = 0;
    for (; q + 8 <= tile->k_quads; q += 8, prefetch_at += prefetch->stride) {
        ft_i8_prefetch_lines(prefetch_at, prefetch->lines);
        for (size_t i = 0; i < 8; i++)
            dot_rows(sum, w + (q + i) * QUAD_BYTES, strip, x, 4 * (q + i), rows);
    }
    for (; q < tile->k_quads; q++)
        dot_rows(sum, w + q * QUAD_BYTES, strip, x, 4 * q, rows);
    FT_UNROLL
    for (int row = 0; row < rows; row++) {
        int32_t *to = out + (size_t) row * tile->out_stride;
        FT_UNROLL
        for (int i = 0; i < TILE_STRIPS; i++, to += STRIP)
            _mm256_storeu_si256((__m256i *) to, unpermute(sum[row][i]));
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
FT_INLINE void stream_tiles(const ft_i8_tile *tile, const int8_t *w, size_t padded_n, size_t first,
                            size_t weight_rows)
{
    enum { PREFETCH_DISTANCE = 96 }; /* rows */
    size_t block_bytes = padded_n * 32, blocks = tile->k_quads / 8;
    size_t streamed_bytes = ft_round_up(weight_rows, STRIP) * 32;
    for (size_t row = 0; row < tile->rows; row++)
        for (size_t i = 0; i < weight_rows; i += STRIP)
            _mm256_storeu_si256((__m256i *) (tile->out + row * tile->out_stride + i),
                                _mm256_set1_epi32(tile->acc_init[row]));
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
        for (size_t i = 0; i < weight_rows; i += STRIP) {
            __m256i *acc = (__m256i *) (tile->out + row * tile->out_stride + i);
            _mm256_storeu_si256(acc, unpermute(_mm256_loadu_si256(acc)));
        }
}

static void stream(const ft_i8_tile *tile, const int8_t *w, size_t padded_n, size_t first,
                   size_t weight_rows)
{
    stream_tiles(tile, w, padded_n, first, weight_rows);
}

#endif
