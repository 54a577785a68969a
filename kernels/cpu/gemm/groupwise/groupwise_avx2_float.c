/*
 * groupwise_avx2_float.c - GEMM with group-wise quantized weights and float activations, with AVX2.
 *
 * vpmaddubsw adds pairs of byte products in 16 bits, vpmaddwd pairs of 16-bit products in 32.
 *
 * 4-bit weights are multiplied with x byte by byte. The sum of a k_block has eight pairs, at most 8
 * * 2 * 15 * 128, and stays in 16 bits until its end.
 *
 * 8-bit weights are multiplied with the highest digits as they are, where a pair of products is at
 * most 2 * 255 * 64, and with the lower two digits as one 16-bit number, even and odd columns
 * separately. For them each k_block of x holds its highest digits, then the numbers of even
 * columns, then those of odd ones.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cpu/gemm/groupwise/groupwise_avx2_float.h"

#include "kernels/cpu/gemm/groupwise/groupwise_k_tiles.h"
#include "kernels/cpu/gemm/groupwise/groupwise_activations.h"
#include "kernels/cpu/gemm/groupwise/groupwise_ymm.h"

enum { PLANES = FT_PANEL_PLANES, SPAN_BYTES = PLANES * FT_PANEL_SPAN };

/*
 * The two accumulators of the products with x: those of its highest digit, and of the lower ones.
 */
enum { HIGH, REST, SUMS };

/* ---- Activations -------------------------------------------------------------------------- */

/* Joins the lower two digits of a k_block into 16-bit numbers. */
FT_INLINE void join_lower(int8_t *span)
{
    __m256i *even = (__m256i *) (span + FT_PANEL_SPAN), *odd = even + 1;
    __m256i middle = _mm256_loadu_si256(even), low = _mm256_loadu_si256(odd);
    __m256i low_even = _mm256_srai_epi16(_mm256_slli_epi16(low, 8), 8);
    __m256i low_odd = _mm256_srai_epi16(low, 8);
    __m256i upper = _mm256_set1_epi16(-256);
    _mm256_storeu_si256(even, _mm256_add_epi16(_mm256_slli_epi16(middle, 8), low_even));
    _mm256_storeu_si256(odd, _mm256_add_epi16(_mm256_and_si256(middle, upper), low_odd));
}

void ft_panel_avx2_split_reals(const ft_panel_x *to, size_t row, const ft_panel_weights *w,
                               const float *x, size_t cols)
{
    int8_t *bytes = to->bytes + row * to->stride;
    int32_t *sum = to->sum + row * to->parts * PLANES;
    split(to, row, w, x, cols);
    for (size_t span = 0; w->bits == 8 && span < w->spans; span++)
        join_lower(bytes + span * SPAN_BYTES);
    for (size_t i = 0; i < to->parts; i++, sum += PLANES)
        sum[REST] = 256 * sum[1] + sum[2];
}

/* ---- k_blocks ----------------------------------------------------------------------------- */

/*
 * As asm, so that accumulators stay in registers; otherwise products are spilled before they are
 * added.
 */
FT_INLINE void add_words(vi *sum, vi addend)
{
    __asm__("vpaddw %1, %0, %0" : "+x"(*sum) : "x"(addend));
}

FT_INLINE void add_ints(vi *sum, vi addend)
{
    __asm__("vpaddd %1, %0, %0" : "+x"(*sum) : "x"(addend));
}

/* Vectors of weights per iteration: as many as have accumulators in sixteen registers. */
enum { SIDE_4 = 2, SIDE_8 = 4, SIDE = 4 };

/* Compile-time parameters of a kernel. */
typedef struct form {
    int bits;
    bool zeros;
    bool single; /* a k_tile is one k_block */
} form;

FT_INLINE size_t side_of(form f)
{
    return f.bits == 4 ? SIDE_4 : SIDE_8;
}

/* Accumulators of some weight vectors and one row of x. */
typedef struct sums {
    vi of[SUMS][SIDE];
} sums;

/* 16-bit accumulators of a k_block, pairs of which remain to be added. */
typedef struct short_sums {
    vi of[PLANES][SIDE_4];
} short_sums;

/* 4-bit weights, one per byte, times a quad of columns. */
FT_INLINE void add_quad(short_sums *s, const vi word[SIDE_4], const int8_t *x, bool first)
{
    FT_UNROLL
    for (size_t p = 0; p < PLANES; p++) {
        vi quad = quad_at(x + p * FT_PANEL_SPAN);
        FT_UNROLL
        for (size_t v = 0; v < SIDE_4; v++) {
            vi pairs = _mm256_maddubs_epi16(word[v], quad);
            if (first)
                s->of[p][v] = pairs;
            else
                add_words(&s->of[p][v], pairs);
        }
    }
}

/* Four lines of 4-bit weights, each with two quads of columns. */
FT_INLINE void add_span_4(sums *s, const uint32_t *at, const int8_t *x)
{
    const vi one = _mm256_set1_epi16(1), large = _mm256_set1_epi16(256);
    short_sums pairs;
    FT_UNROLL
    for (size_t line = 0; line < 4; line++, at += FT_PANEL_ROWS) {
        fetch(at, AHEAD);
        FT_UNROLL
        for (size_t high = 0; high < 2; high++) {
            vi word[SIDE_4] = { vi_nibbles(vi_load(at), high == 1),
                                vi_nibbles(vi_load(at + VI_LANES), high == 1) };
            add_quad(&pairs, word, x + line * 8 + high * 4, line + high == 0);
        }
    }
    FT_UNROLL
    for (size_t v = 0; v < SIDE_4; v++) {
        add_ints(&s->of[HIGH][v], _mm256_madd_epi16(pairs.of[0][v], one));
        add_ints(&s->of[REST][v], _mm256_madd_epi16(pairs.of[1][v], large));
        add_ints(&s->of[REST][v], _mm256_madd_epi16(pairs.of[2][v], one));
    }
}

/* Eight lines of 8-bit weights, each with a quad of columns. */
FT_INLINE void add_span_8(sums *s, const uint32_t *at, const int8_t *x)
{
    const vi one = _mm256_set1_epi16(1), lower = _mm256_set1_epi16(255);
    FT_UNROLL
    for (size_t line = 0; line < 8; line++, at += FT_PANEL_ROWS, x += 4) {
        vi high = quad_at(x), even = quad_at(x + FT_PANEL_SPAN),
           odd = quad_at(x + 2 * FT_PANEL_SPAN);
        fetch(at, AHEAD);
        fetch(at, AHEAD + 64);
        FT_UNROLL
        for (size_t v = 0; v < SIDE_8; v++) {
            vi word = vi_load(at + v * VI_LANES);
            vi pairs = _mm256_maddubs_epi16(word, high);
            add_ints(&s->of[HIGH][v], _mm256_madd_epi16(pairs, one));
            add_ints(&s->of[REST][v], _mm256_madd_epi16(_mm256_and_si256(word, lower), even));
            add_ints(&s->of[REST][v], _mm256_madd_epi16(_mm256_srli_epi16(word, 8), odd));
        }
    }
}

/* ---- k_tiles ------------------------------------------------------------------------------ */

/* Accumulators start at the zero-point terms. */
FT_INLINE void begin_part(sums *s, const part *p, size_t lane, form f)
{
    FT_UNROLL
    for (size_t i = 0; i < SUMS; i++) {
        FT_UNROLL
        for (size_t v = 0; v < side_of(f); v++) {
            vi all = vi_set(p->sum[i]);
            s->of[i][v] = f.zeros ? vi_times(vi_bytes(p->zero + lane + v * VI_LANES), all) : all;
        }
    }
}

FT_INLINE void add_spans(sums *s, const uint32_t *at, const int8_t *x, size_t spans, form f)
{
    for (; spans > 0; spans--, at += FT_PANEL_ROWS * (size_t) f.bits, x += SPAN_BYTES)
        if (f.bits == 4)
            add_span_4(s, at, x);
        else
            add_span_8(s, at, x);
}

FT_INLINE void end_part(const sums *s, const part *p, size_t lane, form f)
{
    FT_UNROLL
    for (size_t v = 0; v < side_of(f); v++, lane += VI_LANES) {
        vf sum = vf_fma(vf_set(FT_PANEL_HIGH), vf_of(s->of[HIGH][v]), vf_of(s->of[REST][v]));
        vf factor = vf_load_f16(p->scale + lane) * vf_set(*p->unit);
        vf_store(p->y + lane, vf_fma(sum, factor, vf_load(p->y + lane)));
    }
}

FT_INLINE void multiply_part(const part *p, form f)
{
    FT_UNROLL
    for (size_t lane = 0; lane < FT_PANEL_ROWS; lane += side_of(f) * VI_LANES) {
        sums s;
        begin_part(&s, p, lane, f);
        add_spans(&s, p->codes + lane, p->x, f.single ? 1 : p->spans, f);
        end_part(&s, p, lane, f);
    }
}

/* A panel, one row of x after the other; the panel is read from L1 or L2. */
FT_INLINE void multiply_panel(const ft_panel_tile *t, size_t row, form f)
{
    for (size_t i = 0; i < t->rows; i++)
        for (part p = first_part(t, i, row); p.left > 0; next_part(&p, t, row, f.bits, PLANES))
            multiply_part(&p, f);
}

FT_INLINE void multiply_all(const ft_panel_tile *tile, form f)
{
    const ft_panel_tile t = *tile; /* a local copy, so that stores to y cannot alias it */
    for (size_t row = 0; row < t.w.panels * FT_PANEL_ROWS; row += FT_PANEL_ROWS)
        multiply_panel(&t, row, f);
}

/* ------------------------------------------------------------------------------------------- */

#define FUNCTION(name, bits, zeros, single)                                                        \
    static void name(const ft_panel_tile *t)                                                       \
    {                                                                                              \
        multiply_all(t, (form){ bits, zeros, single });                                            \
    }

FUNCTION(multiply_4, 4, false, false)
FUNCTION(multiply_4_zeros, 4, true, false)
FUNCTION(multiply_4_single, 4, false, true)
FUNCTION(multiply_4_zeros_single, 4, true, true)
FUNCTION(multiply_8, 8, false, false)
FUNCTION(multiply_8_zeros, 8, true, false)
FUNCTION(multiply_8_single, 8, false, true)
FUNCTION(multiply_8_zeros_single, 8, true, true)

void ft_panel_avx2_multiply_reals(const ft_panel_tile *t)
{
    static void (*const functions[2][2][2])(const ft_panel_tile *t) = {
        { { multiply_4, multiply_4_single }, { multiply_4_zeros, multiply_4_zeros_single } },
        { { multiply_8, multiply_8_single }, { multiply_8_zeros, multiply_8_zeros_single } },
    };
    functions[t->w.bits == 8][t->w.zero != NULL][t->w.part == 1](t);
}
