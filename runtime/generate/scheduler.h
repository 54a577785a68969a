/*
 * scheduler.h - continuous batching, one forward pass at a time.
 *
 * Sequences wait until a slot and enough KV cache pages for their maximum length are free, so none
 * is preempted.  A step runs an encoder pass, a prefill pass with chunks of several prompts, or a
 * decode step with one row per running sequence.  Any mixture of sequences gives each the tokens
 * that it has alone, bit for bit.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_GENERATE_SCHEDULER_H
#define FT_RUNTIME_GENERATE_SCHEDULER_H

#include "runtime/generate/sequence.h"
#include "runtime/model/session.h"

typedef struct ft_scheduler ft_scheduler;

/*
 * Called once for each sequence that has been added, after its last token; it may free the
 * sequence.  `failure` tells why it failed, else it is NULL: sequence->reason is
 * FT_FINISH_CANCELLED after ft_scheduler_cancel() or if on_token returned false.
 */
typedef void (*ft_on_sequence_end)(void *user, ft_sequence *sequence, const ft_error *failure);

/* Called when a sequence gets a slot. */
typedef void (*ft_on_sequence_start)(void *user, ft_sequence *sequence);

typedef struct ft_scheduler_options {
    size_t chunk;                  /* prompt tokens of a prefill pass; 0 and most: of a pass */
    const ft_tokenizer *tokenizer; /* for the text of tokens; may be NULL */
    bool alternates;               /* a decode step of the running sequences follows each prefill
                                      pass, so that long prompts do not stall them */
    bool shares_prefixes;          /* prefix_cache.h, where it applies; not with keeps_pages */
    bool keeps_pages;              /* the sequence leaves its pages in its slot: kept_cache.h */
    ft_on_sequence_start on_start; /* may be NULL */
    ft_on_sequence_end on_end;
    void *user; /* of on_start and on_end */
} ft_scheduler_options;

/*
 * The session serves the scheduler alone until ft_scheduler_close(), which ends no sequence and
 * accepts NULL.  FT_EUNSUPPORTED: the model does not generate.
 */
FT_MUST_USE ft_status ft_scheduler_open(ft_scheduler **out, ft_session *session,
                                        const ft_scheduler_options *options, ft_error *err);
void ft_scheduler_close(ft_scheduler *scheduler);

/* Give a request its default prompt and check it: FT_EARG or FT_ELIMIT. */
FT_MUST_USE ft_status ft_scheduler_check(const ft_scheduler *scheduler, ft_sequence *sequence,
                                         ft_error *err);

/* Add a checked sequence, which the scheduler borrows until it ends. */
void ft_scheduler_add(ft_scheduler *scheduler, ft_sequence *sequence);

/* End a sequence that has been added and has not ended, without another token. */
void ft_scheduler_cancel(ft_scheduler *scheduler, ft_sequence *sequence);

/* Whether no sequence waits or runs. */
bool ft_scheduler_is_idle(const ft_scheduler *scheduler);

/*
 * Run a forward pass and report tokens.  on_token and on_end may add sequences, but not cancel
 * them.  After a device error no sequence can continue.
 */
FT_MUST_USE ft_status ft_scheduler_step(ft_scheduler *scheduler, ft_error *err);

/* What all steps have done so far. */
typedef struct ft_scheduler_stats {
    ft_generate_stats passes;
    size_t reused_tokens; /* of prompts: not computed */
} ft_scheduler_stats;

const ft_scheduler_stats *ft_scheduler_get_stats(const ft_scheduler *scheduler);

#endif
