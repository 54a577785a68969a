/*
 * panel_impl.h - the body of panel_*.c: rows of x times weights in blocks.
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
#include "kernels/cpu/panel_split.h"

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

/* Sums of a group begin with what the zeros take from them. */
FT_INLINE void begin_group(sums *s, const ft_panel_tile *t, size_t row, size_t group, form f)
{
    const uint8_t *zero = t->w.zero == NULL ? NULL : t->w.zero + group * t->w.stride + row;
    VECTORS
    for (size_t i = 0; i < f.rows; i++) {
        VECTORS
        for (size_t p = 0; p < f.planes; p++) {
            int32_t sum = -t->x.sum[(i * t->x.groups + group) * f.planes + p];
            VECTORS
            for (size_t v = 0; v < f.vectors; v++)
                s->of[i][p][v] = zero == NULL
                                     ? vi_set(sum * (1 << (f.bits - 1)))
                                     : vi_times(vi_bytes(zero + v * VI_LANES), vi_set(sum));
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

/* A group's sum of one row, from its planes. */
FT_INLINE vf sum_of(vi plane[PLANES][MOST], size_t v, form f)
{
    vf sum = vf_of(plane[f.planes - 1][v]);
    if (f.planes == PLANES) {
        sum = vf_fma(vf_set(256.0f), vf_of(plane[1][v]), sum);
        sum = vf_fma(vf_set(65536.0f), vf_of(plane[0][v]), sum);
    }
    return sum;
}

FT_INLINE void end_group(sums *s, const ft_panel_tile *t, size_t row, size_t group, form f)
{
    const uint16_t *scale = t->w.scale + group * t->w.stride + row;
    VECTORS
    for (size_t v = 0; v < f.vectors; v++) {
        vf factor = vf_load_f16(scale + v * VI_LANES);
        VECTORS
        for (size_t i = 0; i < f.rows; i++) {
            float *y = t->y + i * t->y_stride + row + v * VI_LANES;
            vf unit = vf_set(t->x.unit[i * t->x.groups + group]);
            vf_store(y, vf_fma(sum_of(s->of[i], v, f), factor * unit, vf_load(y)));
        }
    }
}

/*
 * Bytes of codes, and groups of scales, that are fetched into the second cache before they are
 * read. The few misses that the first cache can wait for at once would be the limit otherwise.
 */
enum { AHEAD = 16384, AHEAD_GROUPS = 16 };

FT_INLINE void fetch(const void *base, size_t offset)
{
    __builtin_prefetch((const void *) ((uintptr_t) base + offset), 0, 2);
}

/* The scales of a group that comes later, here or in the next panel. */
FT_INLINE void fetch_group(const ft_panel_weights *w, size_t row, size_t group, size_t groups)
{
    size_t next = group + AHEAD_GROUPS;
    size_t at =
        next < groups ? next * w->stride + row : next % groups * w->stride + row + FT_PANEL_ROWS;
    fetch(w->scale, 2 * at);
    if (w->zero != NULL)
        fetch(w->zero, at);
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

/* A panel, group by group; of each some vectors after the others, so that memory is read evenly. */
FT_INLINE void multiply_panel(const ft_panel_tile *t, size_t row, form f)
{
    const uint32_t *at = t->w.codes + row / FT_PANEL_ROWS * ft_panel_words(&t->w);
    const int8_t *x = t->x.bytes;
    for (size_t span = 0, group = 0; span < t->w.spans; group++) {
        size_t spans = ft_min_size(t->w.group, t->w.spans - span);
        fetch_group(&t->w, row, group, t->x.groups);
        for (size_t first = 0; first < FT_PANEL_ROWS; first += f.vectors * VI_LANES) {
            sums s;
            begin_group(&s, t, row + first, group, f);
            add_spans(&s, at + first, x, spans, t->x.stride, f);
            end_group(&s, t, row + first, group, f);
        }
        span += spans;
        at += spans * (size_t) f.bits * FT_PANEL_ROWS;
        x += spans * f.planes * FT_PANEL_SPAN;
    }
}

FT_INLINE void multiply_all(const ft_panel_tile *t, form f)
{
    for (size_t row = 0; row < t->w.panels * FT_PANEL_ROWS; row += FT_PANEL_ROWS)
        multiply_panel(t, row, f);
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
