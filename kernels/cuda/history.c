/*
 * history.c - the operations NOTE and CHOOSE: choose.h with the views of a plan.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cuda/choose.h"
#include "kernels/cuda/device.h"

static ft_cuda_memory memory_of(const ft_cuda_args *args)
{
    return (ft_cuda_memory){
        .history = args->state[FT_STATE_HISTORY].data,
        .seen = args->state[FT_STATE_SEEN].data,
        .last = args->state[FT_STATE_LAST].data,
        .context = args->batch->capacity,
        .vocabulary = args->state[FT_STATE_SEEN].cols,
    };
}

int ft_cuda_note(const ft_cuda_args *args)
{
    const ft_cuda_batch *batch = args->batch;
    return ft_cuda_choose_note(args->chip, args->stream,
                               &(ft_cuda_prompts){ .memory = memory_of(args),
                                                   .ids = args->in[0].data,
                                                   .owner = batch->owner,
                                                   .tokens = batch->tokens,
                                                   .start = batch->start,
                                                   .past = batch->past,
                                                   .seat = batch->seat });
}

int ft_cuda_choose(const ft_cuda_args *args)
{
    return ft_cuda_choose_rows(args->chip, args->stream,
                               &(ft_cuda_choices){ .memory = memory_of(args),
                                                   .logits = args->in[0].data,
                                                   .choice = args->batch->choice,
                                                   .rows = args->batch->selected,
                                                   .token = args->out.data,
                                                   .logprob = args->second.data,
                                                   .scratch = args->scratch });
}
