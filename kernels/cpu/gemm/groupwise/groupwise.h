/*
 * groupwise.h - what every instruction set provides for products with weights in blocks.
 *
 * Products are those of whole numbers, whose sums are exact in any order.  x becomes whole numbers
 * part by part, with a unit that all numbers of a part share.  By codes they have one byte, as
 * kernels/quant.h says, and a part is a group.  Else they have three, high, middle and low, and a
 * part is a group or a piece of a long one.  A unit is a power of two then, and the largest number
 * of a part has 22 or 23 bits.  That is as exact as a sum of floats is, whose parts are aligned to
 * the largest too.  Halves lose nothing unless they are below 2^-11 of the largest.
 *
 * The three bytes stand for 65278 high + 256 middle + low.  With 65278 in the place of 65536 the
 * last two are within 32639 of 0, a number of 16 bits too, and high is within 64: two codes of 8
 * bits by two of these are less than 2^15.  In parts of up to 256 columns the sums of 256 middle +
 * low are less than 2^31, and those of each byte less than 2^24, so that they are exact as floats.
 *
 * The sum of a part is that of its codes, or fmaf(65278, high, fmaf(256, middle, low)) of its
 * bytes; and part by part, from 0 on, y = ft_blocks_add() (blocks.h).  So an element of a product
 * depends on its row of x and its row of weights and on nothing else: neither on how many rows
 * there are, nor on the instruction set.  A number of x that is not finite makes a row NaN.
 *
 * A row of x meets 32 rows of weights at once, a lane each: a register holds four codes of the same
 * columns of 16 rows or 8 (layout.h, FT_PANEL32), and x has its bytes of these columns side by
 * side, a quad for all rows.  Columns are counted in spans of 32, with zeros in x behind the last.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CPU_GEMM_GROUPWISE_GROUPWISE_H
#define FT_KERNELS_CPU_GEMM_GROUPWISE_GROUPWISE_H

#include "kernels/groupwise.h"
#include "kernels/cpu/base/isa.h"
#include "kernels/half.h"
#include "kernels/quant.h"
#include "runtime/mem.h"

enum {
    FT_PANEL_ROWS = 32,
    FT_PANEL_SPAN = 32,
    FT_PANEL_PLANES = 3,   /* bytes of a number of x, at most */
    FT_PANEL_HIGH = 65278, /* what the highest of three counts */
    FT_PANEL_PART = 8,     /* spans of numbers of three bytes that share a unit, at most */
    FT_PANEL_TILE = 8,     /* rows of x that multiply() takes at most, on any instruction set */
};

/* Panels side by side. */
typedef struct ft_panel_weights {
    const uint32_t *codes; /* of the first panel */
    const uint16_t *scale; /* of its rows, in the first group; the next group is `stride` further */
    const uint8_t *zero;   /* likewise, or NULL: the middle of all codes */
    size_t stride;
    size_t panels;
    size_t groups, spans; /* of a row */
    size_t group, part;   /* spans of a group, and of a part of x, which divides it */
    int bits;
} ft_panel_weights;

/* Rows of x as whole numbers of 1 or FT_PANEL_PLANES bytes. */
typedef struct ft_panel_x {
    int8_t *bytes; /* [rows, spans, planes, 32], in each plane quad by quad as weights have them;
                      or what else multiply() wants of split() there */
    size_t stride; /* from row to row */
    float *unit;   /* [rows, parts] */
    int32_t *sum;  /* [rows, parts, planes]: what zeros take from sums of products, to be added: of
                      a part's bytes, times -1, and times the zero that all codes share, if any */
    size_t parts;
    int planes;
} ft_panel_x;

/* A few rows of x against panels. */
typedef struct ft_panel_tile {
    ft_panel_weights w;
    ft_panel_x x;
    size_t rows;
    float *y; /* [rows, 32 * panels], all zeros: parts are added to it */
    size_t y_stride;
} ft_panel_tile;

typedef struct ft_panel_kernels {
    size_t rows[FT_PANEL_PLANES + 1]; /* of a tile, at most, for so many planes */

    /* A row of x [cols] as whole numbers for weights like `w`. */
    void (*split)(const ft_panel_x *to, size_t row, const ft_panel_weights *w, const float *x,
                  size_t cols);

    void (*multiply)(const ft_panel_tile *tile);
} ft_panel_kernels;

/* The kernels of a usable instruction set. */
const ft_panel_kernels *ft_panel_kernels_of(ft_isa isa);

extern const ft_panel_kernels ft_panel_generic, ft_panel_avx2, ft_panel_avxvnni, ft_panel_avx512;

/* Spans of a part, for groups of so many: the most that divide them. */
static inline size_t ft_panel_part(size_t group, int planes)
{
    size_t part = planes == 1 ? group : ft_min_size(group, FT_PANEL_PART);
    while (group % part != 0)
        part--;
    return part;
}

/* Words from a panel to the next. */
static inline size_t ft_panel_words(const ft_panel_weights *w)
{
    return w->spans * FT_PANEL_SPAN * (size_t) w->bits;
}

/* The unit of a part of codes whose largest magnitude is amax, and 1 / unit or 0. */
static inline float ft_panel_code_unit(float amax, float *inverse)
{
    float unit = ft_scale_from_amax(amax);
    *inverse = ft_inverse_scale(unit);
    return unit;
}

/*
 * The unit of a part whose largest magnitude is amax, where x has three bytes, and 1 / unit or 0.
 * All magnitudes below 2^-104 share one.
 */
static inline float ft_panel_unit(float amax, float *inverse)
{
    uint32_t exponent = ft_bits_from_float(amax) >> 23;
    if (exponent == 255) {
        *inverse = 0.0f;
        return NAN;
    }
    exponent = exponent < 22 ? 22 : exponent;
    *inverse = ft_float_from_bits((275 - exponent) << 23);
    return ft_float_from_bits((exponent - 21) << 23);
}

#endif
