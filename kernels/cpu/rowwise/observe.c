/*
 * observe.c - records the values of a calibration point; an operation like any other.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cpu/rowwise/count.h"
#include "kernels/cpu/base/cpu.h"

void ft_cpu_observe(const ft_args *args)
{
    if (args->counts != NULL)
        ft_cpu_counts_add(args->counts, args->in[0].data, args->in[0].rows * args->in[0].cols);
}
