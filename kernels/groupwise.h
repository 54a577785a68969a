/*
 * groupwise.h - group-wise quantized weights: a scale for each row and group of consecutive inputs.
 *
 * A weight is scale * (q - zero_point), q an integer of 0..15 (4 bits) or 0..255 (8 bits).  The
 * quantized values have layout FT_PANEL32 (layout.h).  Scales and zero points are [groups, padded
 * rows], with rows padded as in FT_PANEL32.
 *
 * Int8 activations are asymmetric: an element of x is x_scale * (q - x_zero), q an integer of
 * -128..127.  Each row of x and group has a scale and a zero point: 255 steps from the least
 * element to the largest one, or to 0.  So 0 is exact, and a group of one sign has all 255 steps.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_GROUPWISE_H
#define FT_KERNELS_GROUPWISE_H

#include "kernels/half.h"
#include "kernels/layout.h"

#include <math.h>

/* Columns of the largest group with int8 activations: its sums of 255 * 255 each fit int32. */
enum { FT_GROUPWISE_MAX_INT8_GROUP = 32768 };

typedef struct ft_groupwise {
    int32_t group;         /* group size, a multiple of 32; the last group may be smaller.  0: one
                              group per row */
    bool int8_activations; /* quantize activations to int8 with a scale for each row and group, and
                      multiply as integers (W4A8, W8A8) */
    const uint16_t *scale; /* F16 [groups, padded rows]; NULL: the weight is not group-wise */
    const uint8_t *zero;   /* [groups, padded rows]; NULL: 8 or 128 everywhere */
} ft_groupwise;

/* Bits of a quantized value: 4, 8, or 0 for a dtype that is not group-wise. */
FT_HOST_DEVICE int ft_groupwise_bits(ft_dtype dtype)
{
    return dtype == FT_U4 ? 4 : dtype == FT_U8 ? 8 : 0;
}

FT_HOST_DEVICE size_t ft_groupwise_groups(const ft_groupwise *params, size_t cols)
{
    size_t group = (size_t) params->group;
    return group == 0 ? 1 : (cols + group - 1) / group;
}

/* Index of the scale and the zero point of an element. */
FT_HOST_DEVICE size_t ft_groupwise_scale_index(const ft_groupwise *params, size_t row, size_t col,
                                               size_t rows)
{
    size_t group = params->group == 0 ? 0 : col / (size_t) params->group;
    return group * ft_layout_rows(FT_PANEL32, rows) + row;
}

/* Number of scales, or of zero points, of a weight, padding included. */
FT_HOST_DEVICE size_t ft_groupwise_scale_count(const ft_groupwise *params, size_t rows, size_t cols)
{
    return ft_groupwise_groups(params, cols) * ft_layout_rows(FT_PANEL32, rows);
}

FT_HOST_DEVICE int32_t ft_groupwise_zero_point(const ft_groupwise *params, size_t index, int bits)
{
    return params->zero != NULL ? params->zero[index] : 1 << (bits - 1);
}

/* How the int8 activations of a row and group are quantized; all zeros for a group of zeros. */
typedef struct ft_groupwise_x_params {
    float scale;   /* 0 below the least normal float; NaN if an element is not finite */
    float inverse; /* 1 / scale, or 0 */
    int32_t zero;  /* -128..127 */
} ft_groupwise_x_params;

/*
 * The bits of max(0, x).  As int32_t they are ordered like the numbers, with NaN above all: so the
 * largest element of a group is a maximum of integers, and that of -x is the least one.
 */
FT_HOST_DEVICE int32_t ft_positive_bits(float x)
{
    int32_t bits = (int32_t) ft_bits_from_float(x);
    return bits > 0 ? bits : 0;
}

/* The parameters of a group whose largest elements are `high` and, of -x, `minus_low`; both >= 0.
 */
FT_HOST_DEVICE ft_groupwise_x_params ft_groupwise_x_params_of(float high, float minus_low)
{
    ft_groupwise_x_params params = { 0.0f, 0.0f, 0 };
    float scale = (0.5f * high + 0.5f * minus_low) / 127.5f;           /* the sum cannot overflow */
    params.scale = scale < 0x1p-126f ? 0.0f : scale + (scale - scale); /* infinity becomes NaN */
    if (params.scale > 0.0f) {
        params.inverse = 1.0f / scale;
        params.zero = (int32_t) rintf(minus_low * params.inverse) - 128;
    }
    return params;
}

/*
 * An int8 activation as a float integer.  Only the upper end needs a limit: the least element
 * becomes -128, and the largest one 127, or 128 if both are rounded up.
 */
FT_HOST_DEVICE float ft_groupwise_quantize_to_float(float x, const ft_groupwise_x_params *params)
{
    float q = rintf(x * params->inverse) + (float) params->zero;
    return q < 127.0f ? q : 127.0f; /* also for NaN */
}

/*
 * Accumulate one group, or one chunk of it: y starts at 0, and groups are added in order.  `sum` is
 * the sum of (q - zero_point) * x with x in units of x_scale.  With int8 activations it is an exact
 * integer, and x is q - x_zero.
 */
FT_HOST_DEVICE float ft_groupwise_accumulate(float y, float sum, float scale, float x_scale)
{
    return fmaf(sum, scale * x_scale, y);
}

#endif
