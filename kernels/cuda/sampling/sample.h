/*
 * sample.h - samples the next tokens of many sequences on the GPU.
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

/* State of the sequences, indexed by slot. This and all following pointers are to device memory. */
typedef struct ft_cuda_token_history {
    int32_t *history; /* [slots, context]: tokens in order */
    uint32_t *seen;   /* [slots, vocabulary]: kernels/sampling.h */
    int32_t *last;    /* [slots]: the newest token, which the next step embeds */
    size_t context, vocabulary;
} ft_cuda_token_history;

typedef struct ft_cuda_sample_params {
    ft_cuda_token_history memory;
    const float *logits;              /* [rows, vocabulary] */
    const ft_sampling_params *sampling; /* [rows]; no two rows have the same slot */
    size_t rows;
    int32_t *token; /* [rows]: an id or FT_NO_TOKEN */
    float *logprob; /* [rows]: of the raw logits; NaN without a token; NULL: not needed */
    void *scratch;  /* ft_cuda_sample_scratch() bytes, 16-byte aligned */
    ft_cuda_token_mailbox mailbox;
} ft_cuda_sample_params;

/* Scratch bytes; 0 if a row of logits fits into the shared memory of a CTA or of a cluster. */
size_t ft_cuda_sample_scratch(const ft_cuda_device_props *props, size_t rows, size_t vocabulary);

/*
 * Samples a token for each row and appends it to the history of its sequence: ft_cpu_sample_row()
 * and ft_cpu_sample_append() with the same bits. Rows without a slot get FT_NO_TOKEN and change
 * nothing. Returns cudaErrorInvalidValue if the vocabulary is so large that its ban bitmap does not
 * fit into shared memory.
 */
int ft_cuda_sample_rows(const ft_cuda_device_props *props, void *stream,
                        const ft_cuda_sample_params *args);

/*
 * CTAs per row: more than one if a row does not fit into the shared memory of one CTA. The second
 * function launches with 1, 2, 4 or 8 of them, from sm_90 on; tests try each.
 */
unsigned ft_cuda_sample_ctas_per_row(const ft_cuda_device_props *props, size_t rows,
                                     size_t vocabulary);
int ft_cuda_sample_rows_with(unsigned blocks, const ft_cuda_device_props *props, void *stream,
                             const ft_cuda_sample_params *args);

/* Parameters of ft_cuda_record_prompt_tokens(), which does the same as ft_cpu_record_prompt(). */
typedef struct ft_cuda_record_params {
    ft_cuda_token_history memory;
    const int32_t *ids, *seq_id; /* [tokens] */
    size_t tokens;
    const int32_t *start, *n_past, *slot; /* [sequences] */
} ft_cuda_record_params;

int ft_cuda_record_prompt_tokens(const ft_cuda_device_props *props, void *stream,
                                 const ft_cuda_record_params *args);

#ifdef __cplusplus
}
#endif
#endif
