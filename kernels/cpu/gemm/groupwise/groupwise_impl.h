/*
 * groupwise_impl.h - the body of groupwise_*.c: GEMM with group-wise quantized weights.
 *
 * The including file defines vi, a vector of VI_LANES int32 (or words), and its operations:
 *
 *   vi_set(x), vi_load(x), vi_bytes(x)  broadcast a number; load words; load bytes as words
 *   vi_nibbles(w, high)                 the lower or the higher four bits of each byte
 *   vi_dot(&acc, w, x, bits)            acc += the four weights of each word times the quad at x
 *   vi_mul(a, b)                        the product modulo 2^32
 *   vf_from_i32(v)                      to float; VI_LANES equals LANES
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cpu/gemm/groupwise/groupwise_k_tiles.h"
#include "kernels/cpu/gemm/groupwise/groupwise_activations.h"

enum { PLANES = FT_PANEL_PLANES, MOST = FT_PANEL_ROWS / VI_LANES /* vectors of a panel */ };

/* Plain C cannot keep arrays in registers: its loops are not unrolled. */
#if defined FT_SIMD_SCALAR
#define VECTORS
#else
#define VECTORS FT_UNROLL
#endif

/* Compile-time parameters of a kernel: rows of x, digits, weight vectors per iteration. */
typedef struct form {
    size_t rows, planes, vectors;
    int bits;
} form;

typedef struct sums {
    vi of[FT_PANEL_TILE][PLANES][MOST];
} sums;

/* A word of a line holds one quad of columns, or two. */
FT_INLINE size_t line_quads(form f)
{
    return f.bits == 4 ? 2 : 1;
}

/* Accumulators of a k_tile start at the zero-point terms. */
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

/* One line of weights times the quads of its columns. */
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

/* The sum of a k_tile for one row, combined from its digits. */
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

/* k_blocks of some weight vectors of a panel, times the same columns of x. */
FT_INLINE void add_spans(sums *s, const uint32_t *at, const int8_t *x, size_t spans,
                         size_t x_stride, form f)
{
    size_t lines = (size_t) f.bits, line_bytes = 4 * line_quads(f); /* lines of a k_block */
    for (size_t span = 0; span < spans; span++, x += f.planes * FT_PANEL_SPAN)
        for (size_t line = 0; line < lines; line++, at += FT_PANEL_ROWS) {
            fetch(at, AHEAD);
            if (f.vectors * VI_LANES * sizeof *at > 64)
                fetch(at, AHEAD + 64);
            add_line(s, at, x + line * line_bytes, x_stride, f);
        }
}

/* A k_tile of a panel; one set of vectors after the other, so that memory is read evenly. */
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
    const ft_panel_tile t = *tile; /* a local copy, so that stores to y cannot alias it */
    for (size_t row = 0; row < t.w.panels * FT_PANEL_ROWS; row += FT_PANEL_ROWS)
        for (part p = first_part(&t, 0, row); p.left > 0; next_part(&p, &t, row, f.bits, f.planes))
            multiply_part(&t, &p, f);
}

/* ---- One kernel per number of rows and type of operands ------------------------------------ */

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

/*
 * The including file defines tables of these: int8_kernels[rows - 1][bits == 8], and float_kernels.
 */
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
