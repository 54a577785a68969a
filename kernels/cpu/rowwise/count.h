/*
 * count.h - the CPU adds an array of values to counters.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CPU_ROWWISE_COUNT_H
#define FT_KERNELS_CPU_ROWWISE_COUNT_H

#include "kernels/count.h"

/*
 * Count |values[0..n)|.  One thread at a time may add to one `counts`; several threads count into
 * their own, and ft_counts_add() joins them to the same bytes.
 */
void ft_cpu_count(ft_counts *counts, const float *values, size_t n);

#endif
