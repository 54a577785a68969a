/*
 * sample.h - the next tokens of many sequences, on the GPU.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_SAMPLING_SAMPLE_H
#define FT_KERNELS_CUDA_SAMPLING_SAMPLE_H

#include "kernels/sampling_params.h"
#include "kernels/cuda/cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What is remembered of the sequences, by seat.  Device memory, as all that follows. */
typedef struct ft_cuda_memory {
    int32_t *history; /* [seats, context]: tokens in order */
    uint32_t *seen;   /* [seats, vocabulary]: kernels/sampling.h */
    int32_t *last;    /* [seats]: the newest token, what the next step embeds */
    size_t context, vocabulary;
} ft_cuda_memory;

typedef struct ft_cuda_choices {
    ft_cuda_memory memory;
    const float *logits;     /* [rows, vocabulary] */
    const ft_choice *choice; /* [rows]; no two rows have the same seat */
    size_t rows;
    int32_t *token; /* [rows]: an id or FT_NO_TOKEN */
    float *logprob; /* [rows]: of the raw logits; NaN where there is no token; NULL: nobody asks */
    void *scratch;  /* ft_cuda_choose_scratch() bytes, 16-byte aligned */
    ft_cuda_answers answers;
} ft_cuda_choices;

/* 0 where a row of logits fits into the shared memory of a block, or of a cluster. */
size_t ft_cuda_choose_scratch(const ft_cuda_chip *chip, size_t rows, size_t vocabulary);

/*
 * Choose a token for each row and put it into its sequence's memory: what ft_cpu_choose_row() and
 * ft_cpu_choose_keep() do, to the bit.  Rows of no seat get FT_NO_TOKEN and change nothing.
 * cudaErrorInvalidValue: a vocabulary so large that its bans do not fit into shared memory either.
 */
int ft_cuda_choose_rows(const ft_cuda_chip *chip, void *stream, const ft_cuda_choices *args);

/*
 * How many blocks work on a row: more than one where it does not fit into the shared memory of one;
 * and a launch with 1, 2, 4 or 8 of them, from sm_90 on.  Tests try each.
 */
unsigned ft_cuda_choose_blocks(const ft_cuda_chip *chip, size_t rows, size_t vocabulary);
int ft_cuda_choose_rows_by(unsigned blocks, const ft_cuda_chip *chip, void *stream,
                           const ft_cuda_choices *args);

/* As ft_cpu_choose_note(). */
typedef struct ft_cuda_prompts {
    ft_cuda_memory memory;
    const int32_t *ids, *owner; /* [tokens] */
    size_t tokens;
    const int32_t *start, *past, *seat; /* [sequences] */
} ft_cuda_prompts;

int ft_cuda_choose_note(const ft_cuda_chip *chip, void *stream, const ft_cuda_prompts *args);

#ifdef __cplusplus
}
#endif
#endif
