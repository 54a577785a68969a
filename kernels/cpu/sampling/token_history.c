/*
 * token_history.c - the tokens of the sequences: the operations RECORD_TOKENS and SAMPLE.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cpu/sampling/sample.h"
#include "kernels/cpu/base/cpu.h"
#include "runtime/mem.h"

ft_workspace ft_cpu_sample_workspace(const ft_plan *plan, const ft_op *op, const ft_limits *limits)
{
    size_t row = ft_cpu_sample_row_scratch((size_t) plan->value[op->in[0]].cols);
    return (ft_workspace){ .scratch = (size_t) limits->threads * ft_round_up(row, 64) };
}

static ft_cpu_token_history history_of(const ft_args *args)
{
    return (ft_cpu_token_history){
        .history = args->state[FT_STATE_HISTORY].data,
        .seen = args->state[FT_STATE_TOKEN_COUNTS].data,
        .last = args->state[FT_STATE_LAST_TOKEN].data,
        .context = args->limits->context,
        .vocabulary = args->state[FT_STATE_TOKEN_COUNTS].cols,
    };
}

/*
 * Also runs in batches that sample nothing, because a prompt may come in several prefill chunks.
 * The token that a decode step reads was recorded when it was sampled.
 */
void ft_cpu_record_tokens(const ft_args *args)
{
    const ft_batch *batch = args->batch;
    const ft_cpu_token_history memory = history_of(args);
    if (!batch->decode_step)
        ft_cpu_record_prompt(&memory, &(ft_cpu_prompt_tokens){ .ids = args->in[0].data,
                                                               .seq_id = batch->seq_id,
                                                               .tokens = batch->tokens,
                                                               .start = batch->start,
                                                               .n_past = batch->n_past,
                                                               .slot = batch->slot });
}

static void sample_rows(const void *job, int thread, size_t first, size_t end)
{
    const ft_args *args = job;
    const ft_cpu_token_history memory = history_of(args);
    int32_t *token = args->out.data;
    float *logprob = args->second.data;
    for (size_t row = first; row < end; row++) {
        const ft_sampling_params *sampling = &args->batch->sampling[row];
        size_t slot = sampling->slot < 0 ? 0 : (size_t) sampling->slot;
        ft_cpu_sample_row(args->rows, ft_row_f32(&args->in[0], row), args->in[0].cols, sampling,
                          memory.history + slot * memory.context,
                          memory.seen + slot * memory.vocabulary, ft_thread_scratch(args, thread),
                          &token[row], &logprob[row]);
        ft_cpu_sample_append(&memory, sampling, token[row]);
    }
}

/* A token costs an exponential or two; the cost of the most likely tokens differs by row. */
void ft_cpu_sample(const ft_args *args)
{
    enum { COST = 8 };
    size_t rows = args->in[0].rows;
    double work = (double) COST * (double) rows * (double) args->in[0].cols;
    if (args->batch->sampling != NULL)
        ft_parallel_for_dynamic(ft_team_size(args->threads, rows, work), rows, sample_rows, args);
}
