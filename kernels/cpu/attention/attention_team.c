/*
 * attention_team.c - how many threads an attention is worth.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cpu/base/cpu.h"

/* A key costs a query two dot products of the head size. */
int ft_cpu_attention_team(const ft_args *args, size_t chunks, int macs)
{
    const ft_batch *batch = args->batch;
    double keys = 0.0;
    for (size_t i = 0; i < batch->sequences; i++) {
        double length = (double) (batch->start[i + 1] - batch->start[i]);
        keys += length * length;
    }
    double work = keys * 2.0 * (double) args->in[0].cols / macs;
    return ft_team_size(args->threads, chunks, work);
}
