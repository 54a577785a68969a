/*
 * groupwise_impl.h - the body of panel_*.c: rows of x times weights in blocks.
 *
 * The including file defines vi, a vector of VI_LANES int32 (or words), and what is done with it:
 * vi_set(x), vi_load(x), vi_bytes(x)  of one number, of words, of bytes;
 * vi_nibbles(w, high)  of each byte the lower four bits, or the higher ones;
 * vi_dot(&sum, w, x, bits)  sum += the four codes of each word times the quad at x;
 * vi_times(a, b)  modulo 2^32;
 * vf_of(v)  floats: VI_LANES is LANES.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cpu/gemm/groupwise/groupwise_k_tiles.h"
#include "kernels/cpu/gemm/groupwise/groupwise_activations.h"

enum { PLANES = FT_PANEL_PLANES, MOST = FT_PANEL_ROWS / VI_LANES /* vectors of a panel */ };

/* Plain C has no registers to keep arrays in: its loops stay loops. */
#if defined FT_SIMD_SCALAR
#define VECTORS
#else
#define VECTORS FT_UNROLL
#endif

/* What one function does: rows of x, as many planes, vectors of weights side by side. */
typedef struct form {
    size_t rows, planes, vectors;
    int bits;
} form;

typedef struct sums {
    vi of[FT_PANEL_TILE][PLANES][MOST];
} sums;

/* The words of a line have one quad of columns, or two. */
FT_INLINE size_t line_quads(form f)
{
    return f.bits == 4 ? 2 : 1;
}

/* Sums of a part begin with what zeros take from them. */
FT_INLINE void begin_part(sums *s, const ft_panel_tile *t, const part *p, size_t lane, form f)
{
    VECTORS
    for (size_t i = 0; i < f.rows; i++) {
        VECTORS
        for (size_t plane = 0; plane < f.planes; plane++) {
            vi all = vi_set(p->sum[i * t->x.parts * f.planes + plane]);
            VECTORS
            for (size_t v = 0; v < f.vectors; v++)
                s->of[i][plane][v] =
                    p->zero == NULL ? all : vi_times(vi_bytes(p->zero + lane + v * VI_LANES), all);
        }
    }
}

/* A line of weights by the quads of its columns. */
FT_INLINE void add_line(sums *s, const uint32_t *line, const int8_t *x, size_t x_stride, form f)
{
    VECTORS
    for (size_t quad = 0; quad < line_quads(f); quad++) {
        vi word[MOST];
        VECTORS
        for (size_t v = 0; v < f.vectors; v++) {
            word[v] = vi_load(line + v * VI_LANES);
            if (f.bits == 4)
                word[v] = vi_nibbles(word[v], quad == 1);
        }
        VECTORS
        for (size_t i = 0; i < f.rows; i++) {
            VECTORS
            for (size_t p = 0; p < f.planes; p++) {
                VECTORS
                for (size_t v = 0; v < f.vectors; v++)
                    vi_dot(&s->of[i][p][v], word[v],
                           x + i * x_stride + p * FT_PANEL_SPAN + 4 * quad, f.bits);
            }
        }
    }
}

/* A part's sum of one row, from its planes. */
FT_INLINE vf sum_of(vi plane[PLANES][MOST], size_t v, form f)
{
    vf sum = vf_of(plane[f.planes - 1][v]);
    if (f.planes == PLANES) {
        sum = vf_fma(vf_set(256.0f), vf_of(plane[1][v]), sum);
        sum = vf_fma(vf_set(FT_PANEL_HIGH), vf_of(plane[0][v]), sum);
    }
    return sum;
}

FT_INLINE void end_part(sums *s, const ft_panel_tile *t, const part *p, size_t lane, form f)
{
    VECTORS
    for (size_t v = 0; v < f.vectors; v++, lane += VI_LANES) {
        vf scale = vf_load_f16(p->scale + lane);
        VECTORS
        for (size_t i = 0; i < f.rows; i++) {
            float *y = p->y + i * t->y_stride + lane;
            vf factor = scale * vf_set(p->unit[i * t->x.parts]);
            vf_store(y, vf_fma(sum_of(s->of[i], v, f), factor, vf_load(y)));
        }
    }
}

/* Spans of weights, of some vectors of a panel, by the same columns of x. */
FT_INLINE void add_spans(sums *s, const uint32_t *at, const int8_t *x, size_t spans,
                         size_t x_stride, form f)
{
    size_t lines = (size_t) f.bits, line_bytes = 4 * line_quads(f); /* lines of a span */
    for (size_t span = 0; span < spans; span++, x += f.planes * FT_PANEL_SPAN)
        for (size_t line = 0; line < lines; line++, at += FT_PANEL_ROWS) {
            fetch(at, AHEAD);
            if (f.vectors * VI_LANES * sizeof *at > 64)
                fetch(at, AHEAD + 64);
            add_line(s, at, x + line * line_bytes, x_stride, f);
        }
}

/* A part of a panel; some vectors after the others, so that memory is read evenly. */
FT_INLINE void multiply_part(const ft_panel_tile *t, const part *p, form f)
{
    for (size_t lane = 0; lane < FT_PANEL_ROWS; lane += f.vectors * VI_LANES) {
        sums s;
        begin_part(&s, t, p, lane, f);
        add_spans(&s, p->codes + lane, p->x, p->spans, t->x.stride, f);
        end_part(&s, t, p, lane, f);
    }
}

FT_INLINE void multiply_all(const ft_panel_tile *tile, form f)
{
    const ft_panel_tile t = *tile; /* which no result is written over */
    for (size_t row = 0; row < t.w.panels * FT_PANEL_ROWS; row += FT_PANEL_ROWS)
        for (part p = first_part(&t, 0, row); p.left > 0; next_part(&p, &t, row, f.bits, f.planes))
            multiply_part(&t, &p, f);
}

/* ---- One function for each number of rows and each kind of operands ----------------------- */

#define FUNCTION(rows, planes, vectors, bits)                                                      \
    static void multiply_##planes##_##bits##_##rows(const ft_panel_tile *t)                        \
    {                                                                                              \
        multiply_all(t, (form){ rows, planes, vectors, bits });                                    \
    }
#define FUNCTIONS(rows, planes, vectors)                                                           \
    FUNCTION(rows, planes, vectors, 4) FUNCTION(rows, planes, vectors, 8)
#define NAMES(rows, planes)                                                                        \
    {                                                                                              \
        multiply_##planes##_4_##rows, multiply_##planes##_8_##rows                                 \
    }

typedef void multiply_function(const ft_panel_tile *t);

/* The including file defines tables of these: codes[rows - 1][bits == 8], and reals. */
#define FT_PANEL_MULTIPLY                                                                          \
    static void multiply(const ft_panel_tile *t)                                                   \
    {                                                                                              \
        if (t->x.planes == 1)                                                                      \
            codes[t->rows - 1][t->w.bits == 8](t);                                                 \
        else                                                                                       \
            reals[t->rows - 1][t->w.bits == 8](t);                                                 \
    }
#define FT_PANEL_TABLE                                                                             \
    {                                                                                              \
        .rows = { 0, FT_COUNT(codes), 0, FT_COUNT(reals) }, .split = split, .multiply = multiply   \
    }
