/*
 * sample.h - samples the next token of a sequence, on the CPU.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CPU_SAMPLING_SAMPLE_H
#define FT_KERNELS_CPU_SAMPLING_SAMPLE_H

#include "kernels/sampling_params.h"
#include "kernels/cpu/base/rows.h"

/* Bytes of scratch for one row of so many logits. */
size_t ft_cpu_sample_row_scratch(size_t vocabulary);

/*
 * Samples from one row of logits. `history` holds params->n_tokens tokens and `seen` one word per
 * token of the vocabulary (kernels/sampling.h); either may be NULL if the parameters do not use it.
 * *token is an id, or FT_NO_TOKEN if sampling fails, and then *logprob is NaN; else *logprob is the
 * log-probability of the token under the raw logits. logprob may be NULL. The sequence state is not
 * changed: ft_cpu_sample_append() appends the token.
 */
void ft_cpu_sample_row(const ft_row_kernels *kernels, const float *logits, size_t vocabulary,
                       const ft_sampling_params *params, const int32_t *history,
                       const uint32_t *seen, void *scratch, int32_t *token, float *logprob);

/* The token history of all sequences, by slot. */
typedef struct ft_cpu_token_history {
    int32_t *history; /* [slots, context]: token ids in order */
    uint32_t *seen;   /* [slots, vocabulary] */
    int32_t *last;    /* [slots]: the latest token, which the next decode step embeds */
    size_t context, vocabulary;
} ft_cpu_token_history;

/*
 * Appends a sampled token to its sequence. FT_NO_TOKEN is not appended, but `last` becomes 0: an
 * asynchronous decode step that is already queued then embeds a valid id.
 */
void ft_cpu_sample_append(const ft_cpu_token_history *history_state,
                          const ft_sampling_params *params, int32_t token);

/*
 * Rows of a batch: token i of sequence s = seq_id[i] is at position n_past[s] + i - start[s] of it.
 */
typedef struct ft_cpu_prompt_tokens {
    const int32_t *ids, *seq_id; /* [tokens] */
    size_t tokens;
    const int32_t *start, *n_past, *slot; /* [sequences] */
} ft_cpu_prompt_tokens;

/*
 * Records the tokens of prompts, or of prefill chunks of them, in the history of their sequences. A
 * token at position 0 starts a new sequence and clears the slot's `seen`. Rows with a negative id
 * or seq_id are skipped, but may start a sequence.
 */
void ft_cpu_record_prompt(const ft_cpu_token_history *history_state,
                          const ft_cpu_prompt_tokens *prompt);

#endif
