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
__device__ __forceinline__ size_t position_of(const ft_cuda_prompts &n, size_t token, int32_t owner)
{
    return (size_t) (n.past[owner] + (int32_t) token - n.start[owner]);
}

/* One CTA per token; nearly all of them find that theirs is not the first of its sequence. */
static __global__ void __launch_bounds__(THREADS) forget_kernel(const ft_cuda_prompts n)
{
    ft_wait_for_predecessor();
    ft_let_successor_begin();
    int32_t owner = n.owner[blockIdx.x];
    if (owner < 0 || position_of(n, blockIdx.x, owner) != 0)
        return;
    uint32_t *seen = n.memory.seen + (size_t) n.seat[owner] * n.memory.vocabulary;
    for (size_t i = threadIdx.x; i < n.memory.vocabulary; i += THREADS)
        seen[i] = 0;
}

static __global__ void __launch_bounds__(THREADS) note_kernel(const ft_cuda_prompts n)
{
    ft_wait_for_predecessor();
    ft_let_successor_begin();
    size_t i = (size_t) blockIdx.x * THREADS + threadIdx.x;
    if (i >= n.tokens || n.owner[i] < 0 || n.ids[i] < 0)
        return;
    size_t seat = (size_t) n.seat[n.owner[i]], id = (size_t) n.ids[i];
    n.memory.history[seat * n.memory.context + position_of(n, i, n.owner[i])] = (int32_t) id;
    atomicOr(&n.memory.seen[seat * n.memory.vocabulary + id], FT_SEEN_PROMPT);
}

int ft_cuda_choose_note(const ft_cuda_chip *chip, void *stream, const ft_cuda_prompts *args)
{
    if (args->tokens == 0)
        return 0;
    int status = ft_launch(forget_kernel, dim3((unsigned) args->tokens), dim3(THREADS), 0, stream,
                           chip->overlaps, 1, *args);
    if (status != 0)
        return status;
    return ft_launch(note_kernel, dim3(ft_cover(args->tokens, THREADS)), dim3(THREADS), 0, stream,
                     chip->overlaps, 1, *args);
}
