/*
 * gather_rows.c - gathers the rows whose outputs the caller requested.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cpu/base/cpu.h"

#include <string.h>

void ft_cpu_gather_rows(const ft_args *args)
{
    size_t bytes = args->out.cols * ft_dtype_size(args->out.dtype);
    for (size_t i = 0; i < args->out.rows; i++)
        memcpy((char *) args->out.data + i * bytes,
               (const char *) args->in[0].data + (size_t) args->batch->selected_rows[i] * bytes,
               bytes);
}
