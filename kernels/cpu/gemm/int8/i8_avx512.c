/*
 * i8_avx512.c - int8 GEMM with AVX-512 VNNI.
 *
 * vpdpbusd multiplies unsigned by signed bytes: panels hold weight + 128 (the top bit flipped), and
 * the accumulators of each row start at -128 times the sum of its x. So x is used as it is in
 * memory, every weight down to -128 is exact, and nothing must be known about the weights
 * beforehand.
 *
 * A panel consists of groups of 64 rows (the last one may have 16, 32 or 48). A group holds, for
 * each quad, vectors of 16 rows x 4 k. In each 8 rows the even ones come first, as in COL4_4R2_8C;
 * gemm_tile() restores the order of the outputs.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cpu/gemm/int8/i8_amx.h"
#include "kernels/cpu/gemm/int8/i8_epilogue.h"
#include "kernels/cpu/gemm/int8/i8_softmax.h"
#include "kernels/cpu/base/simd_i32.h"

enum { GROUP = 64, VECTOR = 64 /* bytes */ };

FT_INLINE __m512i flip(__m512i weights)
{
    return _mm512_xor_si512(weights, _mm512_set1_epi8(-128));
}

/* Restores the order of dwords 0 2 4 6 1 3 5 7 to 0 1 2 3 4 5 6 7, in both halves. */
FT_INLINE __m512i unpermute(__m512i acc)
{
    return _mm512_permutexvar_epi32(
        _mm512_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7, 8, 12, 9, 13, 10, 14, 11, 15), acc);
}

/* 4 x 4 transpose of 128-bit lanes: lane j of in[i] becomes lane i of out[j]. */
FT_INLINE void transpose_lanes(__m512i out[4], __m512i a, __m512i b, __m512i c, __m512i d)
{
    __m512i ab_low = _mm512_shuffle_i32x4(a, b, 0x44), ab_high = _mm512_shuffle_i32x4(a, b, 0xee);
    __m512i cd_low = _mm512_shuffle_i32x4(c, d, 0x44), cd_high = _mm512_shuffle_i32x4(c, d, 0xee);
    out[0] = _mm512_shuffle_i32x4(ab_low, cd_low, 0x88);
    out[1] = _mm512_shuffle_i32x4(ab_low, cd_low, 0xdd);
    out[2] = _mm512_shuffle_i32x4(ab_high, cd_high, 0x88);
    out[3] = _mm512_shuffle_i32x4(ab_high, cd_high, 0xdd);
}

/*
 * Eight quads of 16 rows, from two tiles of 8 rows x 32 k. Each tile holds the even rows, then the
 * odd ones, 16 bytes per quad of four rows. Loads are in memory order.
 */
FT_INLINE void load_quads(__m512i quads[8], const int8_t *tile, const int8_t *next_tile)
{
    __m512i even[2], odd[2], next_even[2], next_odd[2];
    FT_UNROLL
    for (int h = 0; h < 2; h++) {
        even[h] = flip(_mm512_loadu_si512(tile + h * VECTOR));
        odd[h] = flip(_mm512_loadu_si512(tile + 128 + h * VECTOR));
        next_even[h] = flip(_mm512_loadu_si512(next_tile + h * VECTOR));
        next_odd[h] = flip(_mm512_loadu_si512(next_tile + 128 + h * VECTOR));
    }
    FT_UNROLL
    for (int h = 0; h < 2; h++)
        transpose_lanes(quads + 4 * h, even[h], odd[h], next_even[h], next_odd[h]);
}

static void pack_col4(void *panel, const int8_t *w, size_t padded_n, size_t k, size_t first,
                      size_t rows)
{
    enum { PREFETCH_DISTANCE = 4 }; /* blocks of k */
    size_t vectors = (rows + 15) / 16, block_bytes = padded_n * 32;
    char *to = panel;
    const int8_t *block = w + first * 32;
    for (size_t k_offset = 0; k_offset < k;
         k_offset += 32, block += block_bytes, to += 8 * vectors * VECTOR) {
        for (size_t v = 0; v < vectors; v++) {
            const int8_t *tile = block + v * 512;
            const int8_t *next_tile = first + v * 16 + 8 < padded_n ? tile + 256 : tile;
            for (size_t line = 0; line < 512; line += 64)
                __builtin_prefetch(
                    (const void *) ((uintptr_t) tile + PREFETCH_DISTANCE * block_bytes + line));
            __m512i quads[8];
            load_quads(quads, tile, next_tile);
            FT_UNROLL
            for (size_t q = 0; q < 8; q++)
                _mm512_store_si512(to + (q * vectors + v) * VECTOR, quads[q]);
        }
    }
}

/* The row at `slot` of the packed order. */
FT_INLINE size_t row_of_slot(size_t slot)
{
    return (slot & 8) + (slot & 3) * 2 + (slot >> 2 & 1);
}

/* Four quads of 16 rows: lane i of a vector holds slots 4i .. 4i + 3. */
FT_INLINE void transpose_rows(__m512i out[4], const int8_t *from, size_t stride)
{
    __m512i a[4];
    FT_UNROLL
    for (size_t i = 0; i < 4; i++) {
        __m128i lane[4];
        FT_UNROLL
        for (size_t j = 0; j < 4; j++)
            lane[j] = _mm_loadu_si128((const __m128i *) (from + row_of_slot(4 * j + i) * stride));
        __m512i v = _mm512_castsi128_si512(lane[0]);
        v = _mm512_inserti32x4(v, lane[1], 1);
        v = _mm512_inserti32x4(v, lane[2], 2);
        a[i] = flip(_mm512_inserti32x4(v, lane[3], 3));
    }
    __m512i low01 = _mm512_unpacklo_epi32(a[0], a[1]), high01 = _mm512_unpackhi_epi32(a[0], a[1]);
    __m512i low23 = _mm512_unpacklo_epi32(a[2], a[3]), high23 = _mm512_unpackhi_epi32(a[2], a[3]);
    out[0] = _mm512_unpacklo_epi64(low01, low23);
    out[1] = _mm512_unpackhi_epi64(low01, low23);
    out[2] = _mm512_unpacklo_epi64(high01, high23);
    out[3] = _mm512_unpackhi_epi64(high01, high23);
}

/* The vector of rows `row` .. row + 15 at quad 0, and the stride in bytes between quads. */
FT_INLINE char *packed_vector(void *panel, size_t row, size_t rows, size_t k, size_t *quad_bytes)
{
    size_t group = row / GROUP, padded_k = (k + 31) / 32 * 32;
    size_t n_left = rows - group * GROUP;
    size_t vectors = n_left < GROUP ? (n_left + 15) / 16 : GROUP / 16;
    *quad_bytes = vectors * VECTOR;
    return (char *) panel + group * GROUP * padded_k + row % GROUP / 16 * VECTOR;
}

FT_INLINE void store_quads(char *to, size_t quad_bytes, size_t q, const __m512i *quads,
                           size_t count)
{
    for (size_t i = 0; i < count; i++)
        _mm512_store_si512(to + (q + i) * quad_bytes, quads[i]);
}

enum { PACK_ROWS = 16 };
typedef __m512i packed_quad;

#include "kernels/cpu/gemm/int8/i8_pack_rows.h"

static void pack_cols(void *panel, const int8_t *from, size_t stride, size_t rows, size_t k)
{
    /* Byte 4 * slot + i comes from lane i, column row_of_slot(slot). */
    int8_t order[64];
    for (size_t byte = 0; byte < 64; byte++)
        order[byte] = (int8_t) (byte % 4 * 16 + row_of_slot(byte / 4));
    __m512i index = _mm512_loadu_si512(order);

    for (size_t row = 0; row < rows; row += 16) {
        size_t quad_bytes;
        char *to = packed_vector(panel, row, rows, k, &quad_bytes);
        __mmask16 n_rows = (__mmask16) (rows - row < 16 ? (1u << (rows - row)) - 1 : 0xffff);
        for (size_t q = 0; 4 * q < k; q++) {
            __m128i lane[4];
            FT_UNROLL
            for (size_t i = 0; i < 4; i++) {
                __mmask16 mask = 4 * q + i < k ? n_rows : 0;
                const int8_t *at = from + (mask != 0 ? 4 * q + i : 0) * stride + row;
                lane[i] = _mm_maskz_loadu_epi8(mask, at);
            }
            __m512i v = _mm512_castsi128_si512(lane[0]);
            v = _mm512_inserti32x4(v, lane[1], 1);
            v = _mm512_inserti32x4(v, lane[2], 2);
            v = _mm512_inserti32x4(v, lane[3], 3);
            _mm512_store_si512(to + q * quad_bytes, flip(_mm512_permutexvar_epi8(index, v)));
        }
    }
}

static void acc_init_rows(int32_t *acc_init, const int8_t *x, size_t stride, size_t rows,
                          size_t quads)
{
    const __m512i ones = _mm512_set1_epi8(1);
    for (size_t row = 0; row < rows; row++, x += stride) {
        __m512i sum = _mm512_setzero_si512();
        size_t q = 0;
        for (; q + 16 <= quads; q += 16)
            vi_dot_u8(&sum, ones, _mm512_loadu_si512(x + 4 * q));
        __mmask16 tail_mask = (__mmask16) ((1u << (quads - q)) - 1);
        vi_dot_u8(&sum, ones, _mm512_maskz_loadu_epi32(tail_mask, x + 4 * q));
        acc_init[row] = -128 * _mm512_reduce_add_epi32(sum);
    }
}

/* One quad of every row against `vectors` vectors of the panel. */
FT_INLINE void dot_rows(__m512i sum[FT_I8_TILE][4], const char *w,
                        const int8_t *const x[FT_I8_TILE], size_t at, int rows, int vectors)
{
    __m512i weights[4];
    FT_UNROLL
    for (int v = 0; v < vectors; v++)
        weights[v] = _mm512_load_si512(w + v * VECTOR);
    FT_UNROLL
    for (int row = 0; row < rows; row++) {
        __m512i x_quad = vi_broadcast(x[row] + at);
        FT_UNROLL
        for (int v = 0; v < vectors; v++)
            vi_dot_u8(&sum[row][v], weights[v], x_quad);
    }
}

/* rows x 16 * vectors, with the accumulators of all of k in registers. */
FT_INLINE void gemm_group(const ft_i8_tile *tile, const char *w, int32_t *out, int rows,
                          int vectors)
{
    const int8_t *x[FT_I8_TILE], *prefetch = tile->prefetch.at;
    __m512i sum[FT_I8_TILE][4];
    FT_UNROLL
    for (int row = 0; row < rows; row++) {
        x[row] = tile->x + (size_t) row * tile->x_stride;
        FT_UNROLL
        for (int v = 0; v < vectors; v++)
            sum[row][v] = _mm512_set1_epi32(tile->acc_init[row]);
    }
    size_t q = 0, bytes = (size_t) vectors * VECTOR;
    for (; q + 8 <= tile->k_quads; q += 8, prefetch += tile->prefetch.stride) {
        ft_i8_prefetch_lines(prefetch, tile->prefetch.lines);
        FT_UNROLL
        for (size_t i = 0; i < 8; i++)
            dot_rows(sum, w + i * bytes, x, 4 * (q + i), rows, vectors);
        w += 8 * bytes;
    }
    for (; q < tile->k_quads; q++, w += bytes)
        dot_rows(sum, w, x, 4 * q, rows, vectors);
    FT_UNROLL
    for (int row = 0; row < rows; row++) {
        FT_UNROLL
        for (int v = 0; v < vectors; v++)
            _mm512_storeu_si512(out + (size_t) row * tile->out_stride + v * 16,
                                unpermute(sum[row][v]));
    }
}

typedef void group_function(const ft_i8_tile *tile, const char *w, int32_t *out);

#define GROUP_FUNCTION(rows, vectors)                                                              \
    static void group_##rows##_##vectors(const ft_i8_tile *tile, const char *w, int32_t *out)      \
    {                                                                                              \
        gemm_group(tile, w, out, rows, vectors);                                                   \
    }
#define GROUP_FUNCTIONS(rows)                                                                      \
    GROUP_FUNCTION(rows, 1)                                                                        \
    GROUP_FUNCTION(rows, 2) GROUP_FUNCTION(rows, 3) GROUP_FUNCTION(rows, 4)
GROUP_FUNCTIONS(1)
GROUP_FUNCTIONS(2)
GROUP_FUNCTIONS(3)
GROUP_FUNCTIONS(4)
GROUP_FUNCTIONS(5)
GROUP_FUNCTIONS(6)

#define GROUP_NAMES(rows)                                                                          \
    {                                                                                              \
        group_##rows##_1, group_##rows##_2, group_##rows##_3, group_##rows##_4                     \
    }

static void gemm_tile(const ft_i8_tile *tile, const void *panel, size_t panel_rows)
{
    static group_function *const groups[FT_I8_TILE][4] = {
        GROUP_NAMES(1), GROUP_NAMES(2), GROUP_NAMES(3),
        GROUP_NAMES(4), GROUP_NAMES(5), GROUP_NAMES(6),
    };
    size_t padded_k = (tile->k_quads + 7) / 8 * 32;
    for (size_t row = 0; row < panel_rows; row += GROUP) {
        size_t n_left = panel_rows - row;
        size_t vectors = n_left < GROUP ? (n_left + 15) / 16 : GROUP / 16;
        groups[tile->rows - 1][vectors - 1](tile, (const char *) panel + row * padded_k,
                                            tile->out + row);
    }
}

/*
 * 16 weight rows x one or two blocks of k stay in registers while all rows of x are processed. The
 * outputs stay in packed order until the end.
 */
FT_INLINE void stream_block(const ft_i8_tile *tile, const int8_t *w, size_t block_bytes,
                            size_t next_tile, ptrdiff_t prefetch, const int8_t *x, int32_t *out,
                            size_t blocks)
{
    __m512i quads[2][8];
    FT_UNROLL
    for (size_t block = 0; block < blocks; block++, w += block_bytes) {
        FT_UNROLL
        for (ptrdiff_t line = 0; line < 512; line += 64)
            __builtin_prefetch((const void *) ((intptr_t) w + prefetch + line));
        load_quads(quads[block], w, w + next_tile);
    }
    for (size_t row = 0; row < tile->rows; row++, out += tile->out_stride, x += tile->x_stride) {
        __m512i sum[2] = { _mm512_loadu_si512(out), _mm512_setzero_si512() };
        FT_UNROLL
        for (size_t q = 0; q < 8; q++) {
            FT_UNROLL
            for (size_t block = 0; block < blocks; block++)
                vi_dot_u8_broadcast(&sum[block], quads[block][q], x + block * 32 + 4 * q);
        }
        _mm512_storeu_si512(out, _mm512_add_epi32(sum[0], sum[1]));
    }
}

/* Reads two streams: neighbouring blocks of k. */
static void stream(const ft_i8_tile *tile, const int8_t *w, size_t padded_n, size_t first,
                   size_t weight_rows)
{
    enum { PREFETCH_DISTANCE = 96 }; /* rows */
    size_t block_bytes = padded_n * 32, blocks = tile->k_quads / 8;
    for (size_t row = 0; row < tile->rows; row++)
        for (size_t i = 0; i < weight_rows; i += 16)
            _mm512_storeu_si512(tile->out + row * tile->out_stride + i,
                                _mm512_set1_epi32(tile->acc_init[row]));
    ptrdiff_t next_blocks_offset =
        (ptrdiff_t) (2 * block_bytes - ft_round_up(weight_rows, 16) * 32);
    for (size_t block = 0; block < blocks; block += 2) {
        const int8_t *at = w + block * block_bytes + first * 32, *x = tile->x + block * 32;
        for (size_t row = 0; row < weight_rows; row += 16, at += 16 * 32) {
            size_t next_tile = first + row + 8 < padded_n ? 256 : 0;
            ptrdiff_t prefetch = PREFETCH_DISTANCE * 32 +
                                 (row + PREFETCH_DISTANCE < weight_rows ? 0 : next_blocks_offset);
            if (block + 1 < blocks)
                stream_block(tile, at, block_bytes, next_tile, prefetch, x, tile->out + row, 2);
            else
                stream_block(tile, at, block_bytes, next_tile, prefetch, x, tile->out + row, 1);
        }
    }
    for (size_t row = 0; row < tile->rows; row++)
        for (size_t i = 0; i < weight_rows; i += 16) {
            int32_t *acc = tile->out + row * tile->out_stride + i;
            _mm512_storeu_si512(acc, unpermute(_mm512_loadu_si512(acc)));
        }
}

const ft_i8_kernels ft_i8_avx512 = { FT_I8_KERNELS, .stream = stream, .stream_rows = 32 };

#if defined HAVE_AMX
const ft_i8_kernels ft_i8_amx = { FT_I8_KERNELS, .gemm_block = ft_i8_amx_gemm_block,
                                  .stream = stream, .stream_rows = 32 };
#endif
