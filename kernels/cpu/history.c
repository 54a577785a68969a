/*
 * history.c - what sequences were given and have chosen: the operations NOTE and CHOOSE.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cpu/cpu.h"

#include <math.h>

size_t ft_cpu_choose_scratch(const ft_plan *plan, const ft_op *op, const ft_limits *limits)
{
    (void) plan, (void) op, (void) limits;
    return 0;
}

void ft_cpu_note(const ft_args *args)
{
    (void) args;
}

void ft_cpu_choose(const ft_args *args)
{
    const ft_batch *batch = args->batch;
    for (size_t row = 0; batch->choice != NULL && row < args->in[0].rows; row++) {
        const float *x = ft_row_f32(&args->in[0], row);
        int32_t best = 0;
        float largest = x[0], sum = 0.0f;
        for (size_t i = 1; i < args->in[0].cols; i++)
            if (x[i] > largest) {
                largest = x[i];
                best = (int32_t) i;
            }
        for (size_t i = 0; i < args->in[0].cols; i++)
            sum += expf(x[i] - largest);
        ((int32_t *) args->out.data)[row] = best;
        ((float *) args->second.data)[row] = -logf(sum);
        ((int32_t *) args->state[FT_STATE_LAST].data)[batch->choice[row].seat] = best;
    }
}
