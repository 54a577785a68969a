/*
 * scheduler_private.h - the state of a scheduler, and the parts of a step.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_GENERATE_SCHEDULER_PRIVATE_H
#define FT_RUNTIME_GENERATE_SCHEDULER_PRIVATE_H

#include "runtime/generate/prefix_cache.h"
#include "runtime/generate/scheduler.h"
#include "runtime/text/stop_text.h"

typedef struct ft_slot {
    ft_sequence *sequence; /* NULL: the slot is free */
    ft_prefix prefix;      /* blocks in the prefix cache */
    uint64_t times_used;   /* tells sequences apart that have the slot one after the other */
} ft_slot;

/* A launched pass that samples tokens: whose each row is.  Rows of ended sequences are ignored. */
typedef struct ft_in_flight {
    bool decode_step;
    size_t count;
    size_t *slot;         /* [selected] */
    uint64_t *times_used; /* [selected]: of the slot when the pass was launched */
} ft_in_flight;

struct ft_scheduler {
    ft_session *session;
    ft_scheduler_options options;
    ft_sequence_rules rules;
    ft_sequence_list waiting;    /* without a slot */
    ft_sequence_list prefilling; /* in the order in which they got a slot */
    size_t num_slots, num_free;  /* a decode step has one row for each slot */
    ft_slot *slot;               /* [session slots] */
    ft_in_flight in_flight[2];   /* the oldest launched pass, and the one after it */
    unsigned num_in_flight;
    bool prefilled_last; /* the last step was a prefill pass */
    int32_t *token;      /* [selected] */
    float *logprob;
    ft_stop_decoder *decoded; /* [slots]; NULL: no tokenizer, only ids */
    ft_prefix_cache *prefixes; /* NULL: none */
    int32_t *tokens;           /* [slots, context]: prompts and new tokens; NULL: no prefix cache */
    ft_scheduler_stats stats;
};

/* The known tokens of a running sequence. */
static inline int32_t *ft_scheduler_tokens(const ft_scheduler *s, const ft_sequence *sequence)
{
    return s->tokens + sequence->slot * s->session->context;
}

/* Start waiting sequences in order, as many as the next prefill pass has room for. */
void ft_scheduler_admit(ft_scheduler *s);

/* The sequence has ended: release its slot and report it. */
void ft_scheduler_end(ft_scheduler *s, ft_sequence *sequence, ft_finish_reason reason,
                      const ft_error *failure);

/* Let others share the full pages of a sequence whose tokens are known. */
void ft_scheduler_share_prefix(ft_scheduler *s, const ft_sequence *sequence);

/*
 * Build a pass; false if nobody needs it: complete sources for the encoder, up to `chunk` prompt
 * tokens, or the last token of each running sequence, which is on the device.
 */
bool ft_scheduler_add_sources(ft_scheduler *s);
bool ft_scheduler_add_prompts(ft_scheduler *s);
bool ft_scheduler_add_steps(ft_scheduler *s);

/* Launch the pass that has been built. */
FT_MUST_USE ft_status ft_scheduler_launch(ft_scheduler *s, ft_error *err);

/* Retire the oldest launched pass: read its tokens and report them. */
FT_MUST_USE ft_status ft_scheduler_retire(ft_scheduler *s, ft_error *err);

#endif
