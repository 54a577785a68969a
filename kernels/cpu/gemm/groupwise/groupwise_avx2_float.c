/*
 * groupwise_avx2_float.c - GEMM with group-wise quantized weights and float activations, with AVX2.
 *
 * vpmaddubsw adds pairs of byte products in 16 bits, vpmaddwd pairs of 16-bit products in 32.
 *
 * 4-bit weights are multiplied with x digit by digit. The sum of a k_block has eight pairs, at most
 * 8
 * * 2 * 15 * 128, and stays in 16 bits until its end.
 *
 * 8-bit weights are multiplied with x as integers of 16 bits, even and odd columns separately. For
 * them each k_block of x holds the integers of even columns, then those of odd ones.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cpu/gemm/groupwise/groupwise_avx2_float.h"

#include "kernels/cpu/gemm/groupwise/groupwise_k_tiles.h"
#include "kernels/cpu/gemm/groupwise/groupwise_activations.h"
#include "kernels/cpu/base/simd_i32.h"

enum { DIGITS = FT_PANEL_DIGITS, K_BLOCK_BYTES = DIGITS * FT_PANEL_K_BLOCK };

/* ---- Activations -------------------------------------------------------------------------- */

/* Joins the two digits of a k_block. */
FT_INLINE void join_digits(int8_t *k_block)
{
    __m256i *x_even = (__m256i *) k_block, *x_odd = x_even + 1;
    __m256i high = _mm256_loadu_si256(x_even), low = _mm256_loadu_si256(x_odd);
    __m256i low_even = _mm256_srai_epi16(_mm256_slli_epi16(low, 8), 8);
    __m256i low_odd = _mm256_srai_epi16(low, 8);
    __m256i high_odd = _mm256_and_si256(high, _mm256_set1_epi16(-256));
    _mm256_storeu_si256(x_even, _mm256_add_epi16(_mm256_slli_epi16(high, 8), low_even));
    _mm256_storeu_si256(x_odd, _mm256_add_epi16(high_odd, low_odd));
}

void ft_groupwise_avx2_quantize_float(const ft_groupwise_x *to, size_t row,
                                      const ft_groupwise_weights *w, const float *x, size_t cols)
{
    int8_t *bytes = to->q + row * to->stride;
    quant_x(to, row, w, x, cols);
    for (size_t k_block = 0; w->bits == 8 && k_block < w->k_blocks; k_block++)
        join_digits(bytes + k_block * K_BLOCK_BYTES);
}

/* ---- k_blocks ----------------------------------------------------------------------------- */

/*
 * As asm, so that accumulators stay in registers; otherwise products are spilled before they are
 * added.
 */
FT_INLINE void add_i16(vi *sum, vi addend)
{
    __asm__("vpaddw %1, %0, %0" : "+x"(*sum) : "x"(addend));
}

FT_INLINE void add_i32(vi *sum, vi addend)
{
    __asm__("vpaddd %1, %0, %0" : "+x"(*sum) : "x"(addend));
}

/* Vectors of weights per iteration: as many as have accumulators in sixteen registers. */
enum { VECTORS_4 = 2, VECTORS_8 = 4, MAX_VECTORS = 4 };

/* Compile-time parameters of a kernel. */
typedef struct kernel_config {
    int bits;
    bool has_zero_point;
    bool single_block; /* a k_tile is one k_block */
} kernel_config;

FT_INLINE size_t vectors_of(kernel_config f)
{
    return f.bits == 4 ? VECTORS_4 : VECTORS_8;
}

/* Accumulators of some weight vectors and one row of x. */
typedef struct acc_tile {
    vi acc[MAX_VECTORS];
} acc_tile;

/* 16-bit accumulators of a k_block, pairs of which remain to be added. */
typedef struct acc16_tile {
    vi acc[DIGITS][VECTORS_4];
} acc16_tile;

/* 4-bit weights, one per byte, times a quad of columns. */
FT_INLINE void dot_quad(acc16_tile *s, const vi word[VECTORS_4], const int8_t *x, bool first)
{
    FT_UNROLL
    for (size_t p = 0; p < DIGITS; p++) {
        vi quad = vi_broadcast(x + p * FT_PANEL_K_BLOCK);
        FT_UNROLL
        for (size_t v = 0; v < VECTORS_4; v++) {
            vi pairs = _mm256_maddubs_epi16(word[v], quad);
            if (first)
                s->acc[p][v] = pairs;
            else
                add_i16(&s->acc[p][v], pairs);
        }
    }
}

/* Four lines of 4-bit weights, each with two quads of columns. */
FT_INLINE void dot_k_block_4(acc_tile *s, const uint32_t *at, const int8_t *x)
{
    const vi one = _mm256_set1_epi16(1), scale_256 = _mm256_set1_epi16(256);
    acc16_tile pairs;
    FT_UNROLL
    for (size_t line = 0; line < 4; line++, at += FT_PANEL_ROWS) {
        prefetch(at, PREFETCH_BYTES);
        FT_UNROLL
        for (size_t high = 0; high < 2; high++) {
            vi word[VECTORS_4] = { vi_nibbles(vi_load(at), high == 1),
                                   vi_nibbles(vi_load(at + LANES), high == 1) };
            dot_quad(&pairs, word, x + line * 8 + high * 4, line + high == 0);
        }
    }
    FT_UNROLL
    for (size_t v = 0; v < VECTORS_4; v++) {
        add_i32(&s->acc[v], _mm256_madd_epi16(pairs.acc[0][v], scale_256));
        add_i32(&s->acc[v], _mm256_madd_epi16(pairs.acc[1][v], one));
    }
}

/* Eight lines of 8-bit weights, each with a quad of columns. */
FT_INLINE void dot_k_block_8(acc_tile *s, const uint32_t *at, const int8_t *x)
{
    const vi low_byte = _mm256_set1_epi16(255);
    FT_UNROLL
    for (size_t line = 0; line < 8; line++, at += FT_PANEL_ROWS, x += 4) {
        vi x_even = vi_broadcast(x), x_odd = vi_broadcast(x + FT_PANEL_K_BLOCK);
        prefetch(at, PREFETCH_BYTES);
        prefetch(at, PREFETCH_BYTES + 64);
        FT_UNROLL
        for (size_t v = 0; v < VECTORS_8; v++) {
            vi word = vi_load(at + v * LANES);
            add_i32(&s->acc[v], _mm256_madd_epi16(_mm256_and_si256(word, low_byte), x_even));
            add_i32(&s->acc[v], _mm256_madd_epi16(_mm256_srli_epi16(word, 8), x_odd));
        }
    }
}

/* ---- k_tiles ------------------------------------------------------------------------------ */

/* Accumulators start at the zero-point terms. */
FT_INLINE void begin_k_tile(acc_tile *s, const k_tile *p, size_t lane, kernel_config f)
{
    vi all = vi_set(*p->sum);
    FT_UNROLL
    for (size_t v = 0; v < vectors_of(f); v++)
        s->acc[v] = f.has_zero_point ? vi_mul(vi_load_u8(p->zero + lane + v * LANES), all) : all;
}

FT_INLINE void dot_k_blocks(acc_tile *s, const uint32_t *at, const int8_t *x, size_t k_blocks,
                            kernel_config f)
{
    for (; k_blocks > 0; k_blocks--, at += FT_PANEL_ROWS * (size_t) f.bits, x += K_BLOCK_BYTES)
        if (f.bits == 4)
            dot_k_block_4(s, at, x);
        else
            dot_k_block_8(s, at, x);
}

FT_INLINE void store_k_tile(const acc_tile *s, const k_tile *p, size_t lane, kernel_config f)
{
    FT_UNROLL
    for (size_t v = 0; v < vectors_of(f); v++, lane += LANES) {
        vf factor = vf_load_f16(p->scale + lane) * vf_set(*p->scale_x);
        vf_store(p->y + lane, vf_fma(vf_from_i32(s->acc[v]), factor, vf_load(p->y + lane)));
    }
}

FT_INLINE void gemm_k_tile(const k_tile *p, kernel_config f)
{
    FT_UNROLL
    for (size_t lane = 0; lane < FT_PANEL_ROWS; lane += vectors_of(f) * LANES) {
        acc_tile s;
        begin_k_tile(&s, p, lane, f);
        dot_k_blocks(&s, p->weights + lane, p->x, f.single_block ? 1 : p->k_blocks, f);
        store_k_tile(&s, p, lane, f);
    }
}

/* A panel, one row of x after the other; the panel is read from L1 or L2. */
FT_INLINE void gemm_panel(const ft_groupwise_tile *t, size_t row, kernel_config f)
{
    for (size_t i = 0; i < t->rows; i++)
        for (k_tile p = first_k_tile(t, i, row); p.blocks_left > 0;
             next_k_tile(&p, t, row, f.bits, DIGITS))
            gemm_k_tile(&p, f);
}

FT_INLINE void gemm_panels(const ft_groupwise_tile *tile, kernel_config f)
{
    const ft_groupwise_tile t = *tile; /* a local copy, so that stores to y cannot alias it */
    for (size_t row = 0; row < t.w.panels * FT_PANEL_ROWS; row += FT_PANEL_ROWS)
        gemm_panel(&t, row, f);
}

/* ------------------------------------------------------------------------------------------- */

#define FUNCTION(name, bits, has_zero_point, single_block)                                         \
    static void name(const ft_groupwise_tile *t)                                                   \
    {                                                                                              \
        gemm_panels(t, (kernel_config){ bits, has_zero_point, single_block });                     \
    }

FUNCTION(multiply_4, 4, false, false)
FUNCTION(multiply_4_zeros, 4, true, false)
FUNCTION(multiply_4_single, 4, false, true)
FUNCTION(multiply_4_zeros_single, 4, true, true)
FUNCTION(multiply_8, 8, false, false)
FUNCTION(multiply_8_zeros, 8, true, false)
FUNCTION(multiply_8_single, 8, false, true)
FUNCTION(multiply_8_zeros_single, 8, true, true)

void ft_groupwise_avx2_gemm_float(const ft_groupwise_tile *t)
{
    static void (*const functions[2][2][2])(const ft_groupwise_tile *t) = {
        { { multiply_4, multiply_4_single }, { multiply_4_zeros, multiply_4_zeros_single } },
        { { multiply_8, multiply_8_single }, { multiply_8_zeros, multiply_8_zeros_single } },
    };
    functions[t->w.bits == 8][t->w.zero != NULL][t->w.k_tile == 1](t);
}
