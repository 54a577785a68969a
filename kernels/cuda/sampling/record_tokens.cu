/*
 * record_tokens.cu - the operation RECORD_TOKENS: stores the tokens of prompts in the history of
 * their sequences.
 *
 * It takes two launches, because the state of a slot must be cleared before the first tokens of a
 * new sequence are recorded, and CTAs do not synchronize with each other.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/sampling.h"
#include "kernels/cuda/sampling/sample.h"
#include "kernels/cuda/common.cuh"

enum { THREADS = 256 };

/* Position of a token that has a sequence. */
__device__ __forceinline__ size_t position_of(const ft_cuda_record_params &n, size_t token,
                                              int32_t seq_id)
{
    return (size_t) (n.n_past[seq_id] + (int32_t) token - n.start[seq_id]);
}

/* One CTA per token; nearly all of them find that theirs is not the first of its sequence. */
static __global__ void __launch_bounds__(THREADS) clear_seen_kernel(const ft_cuda_record_params n)
{
    ft_pdl_wait();
    ft_pdl_launch_dependents();
    int32_t seq_id = n.seq_id[blockIdx.x];
    if (seq_id < 0 || position_of(n, blockIdx.x, seq_id) != 0)
        return;
    uint32_t *seen = n.memory.seen + (size_t) n.slot[seq_id] * n.memory.vocabulary;
    for (size_t i = threadIdx.x; i < n.memory.vocabulary; i += THREADS)
        seen[i] = 0;
}

static __global__ void __launch_bounds__(THREADS)
    record_tokens_kernel(const ft_cuda_record_params n)
{
    ft_pdl_wait();
    ft_pdl_launch_dependents();
    size_t i = (size_t) blockIdx.x * THREADS + threadIdx.x;
    if (i >= n.tokens || n.seq_id[i] < 0 || n.ids[i] < 0)
        return;
    size_t slot = (size_t) n.slot[n.seq_id[i]], id = (size_t) n.ids[i];
    n.memory.history[slot * n.memory.context + position_of(n, i, n.seq_id[i])] = (int32_t) id;
    atomicOr(&n.memory.seen[slot * n.memory.vocabulary + id], FT_TOKEN_IN_PROMPT);
}

int ft_cuda_record_prompt_tokens(const ft_cuda_device_props *props, void *stream,
                                 const ft_cuda_record_params *args)
{
    if (args->tokens == 0)
        return 0;
    int status = ft_launch(clear_seen_kernel, dim3((unsigned) args->tokens), dim3(THREADS), 0,
                           stream, props->has_pdl, 1, *args);
    if (status != 0)
        return status;
    return ft_launch(record_tokens_kernel, dim3(ft_ceil_div(args->tokens, THREADS)), dim3(THREADS),
                     0, stream, props->has_pdl, 1, *args);
}
