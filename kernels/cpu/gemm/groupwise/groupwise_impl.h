/*
 * groupwise_impl.h - the body of groupwise_*.c: GEMM with group-wise quantized weights.
 *
 * The including file includes simd_i32.h and defines vi_dot(&acc, w, x, bits): acc += the four
 * weights of each word times the quad at x. With NEON it defines what groupwise_neon.h expects.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cpu/gemm/groupwise/groupwise_k_tiles.h"
#include "kernels/cpu/gemm/groupwise/groupwise_activations.h"

enum { DIGITS = FT_PANEL_DIGITS, MAX_VECTORS = FT_PANEL_ROWS / LANES /* vectors of a panel */ };

#ifndef FT_SIGNED_WEIGHTS
enum { WEIGHT_OFFSET = 0 };
#else
enum { WEIGHT_OFFSET = 128 };
#endif

/* Plain C cannot keep arrays in registers: its loops are not unrolled. */
#if defined FT_SIMD_SCALAR
#define VECTORS
#else
#define VECTORS FT_UNROLL
#endif

/* Compile-time parameters of a kernel: rows of x, digits, weight vectors per iteration. */
typedef struct kernel_config {
    size_t rows, digits, vectors;
    int bits;
    bool sum_weights;
} kernel_config;

typedef struct acc_tile {
    vi acc[FT_PANEL_MAX_ROWS][DIGITS][MAX_VECTORS];
    vi weight_sum[MAX_VECTORS];
} acc_tile;

/* A word of a line holds one quad of columns, or two. */
FT_INLINE size_t line_quads(kernel_config f)
{
    return f.bits == 4 ? 2 : 1;
}

/* Zero points of LANES rows of weights, less what the multiplied weights are offset by. */
FT_INLINE vi zero_points(const k_tile *p, size_t lane, int bits)
{
    int32_t offset = bits == 8 ? WEIGHT_OFFSET : 0;
    if (p->zero == NULL)
        return vi_set((1 << (bits - 1)) - offset);
    vi zero = vi_load_u8(p->zero + lane);
    return offset == 0 ? zero : vi_sub(zero, vi_set(offset));
}

/* Of LANES rows of weights, from the sum in ft_groupwise_x: that of x with common zero points. */
FT_INLINE vi zero_point_term(const k_tile *p, int32_t sum, size_t lane, int bits)
{
    bool offset = bits == 8 && WEIGHT_OFFSET != 0;
    if (p->zero == NULL)
        return vi_set(offset ? 0 : sum);
    return vi_mul(zero_points(p, lane, bits), vi_set(sum));
}

/*
 * Adds the terms of the zero points of int8 activations and of weights. `weights` are the sums of
 * weights, or the pairs of these and zero points.
 */
FT_INLINE void add_zero_point_terms(acc_tile *s, const ft_groupwise_tile *t, const k_tile *p,
                                    const vi weights[MAX_VECTORS], size_t lane, kernel_config f)
{
    size_t k_tiles = t->x.k_tiles;
    if (ft_groupwise_has_pairs(&t->w, f.digits)) {
        VECTORS
        for (size_t i = 0; i < f.rows; i++) {
            vi pair = vi_set(p->sum[i * k_tiles]);
            VECTORS
            for (size_t v = 0; v < f.vectors; v++)
                s->acc[i][0][v] = vi_add(s->acc[i][0][v], vi_dot_pairs(weights[v], pair));
        }
        return;
    }
    VECTORS
    for (size_t i = 0; i < f.rows; i++) {
        VECTORS
        for (size_t v = 0; v < f.vectors; v++) {
            vi term = zero_point_term(p, p->sum[i * k_tiles], lane + v * LANES, f.bits);
            term = vi_sub(term, vi_mul(weights[v], vi_set(p->x_zero[i * k_tiles])));
            s->acc[i][0][v] = vi_add(s->acc[i][0][v], term);
        }
    }
}

/* Zero-point terms with the sums of the weights that were kept. */
FT_INLINE void use_weight_sums(acc_tile *s, const ft_groupwise_tile *t, const k_tile *p,
                               size_t lane, kernel_config f)
{
    vi weights[MAX_VECTORS];
    VECTORS
    for (size_t v = 0; v < f.vectors; v++)
        weights[v] = vi_load(p->weight_sum + lane + v * LANES);
    add_zero_point_terms(s, t, p, weights, lane, f);
}

/* Zero-point terms with the sums of the weights that were just computed, which are kept. */
FT_INLINE void keep_weight_sums(acc_tile *s, const ft_groupwise_tile *t, const k_tile *p,
                                size_t lane, kernel_config f)
{
    bool pairs = ft_groupwise_has_pairs(&t->w, f.digits);
    VECTORS
    for (size_t v = 0; v < f.vectors; v++) {
        if (pairs)
            s->weight_sum[v] = vi_pair(s->weight_sum[v], zero_points(p, lane + v * LANES, f.bits));
        vi_store(p->weight_sum + lane + v * LANES, s->weight_sum[v]);
    }
    add_zero_point_terms(s, t, p, s->weight_sum, lane, f);
}

/*
 * Accumulators of a k_tile. Those of the low digit start at the zero-point terms, unless these are
 * known only at the end.
 */
FT_INLINE void begin_k_tile(acc_tile *s, const ft_groupwise_tile *t, const k_tile *p, size_t lane,
                            kernel_config f)
{
    VECTORS
    for (size_t v = 0; v < f.vectors; v++)
        s->weight_sum[v] = vi_set(0);
    VECTORS
    for (size_t i = 0; i < f.rows; i++) {
        int32_t sum = p->sum[i * t->x.k_tiles];
        VECTORS
        for (size_t v = 0; v < f.vectors; v++) {
            s->acc[i][0][v] = vi_set(0);
            if (f.digits == 2)
                s->acc[i][1][v] = zero_point_term(p, sum, lane + v * LANES, f.bits);
        }
    }
    if (f.digits == 1 && !f.sum_weights)
        use_weight_sums(s, t, p, lane, f);
}

/* The sum of a k_tile for one row: 256 high + low. */
FT_INLINE vf combine_digits(vi digit[DIGITS][MAX_VECTORS], size_t v, kernel_config f)
{
    vi low = digit[f.digits - 1][v];
    return vf_from_i32(f.digits == 1 ? low : vi_add(vi_shift_left(digit[0][v], 8), low));
}

FT_INLINE void store_k_tile(acc_tile *s, const ft_groupwise_tile *t, const k_tile *p, size_t lane,
                            kernel_config f)
{
    VECTORS
    for (size_t v = 0; v < f.vectors; v++, lane += LANES) {
        vf scale = vf_load_f16(p->scale + lane);
        VECTORS
        for (size_t i = 0; i < f.rows; i++) {
            float *y = p->y + i * t->y_stride + lane;
            vf factor = scale * vf_set(p->scale_x[i * t->x.k_tiles]);
            vf_store(y, vf_fma(combine_digits(s->acc[i], v, f), factor, vf_load(y)));
        }
    }
}

#if defined __aarch64__ && !defined FT_SIMD_SCALAR
#include "kernels/cpu/gemm/groupwise/groupwise_neon.h"
#else

/*
 * Adds the four weights of each word to `sum`. The width of the weights does not matter to vi_dot()
 * if x is 1: with AVX2 pairs of them fit 16 bits, as products of 4 bits do.
 */
FT_INLINE void add_weights(vi *sum, vi word)
{
    static const int8_t ones[4] = { 1, 1, 1, 1 };
    vi_dot(sum, word, ones, 4);
}

/* One line of weights times the quads of its columns. */
FT_INLINE void dot_line(acc_tile *s, const uint32_t *line, const int8_t *x, size_t x_stride,
                        kernel_config f)
{
    vi both[MAX_VECTORS]; /* quads added byte by byte: 4 bits do not overflow */
    VECTORS
    for (size_t quad = 0; quad < line_quads(f); quad++) {
        vi word[MAX_VECTORS];
        VECTORS
        for (size_t v = 0; v < f.vectors; v++) {
            word[v] = vi_load(line + v * LANES);
            if (f.bits == 4)
                word[v] = vi_nibbles(word[v], quad == 1);
            both[v] = quad == 0 ? word[v] : vi_add(both[v], word[v]);
            if (f.sum_weights && quad == line_quads(f) - 1)
                add_weights(&s->weight_sum[v], both[v]);
        }
        VECTORS
        for (size_t i = 0; i < f.rows; i++) {
            VECTORS
            for (size_t p = 0; p < f.digits; p++) {
                VECTORS
                for (size_t v = 0; v < f.vectors; v++)
                    vi_dot(&s->acc[i][p][v], word[v],
                           x + i * x_stride + p * FT_PANEL_K_BLOCK + 4 * quad, f.bits);
            }
        }
    }
}

/* k_blocks of some weight vectors of a panel, times the same columns of x. */
FT_INLINE void dot_k_blocks(acc_tile *s, const uint32_t *weights_at, const int8_t *x,
                            size_t k_blocks, size_t x_stride, kernel_config f)
{
    size_t lines = (size_t) f.bits, line_bytes = 4 * line_quads(f); /* lines of a k_block */
    for (size_t k_block = 0; k_block < k_blocks; k_block++, x += f.digits * FT_PANEL_K_BLOCK)
        for (size_t line = 0; line < lines; line++, weights_at += FT_PANEL_ROWS) {
            prefetch(weights_at, PREFETCH_BYTES);
            if (f.vectors * LANES * sizeof *weights_at > 64)
                prefetch(weights_at, PREFETCH_BYTES + 64);
            dot_line(s, weights_at, x + line * line_bytes, x_stride, f);
        }
}

#endif

/* A k_tile of a panel; one set of vectors after the other, so that memory is read evenly. */
FT_INLINE void gemm_k_tile(const ft_groupwise_tile *t, const k_tile *p, kernel_config f)
{
    for (size_t lane = 0; lane < FT_PANEL_ROWS; lane += f.vectors * LANES) {
        acc_tile s;
        begin_k_tile(&s, t, p, lane, f);
        dot_k_blocks(&s, p->weights + lane, p->x, p->k_blocks, t->x.stride, f);
        if (f.sum_weights)
            keep_weight_sums(&s, t, p, lane, f);
        store_k_tile(&s, t, p, lane, f);
    }
}

FT_INLINE void gemm_panels(const ft_groupwise_tile *tile, kernel_config f)
{
    const ft_groupwise_tile t = *tile; /* a local copy, so that stores to y cannot alias it */
    for (size_t row = 0; row < t.w.panels * FT_PANEL_ROWS; row += FT_PANEL_ROWS)
        for (k_tile p = first_k_tile(&t, 0, row); p.blocks_left > 0;
             next_k_tile(&p, &t, row, f.bits, f.digits))
            gemm_k_tile(&t, &p, f);
}

/* ---- One kernel per number of rows and type of operands ------------------------------------ */

#define FUNCTION(rows, digits, vectors, bits)                                                      \
    static void multiply_##digits##_##bits##_##rows(const ft_groupwise_tile *t)                    \
    {                                                                                              \
        if (digits == 1 && t->sum_weights)                                                         \
            gemm_panels(t, (kernel_config){ rows, digits, vectors, bits, true });                  \
        else                                                                                       \
            gemm_panels(t, (kernel_config){ rows, digits, vectors, bits, false });                 \
    }
#define FUNCTIONS(rows, digits, vectors)                                                           \
    FUNCTION(rows, digits, vectors, 4) FUNCTION(rows, digits, vectors, 8)
#define TABLE_ROW(rows, digits)                                                                    \
    {                                                                                              \
        multiply_##digits##_4_##rows, multiply_##digits##_8_##rows                                 \
    }
#define TABLE_FOUR_ROWS(digits)                                                                    \
    TABLE_ROW(1, digits), TABLE_ROW(2, digits), TABLE_ROW(3, digits), TABLE_ROW(4, digits)

typedef void gemm_fn(const ft_groupwise_tile *t);

/*
 * The including file defines tables of these: int8_kernels[rows - 1][bits == 8], and float_kernels.
 */
#define FT_GROUPWISE_GEMM_TILE                                                                     \
    static void gemm_tile(const ft_groupwise_tile *t)                                              \
    {                                                                                              \
        if (t->x.digits == 1)                                                                      \
            int8_kernels[t->rows - 1][t->w.bits == 8](t);                                          \
        else                                                                                       \
            float_kernels[t->rows - 1][t->w.bits == 8](t);                                         \
    }
#define FT_GROUPWISE_KERNELS                                                                       \
    {                                                                                              \
        .rows = { 0, FT_COUNT(int8_kernels), FT_COUNT(float_kernels) }, .quant_x = quant_x,        \
        .gemm_tile = gemm_tile                                                                     \
    }
