/*
 * token_history.c - the operations RECORD_TOKENS, SAMPLE and BEAM_SEARCH: they call sample.h and
 * beam_search.h with the views of a plan.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cuda/sampling/beam_search.h"
#include "kernels/cuda/sampling/sample.h"
#include "kernels/cuda/host/device.h"

static ft_cuda_token_history history_of(const ft_cuda_args *args)
{
    return (ft_cuda_token_history){
        .history = args->state[FT_STATE_HISTORY].data,
        .seen = args->state[FT_STATE_TOKEN_COUNTS].data,
        .last = args->state[FT_STATE_LAST_TOKEN].data,
        .context = args->batch->capacity,
        .vocabulary = args->state[FT_STATE_TOKEN_COUNTS].cols,
    };
}

int ft_cuda_record_tokens(const ft_cuda_args *args)
{
    const ft_cuda_batch *batch = args->batch;
    return ft_cuda_record_prompt_tokens(args->props, args->stream,
                                        &(ft_cuda_record_params){ .memory = history_of(args),
                                                                  .ids = args->in[0].data,
                                                                  .seq_id = batch->seq_id,
                                                                  .tokens = batch->tokens,
                                                                  .start = batch->start,
                                                                  .n_past = batch->n_past,
                                                                  .slot = batch->slot });
}

ft_workspace ft_cuda_beam_search_workspace(const ft_cuda_device_props *props, const ft_plan *plan,
                                           const ft_op *op, const ft_limits *limits)
{
    size_t vocabulary = (size_t) plan->value[op->in[0]].cols;
    (void) props;
    return (ft_workspace){ .scratch = ft_cuda_beam_scratch(limits->sequences, vocabulary) };
}

int ft_cuda_beam_search(const ft_cuda_args *args)
{
    const ft_cuda_batch *batch = args->batch;
    const ft_beam_state state = {
        .last = args->state[FT_STATE_LAST_TOKEN].data,
        .history = args->state[FT_STATE_HISTORY].data,
        .cache_indirection = args->state[FT_STATE_CACHE_INDIRECTION].data,
        .finished = args->state[FT_STATE_FINISHED].data,
        .beam = args->state[FT_STATE_BEAMS].data,
        .context = batch->capacity,
        .vocabulary = args->in[0].cols,
    };
    return ft_cuda_beam_step(
        args->props, args->stream,
        &(ft_cuda_beam_params){ .memory = state,
                                .logits = args->in[0].data,
                                .beams = batch->beams,
                                .groups = batch->groups,
                                .widest = batch->widest,
                                .scratch = args->scratch,
                                .num_slots = args->state[FT_STATE_BEAMS].rows });
}

ft_workspace ft_cuda_sample_workspace(const ft_cuda_device_props *props, const ft_plan *plan,
                                      const ft_op *op, const ft_limits *limits)
{
    size_t vocabulary = (size_t) plan->value[op->in[0]].cols;
    return (ft_workspace){ .scratch = ft_cuda_sample_scratch(props, limits->selected, vocabulary) };
}

int ft_cuda_sample(const ft_cuda_args *args)
{
    return ft_cuda_sample_rows(args->props, args->stream,
                               &(ft_cuda_sample_params){ .memory = history_of(args),
                                                         .logits = args->in[0].data,
                                                         .sampling = args->batch->sampling,
                                                         .rows = args->batch->selected,
                                                         .token = args->out.data,
                                                         .logprob = args->second.data,
                                                         .scratch = args->scratch,
                                                         .mailbox = args->mailbox });
}
