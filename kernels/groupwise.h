/*
 * groupwise.h - weights whose codes have a scale for each row and group of neighbouring inputs.
 *
 * A weight is scale * (code - zero), its code a whole number of 0 to 15 or 0 to 255.  Codes lie as
 * FT_PANEL32 says (layout.h); scales, and zeros where there are any, lie group by group, in each
 * the rows in order, padded like those of the codes.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_GROUPWISE_H
#define FT_KERNELS_GROUPWISE_H

#include "kernels/layout.h"

#include <math.h>

typedef struct ft_groupwise {
    int32_t group;         /* inputs of a group, a multiple of 32; the last may have fewer.  0: a
                              group is a whole row */
    bool int8_activations; /* inputs are made codes too, each row's groups with a scale of their
                      own, and multiplied as whole numbers */
    const uint16_t *scale; /* F16 [groups, padded rows]; NULL: the weight has no blocks */
    const uint8_t *zero;   /* [groups, padded rows]; NULL: 8 or 128 everywhere */
} ft_groupwise;

/* Bits of a code: 4, 8, or 0 for a dtype that blocks do not have. */
FT_HOST_DEVICE int ft_groupwise_bits(ft_dtype dtype)
{
    return dtype == FT_U4 ? 4 : dtype == FT_U8 ? 8 : 0;
}

FT_HOST_DEVICE size_t ft_groupwise_groups(const ft_groupwise *params, size_t cols)
{
    size_t group = (size_t) params->group;
    return group == 0 ? 1 : (cols + group - 1) / group;
}

/* Where the scale and the zero of the group of an element lie. */
FT_HOST_DEVICE size_t ft_groupwise_scale_index(const ft_groupwise *params, size_t row, size_t col,
                                               size_t rows)
{
    size_t group = params->group == 0 ? 0 : col / (size_t) params->group;
    return group * ft_layout_rows(FT_PANEL32, rows) + row;
}

/* Scales, or zeros, of a weight. */
FT_HOST_DEVICE size_t ft_groupwise_scale_count(const ft_groupwise *params, size_t rows, size_t cols)
{
    return ft_groupwise_groups(params, cols) * ft_layout_rows(FT_PANEL32, rows);
}

FT_HOST_DEVICE int32_t ft_groupwise_zero_point(const ft_groupwise *params, size_t index, int bits)
{
    return params->zero != NULL ? params->zero[index] : 1 << (bits - 1);
}

/*
 * A product adds its groups, or parts of them, to 0 in order.  `sum` is that of (code - zero) times
 * x, in whole numbers of x_scale: by codes exact, and x_scale is ft_scale_from_amax() of that group
 * of x.
 */
FT_HOST_DEVICE float ft_groupwise_accumulate(float y, float sum, float scale, float x_scale)
{
    return fmaf(sum, scale * x_scale, y);
}

#endif
