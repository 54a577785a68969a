/*
 * sequence.h - a generation request while it waits and runs, and lists of them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_GENERATE_SEQUENCE_H
#define FT_RUNTIME_GENERATE_SEQUENCE_H

#include "kernels/sampling_params.h"
#include "runtime/model/model.h"
#include "runtime/text/stop_ids.h"

/* What the sequences of a model have in common. */
typedef struct ft_sequence_rules {
    const ft_config *config;
    ft_stop_ids stops;    /* eos_token_id of the model */
    int32_t start_ids[2]; /* the default prompt of encoder-decoders */
} ft_sequence_rules;

typedef struct ft_sequence ft_sequence;

struct ft_sequence {
    /* The caller sets these, and zero the rest.  What the request points to outlives the sequence.
     */
    ft_request request;
    size_t index;     /* ft_token.request */
    int32_t priority; /* waiting requests start in the order of falling priority */
    ft_on_token on_token;
    void *user;
    size_t prefilled; /* tokens in the KV cache after all launched passes; the caller sets how many
                         a kept cache has already */

    /* The scheduler sets these. */
    ft_sequence *next, *previous;   /* in a list */
    bool waits, encoded;            /* has no slot yet; the encoder has run, or there is none */
    unsigned overtaken;             /* by requests that came later */
    size_t slot;                    /* unless it waits */
    size_t n_launched, n_generated; /* new tokens: launched, and received */
    size_t max_new_tokens;
    ft_finish_reason reason;
};

/* Read what the model says: FT_EFORMAT or FT_ELIMIT. */
FT_MUST_USE ft_status ft_sequence_rules_read(ft_sequence_rules *out, const ft_model *model,
                                             ft_error *err);

/* Encoder-decoders: decoder_start_token_id, forced_bos_token_id, unless the request has a prompt.
 */
void ft_sequence_set_default_prompt(ft_sequence *sequence, const ft_sequence_rules *rules);

/* How to sample the next token that is launched. */
ft_sampling_params ft_sequence_sampling(const ft_sequence *sequence,
                                        const ft_sequence_rules *rules);

/* The token that has been sampled, with its finish reason; no text yet. */
ft_token ft_sequence_token(const ft_sequence *sequence, const ft_sequence_rules *rules, int32_t id,
                           float logprob);

/* ---- Lists -------------------------------------------------------------------------------- */

typedef struct ft_sequence_list {
    ft_sequence *first, *last;
} ft_sequence_list;

void ft_sequence_list_append(ft_sequence_list *list, ft_sequence *sequence);
void ft_sequence_list_remove(ft_sequence_list *list, ft_sequence *sequence);

/* Nobody waits for more requests than these that came later. */
enum { FT_SEQUENCE_OVERTAKEN_MAX = 64 };

/*
 * Insert by priority, then by arrival.  A sequence that FT_SEQUENCE_OVERTAKEN_MAX others have
 * overtaken lets no more pass, and those before it neither, so that everybody's turn comes.
 */
void ft_sequence_list_insert(ft_sequence_list *list, ft_sequence *sequence);

#endif
