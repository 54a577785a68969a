/*
 * sample.h - the next token of a sequence, on the CPU.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CPU_SAMPLING_SAMPLE_H
#define FT_KERNELS_CPU_SAMPLING_SAMPLE_H

#include "kernels/sampling_params.h"
#include "kernels/cpu/base/rows.h"

/* Bytes of scratch for one row of so many logits. */
size_t ft_cpu_choose_scratch(size_t vocabulary);

/*
 * Choose from one row of logits.  `history` holds choice->known tokens and `seen` a word for each
 * token of the vocabulary (kernels/sampling.h); either may be NULL where the choice has no use for
 * it.  *token is an id or FT_NO_TOKEN, and then *logprob is NaN; else that is the logarithm of the
 * token's probability under the raw logits.  logprob may be NULL.  Nothing else is changed:
 * ft_cpu_choose_keep() puts the token into the sequence's state.
 */
void ft_cpu_choose_row(const ft_rows_isa *isa, const float *logits, size_t vocabulary,
                       const ft_choice *choice, const int32_t *history, const uint32_t *seen,
                       void *scratch, int32_t *token, float *logprob);

/* What is remembered of the sequences, by seat. */
typedef struct ft_cpu_memory {
    int32_t *history; /* [seats, context]: tokens in order */
    uint32_t *seen;   /* [seats, vocabulary] */
    int32_t *last;    /* [seats]: the newest token, what the next step embeds */
    size_t context, vocabulary;
} ft_cpu_memory;

/*
 * A chosen token becomes part of its sequence.  FT_NO_TOKEN does not, but `last` becomes 0: a step
 * that is under way before anybody has looked then embeds some token, not none.
 */
void ft_cpu_choose_keep(const ft_cpu_memory *memory, const ft_choice *choice, int32_t token);

/* Rows of a run: token i of sequence s = owner[i] is at position past[s] + i - start[s] of it. */
typedef struct ft_cpu_prompts {
    const int32_t *ids, *owner; /* [tokens] */
    size_t tokens;
    const int32_t *start, *past, *seat; /* [sequences] */
} ft_cpu_prompts;

/*
 * The tokens of prompts, or of pieces of them, become part of their sequences.  A token at position
 * 0 begins a new one: what was seen in that seat is forgotten.  Rows whose id or owner is negative
 * are skipped, but they may begin a sequence.
 */
void ft_cpu_choose_note(const ft_cpu_memory *memory, const ft_cpu_prompts *note);

#endif
