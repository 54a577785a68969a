/*
 * panel_avx2.c - products with weights in blocks, with AVX2.
 *
 * vpmaddubsw adds pairs of products in 16 bits, which codes of 4 bits are small enough for.  Those
 * of 8 bits, and x with them, become numbers of 16 bits, every other byte at a time.
 *
 * Groups of one span, 4 bits and reals have functions of their own.  Each of the three sums of a
 * span is that of eight such pairs, 8 * 2 * 15 * 128 at most, which is below 2^15; and 256 * middle
 * + low, less its zeros, is below 2^24, so it is as exact as a whole number as it is as a float.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cpu/panel_ymm.h"

FT_INLINE __m256i dot_nibbles(__m256i w, __m256i quad)
{
    return _mm256_madd_epi16(_mm256_maddubs_epi16(w, quad), _mm256_set1_epi16(1));
}

FT_INLINE __m256i dot_bytes(__m256i w, __m256i quad)
{
    __m256i even = _mm256_srai_epi16(_mm256_slli_epi16(quad, 8), 8);
    __m256i odd = _mm256_srai_epi16(quad, 8);
    return _mm256_add_epi32(_mm256_madd_epi16(_mm256_and_si256(w, _mm256_set1_epi16(0xff)), even),
                            _mm256_madd_epi16(_mm256_srli_epi16(w, 8), odd));
}

FT_INLINE void vi_dot(vi *sum, vi w, const int8_t *x, int bits)
{
    vi quad = quad_at(x);
    *sum = _mm256_add_epi32(*sum, bits == 4 ? dot_nibbles(w, quad) : dot_bytes(w, quad));
}

#include "kernels/cpu/panel_impl.h"

FUNCTIONS(1, 1, 4)
FUNCTIONS(2, 1, 2)
FUNCTIONS(3, 1, 2)
FUNCTIONS(4, 1, 2)
FUNCTIONS(1, 3, 2)
FUNCTIONS(2, 3, 1)
FUNCTIONS(3, 3, 1)

static multiply_function *const codes[][2] = {
    NAMES(1, 1),
    NAMES(2, 1),
    NAMES(3, 1),
    NAMES(4, 1),
};
static multiply_function *const reals[][2] = { NAMES(1, 3), NAMES(2, 3), NAMES(3, 3) };
FT_PANEL_MULTIPLY

/* ---- Groups of one span ------------------------------------------------------------------- */

enum { SIDE = 2 /* vectors of weights side by side */ };

/* Sums of a row's span in 16 bits, of which neighbours are to be added. */
typedef struct span_sums {
    vi of[PLANES][SIDE];
} span_sums;

FT_INLINE void add_quad(span_sums *s, const vi word[SIDE], const int8_t *x, bool first)
{
    FT_UNROLL
    for (size_t p = 0; p < PLANES; p++) {
        vi quad = quad_at(x + p * FT_PANEL_SPAN);
        FT_UNROLL
        for (size_t v = 0; v < SIDE; v++) {
            vi pairs = _mm256_maddubs_epi16(word[v], quad);
            s->of[p][v] = first ? pairs : _mm256_add_epi16(s->of[p][v], pairs);
            __asm__("" : "+x"(s->of[p][v])); /* now, or many pairs wait in memory to be added */
        }
    }
}

/* Four lines of codes by the columns of a span. */
FT_INLINE void add_codes(span_sums *s, const uint32_t *at, const int8_t *x)
{
    FT_UNROLL
    for (size_t line = 0; line < 4; line++, at += FT_PANEL_ROWS) {
        fetch(at, AHEAD);
        FT_UNROLL
        for (size_t high = 0; high < 2; high++) {
            vi word[SIDE] = { vi_nibbles(vi_load(at), high == 1),
                              vi_nibbles(vi_load(at + VI_LANES), high == 1) };
            add_quad(s, word, x + line * 8 + high * 4, line + high == 0);
        }
    }
}

/* What zeros take from a sum of codes by x, whose bytes add up to `sum`. */
FT_INLINE vi taken(const uint8_t *zero, int32_t sum)
{
    return zero == NULL ? vi_set(8 * sum) : vi_times(vi_bytes(zero), vi_set(sum));
}

/* y += the span, of vector v. */
FT_INLINE void finish_span(float *y, const span_sums *s, size_t v, const int32_t *sum,
                           const uint8_t *zero, vf factor)
{
    const vi one = _mm256_set1_epi16(1), large = _mm256_set1_epi16(256);
    vi high = _mm256_madd_epi16(s->of[0][v], one);
    vi rest = _mm256_add_epi32(_mm256_madd_epi16(s->of[1][v], large),
                               _mm256_madd_epi16(s->of[2][v], one));
    high = _mm256_sub_epi32(high, taken(zero, sum[0]));
    rest = _mm256_sub_epi32(rest, taken(zero, 256 * sum[1] + sum[2]));
    vf all = vf_fma(vf_set(65536.0f), vf_of(high), vf_of(rest));
    vf_store(y, vf_fma(all, factor, vf_load(y)));
}

/* A row of x by a panel, as multiply_panel() does it. */
FT_INLINE void multiply_panel_of_spans(const ft_panel_tile *t, size_t row, bool has_zeros)
{
    const uint32_t *at = t->w.codes + row / FT_PANEL_ROWS * ft_panel_words(&t->w);
    const uint16_t *scale = t->w.scale + row;
    const uint8_t *zero = has_zeros ? t->w.zero + row : NULL;
    const size_t groups = t->x.groups, stride = t->w.stride;
    const int8_t *x = t->x.bytes;
    const int32_t *sum = t->x.sum;
    float *y = t->y + row;
    for (size_t group = 0; group < groups; group++) {
        vf unit = vf_set(t->x.unit[group]);
        fetch_group(&t->w, row, group, groups);
        for (size_t first = 0; first < FT_PANEL_ROWS; first += SIDE * VI_LANES) {
            span_sums s;
            add_codes(&s, at + first, x);
            FT_UNROLL
            for (size_t v = 0; v < SIDE; v++) {
                size_t lane = first + v * VI_LANES;
                finish_span(y + lane, &s, v, sum, has_zeros ? zero + lane : NULL,
                            vf_load_f16(scale + lane) * unit);
            }
        }
        at += 4 * FT_PANEL_ROWS;
        x += PLANES * FT_PANEL_SPAN;
        sum += PLANES;
        scale += stride;
        if (has_zeros)
            zero += stride;
    }
}

static void multiply_spans(const ft_panel_tile *t)
{
    for (size_t row = 0; row < t->w.panels * FT_PANEL_ROWS; row += FT_PANEL_ROWS)
        if (t->w.zero != NULL)
            multiply_panel_of_spans(t, row, true);
        else
            multiply_panel_of_spans(t, row, false);
}

static void multiply_any(const ft_panel_tile *t)
{
    if (t->rows == 1 && t->w.group == 1 && t->w.bits == 4 && t->x.planes == PLANES)
        multiply_spans(t);
    else
        multiply(t);
}

const ft_panel_kernels ft_panel_avx2 = { .rows = { 0, FT_COUNT(codes), 0, FT_COUNT(reals) },
                                         .split = split,
                                         .multiply = multiply_any };
