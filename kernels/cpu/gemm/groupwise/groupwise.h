/*
 * groupwise.h - the GEMM kernels for group-wise quantized weights that every instruction set
 * provides.
 *
 * Products are integer dot products, whose sums are exact in any order. x is quantized per k_tile:
 * all elements of a k_tile share a scale. With int8 activations an element is one byte, as
 * kernels/groupwise.h defines, and a k_tile is a group. With float activations an element is an
 * integer of 16 bits, and a k_tile is a group or a part of a long one. The scale is then a power of
 * two, and the largest element of a k_tile has 15 bits and a sign. So elements are rounded by at
 * most 2^-15 of the largest one, where 8-bit weights are rounded by up to 2^-8 of their largest
 * one.
 *
 * An integer of 16 bits is two digits of one byte, 256 high + low, both from -128 to 127; so it is
 * at most 32639. In k_tiles of up to 256 columns the sum of the products with 8-bit weights is less
 * than 2^31.
 *
 * Int8 activations have zero points: with weights w - zero_w the sum of a k_tile is
 *
 *     sum (w - zero_w)(x - zero_x) = sum w x - zero_w sum (x - zero_x) - zero_x sum w
 *
 * The kernel multiplies unsigned weights by signed bytes of x as if there were no zero points.
 * sum w, over a k_tile of a row of weights, is added up while the first rows of x are multiplied,
 * and kept for the other rows: one dot product more for a weight, but nothing is read from memory.
 * Sums of up to 128 columns have 16 bits, and the other two terms are one dot product of pairs.
 *
 * The sum of a k_tile is an exact integer; and k_tile by k_tile, starting from 0, y =
 * ft_groupwise_accumulate() (kernels/groupwise.h) of that sum rounded to float. So an element of
 * the output depends only on its row of x and its row of weights: neither on the number of rows nor
 * on the instruction set. An element of x that is not finite makes its row NaN.
 *
 * A row of x is multiplied with 32 rows of weights at once, one SIMD lane each: a register holds
 * four quantized weights of the same columns of 16 rows or 8 (layout.h, FT_PANEL32), and the bytes
 * of x for these columns are contiguous, one quad broadcast to all rows. Columns are counted in
 * k_blocks of 32, and x is padded to a multiple of that with what represents 0: zeros, or the zero
 * point.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CPU_GEMM_GROUPWISE_GROUPWISE_H
#define FT_KERNELS_CPU_GEMM_GROUPWISE_GROUPWISE_H

#include "kernels/groupwise.h"
#include "kernels/cpu/base/isa.h"
#include "kernels/half.h"
#include "runtime/mem.h"

enum {
    FT_PANEL_K_BLOCK = 32,
    FT_PANEL_DIGITS = 2,        /* maximum digits of an element of x */
    FT_PANEL_X_MAX = 32639,     /* largest magnitude of two digits */
    FT_PANEL_K_TILE_BLOCKS = 8, /* maximum k_blocks that share a scale if x has two digits */
    FT_PANEL_MAX_ROWS = 8,      /* maximum rows of x in gemm_tile(), on any instruction set */
    FT_PANEL_PAIR_BLOCKS = 4,   /* maximum k_blocks whose sums of int8 values have 16 bits */
};

/* Consecutive panels of weights. */
typedef struct ft_groupwise_weights {
    const uint32_t *weights; /* quantized values of the first panel */
    const uint16_t *scale;   /* scales of its rows in the first group; those of the next group are
                                `stride` further */
    const uint8_t *zero;     /* zero points in the same order, or NULL: the middle of the range */
    size_t stride;
    size_t panels;
    size_t groups, k_blocks; /* per row */
    size_t group, k_tile;    /* k_blocks of a group, and of a k_tile, which divides the group */
    int bits;
} ft_groupwise_weights;

/* Quantized rows of x, with 1 or FT_PANEL_DIGITS bytes per element. */
typedef struct ft_groupwise_x {
    int8_t *q;      /* [rows, k_blocks, digits, 32] in quads, as the weights; or as gemm_tile()
                           expects */
    size_t stride;  /* bytes from row to row */
    float *scale_x; /* [rows, k_tiles] */
    int32_t *zero;  /* [rows, k_tiles]: zero points of int8 activations */
    int32_t *sum;   /* [rows, k_tiles]: added to dot products; - sum of x less its zero point [*
                       common zero point of the weights]; or the pair (- zero, - sum) */
    size_t k_tiles;
    int digits;
} ft_groupwise_x;

/* A few rows of x against panels. */
typedef struct ft_groupwise_tile {
    ft_groupwise_weights w;
    ft_groupwise_x x;
    size_t rows;
    float *y; /* [rows, 32 * panels], initially zero: k_tiles are accumulated in it */
    size_t y_stride;
    int32_t *weight_sum; /* int8 activations: [k_tiles, 32 * panels], y_stride apart: sums of
                            weights, or the pairs (sum, zero point) */
    bool sum_weights;    /* compute weight_sum, otherwise use it */
} ft_groupwise_tile;

typedef struct ft_groupwise_kernels {
    size_t rows[FT_PANEL_DIGITS + 1]; /* maximum rows of a tile, indexed by the number of digits */

    /* Quantizes a row of x [cols] for weights like `w`. */
    void (*quant_x)(const ft_groupwise_x *to, size_t row, const ft_groupwise_weights *w,
                    const float *x, size_t cols);

    void (*gemm_tile)(const ft_groupwise_tile *tile);
} ft_groupwise_kernels;

/* The kernels of a supported instruction set. */
const ft_groupwise_kernels *ft_groupwise_kernels_for(ft_isa isa);

extern const ft_groupwise_kernels ft_groupwise_generic, ft_groupwise_avx2, ft_groupwise_avxvnni,
    ft_groupwise_avx512, ft_groupwise_neon, ft_groupwise_dotprod, ft_groupwise_i8mm;

/* k_blocks of a k_tile for groups of this many: the largest admissible divisor. */
static inline size_t ft_groupwise_k_tile(size_t group, int digits)
{
    size_t k_tile = digits == 1 ? group : ft_min_size(group, FT_PANEL_K_TILE_BLOCKS);
    while (group % k_tile != 0)
        k_tile--;
    return k_tile;
}

/* Whether the zero-point terms are dot products of pairs. */
static inline bool ft_groupwise_has_pairs(const ft_groupwise_weights *w, size_t digits)
{
    return digits == 1 && w->k_tile <= FT_PANEL_PAIR_BLOCKS;
}

/* 32-bit words from one panel to the next. */
static inline size_t ft_groupwise_panel_words(const ft_groupwise_weights *w)
{
    return w->k_blocks * FT_PANEL_K_BLOCK * (size_t) w->bits;
}

/*
 * The scale of a k_tile of float activations (two digits) with this amax; *inverse is 1 / scale, or
 * 0. It is the power of two that makes amax an integer of 15 bits, or the next one if that exceeds
 * FT_PANEL_X_MAX. All magnitudes below 2^-111 share one scale.
 */
static inline float ft_groupwise_float_scale(float amax, float *inverse)
{
    uint32_t exponent = ft_bits_from_float(amax) >> 23;
    if (exponent == 255) {
        *inverse = 0.0f;
        return NAN;
    }
    exponent = exponent < 15 ? 15 : exponent;
    if (amax * ft_float_from_bits((268 - exponent) << 23) > FT_PANEL_X_MAX)
        exponent++;
    *inverse = ft_float_from_bits((268 - exponent) << 23);
    return ft_float_from_bits((exponent - 14) << 23);
}

#endif
