/*
 * groupwise.h - group-wise quantized weights: a scale for each row and group of consecutive inputs.
 *
 * A weight is scale * (q - zero_point), q an integer of 0..15 (4 bits) or 0..255 (8 bits).  The
 * quantized values have layout FT_PANEL32 (layout.h).  Scales and zero points are [groups, padded
 * rows], with rows padded as in FT_PANEL32.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_GROUPWISE_H
#define FT_KERNELS_GROUPWISE_H

#include "kernels/layout.h"

#include <math.h>

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

/*
 * Accumulate one group, or one chunk of it: y starts at 0, and groups are added in order.  `sum` is
 * the sum of (q - zero_point) * x with x in units of x_scale.  With int8 activations it is an exact
 * integer, and x_scale is ft_scale_from_amax() of the group of x.
 */
FT_HOST_DEVICE float ft_groupwise_accumulate(float y, float sum, float scale, float x_scale)
{
    return fmaf(sum, scale * x_scale, y);
}

#endif
