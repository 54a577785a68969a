/*
 * int8_x_term.h - what a group of int8 activations adds to its sums of products, in one word.
 *
 * With zero points of weights and activations the sum of a group is
 *
 *     sum (w - zero_w)(x - zero_x) = sum w x - zero_w sum (x - zero_x) - zero_x sum w
 *
 * The term of a token and group has sum (x - zero_x) in its upper 24 bits and zero_x in the
 * lower 8. FT_GROUPWISE_MAX_INT8_GROUP columns (kernels/groupwise.h) of at most 255 fit. Columns of
 * padding have x = zero_x: whatever their weights are, they add nothing.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_GEMM_GROUPWISE_INT8_X_TERM_H
#define FT_KERNELS_CUDA_GEMM_GROUPWISE_INT8_X_TERM_H

#include "kernels/groupwise.h"

FT_HOST_DEVICE int32_t ft_int8_x_term(int32_t sum, int32_t zero)
{
    return (int32_t) ((uint32_t) sum << 8 | ((uint32_t) zero & 0xff));
}

FT_HOST_DEVICE int32_t ft_int8_x_sum(int32_t term)
{
    return term >> 8;
}

FT_HOST_DEVICE int32_t ft_int8_x_zero(int32_t term)
{
    return (int8_t) ((uint32_t) term & 0xff);
}

/* The sum of a group from that of the products w x; w and zero_w may be less the same offset. */
FT_HOST_DEVICE int32_t ft_int8_exact_sum(int32_t products, int32_t term, int32_t zero_w,
                                         int32_t weight_sum)
{
    return products - zero_w * ft_int8_x_sum(term) - ft_int8_x_zero(term) * weight_sum;
}

#endif
