/*
 * token_history.c - the operations NOTE, CHOOSE and BEAM: choose.h and beam.h with the views of a plan.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cuda/sampling/beam_search.h"
#include "kernels/cuda/sampling/sample.h"
#include "kernels/cuda/host/device.h"

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

int ft_cuda_beam(const ft_cuda_args *args)
{
    const ft_cuda_batch *batch = args->batch;
    const ft_beam_memory memory = {
        .last = args->state[FT_STATE_LAST].data,
        .history = args->state[FT_STATE_HISTORY].data,
        .origin = args->state[FT_STATE_ORIGIN].data,
        .finished = args->state[FT_STATE_FINISHED].data,
        .beam = args->state[FT_STATE_BEAMS].data,
        .context = batch->capacity,
        .vocabulary = args->in[0].cols,
    };
    return ft_cuda_beam_step(args->chip, args->stream,
                             &(ft_cuda_beams){ .memory = memory,
                                               .logits = args->in[0].data,
                                               .beams = batch->beams,
                                               .groups = batch->groups,
                                               .widest = batch->widest,
                                               .scratch = args->scratch,
                                               .seats = args->state[FT_STATE_BEAMS].rows });
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
                                                   .scratch = args->scratch,
                                                   .answers = args->answers });
}
