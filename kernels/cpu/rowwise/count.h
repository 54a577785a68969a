/*
 * count.h - adds an array of values to calibration counters, on the CPU.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CPU_ROWWISE_COUNT_H
#define FT_KERNELS_CPU_ROWWISE_COUNT_H

#include "kernels/count.h"

/*
 * Adds |values[0..n)| to the counters. Only one thread at a time may update a `counts`; threads
 * that run in parallel use one each, and ft_counts_merge() merges them to the same bytes in any
 * order.
 */
void ft_cpu_counts_add(ft_counts *counts, const float *values, size_t n);

#endif
