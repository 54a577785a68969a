/*
 * fake_quantized.h - int8 operations on integers stored as float.
 *
 * Their products are summed in double precision, which is exact: the sum of 65,536 products of int8
 * values is below 2^31. So the results equal those of the int8 kernels, computed by code that
 * shares nothing with them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CPU_FAKE_QUANTIZED_FAKE_QUANTIZED_H
#define FT_KERNELS_CPU_FAKE_QUANTIZED_FAKE_QUANTIZED_H

#include "kernels/cpu/base/cpu.h"

/* LINEAR, with weights [n, k] of quantized values as F32. */
void ft_fake_quantized_linear(const ft_args *args);
size_t ft_fake_quantized_linear_scratch(const ft_weight *weight, size_t rows);

/* ATTENTION, with q, k and v of quantized values as F32. */
void ft_fake_quantized_attention(const ft_args *args);
size_t ft_fake_quantized_attention_scratch(size_t head_size, const ft_limits *limits);

#endif
