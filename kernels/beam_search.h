/*
 * beam_search.h - beam search: the state of beams and the arithmetic of a step, equal on every
 * device.
 *
 * A text has `width` beams in consecutive slots.  A step has these stages.
 *
 *     rows       Each live beam adds the log-probability of every token to its score and emits its
 *                best width + n_eos candidates.  No more are needed: at most n_eos of them are
 *                EOS, so at least `width` continue.
 *     merge      The candidates of all beams are consumed in order.  An EOS candidate among the
 *                first `width` is added to the finished hypotheses; the first `width` candidates
 *                without EOS become the new beams.
 *     end        The search is done when no beam can improve on the finished hypotheses.
 *
 * Order: higher score first; with equal scores the smaller beam * vocabulary + token first.  A
 * candidate is one integer, ft_beam_candidate(), which sorts in this order.  A score is the sum of
 * float32 log-probabilities in token order.  The score of a finished hypothesis is divided by
 * (new tokens)^length_penalty.
 *
 * The semantics are those of beam search in Hugging Face transformers 5, with one difference:
 * transformers continues a beam without candidates at a score of -1e9.  Here such a beam is dead,
 * and fewer than `width` hypotheses may finish.
 *
 * Diversity: transformers has removed group beam search.  The definition here is that of A.
 * Vijayakumar et al., "Diverse Beam Search" (2016), with Hamming diversity.  The beams are split
 * into groups of equal width, each with a beam search of its own.  A step processes the groups in
 * order, and a candidate loses `diversity_penalty` for each beam of earlier groups that has
 * selected the same token in this step.
 *
 * Reordering beams copies no tokens and no KV cache, only the cache indirection of a beam: for each
 * position, the beam whose history and cache pages hold the token.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_BEAM_SEARCH_H
#define FT_KERNELS_BEAM_SEARCH_H

#include "kernels/math/elementary.h"
#include "kernels/sampling.h"

enum { FT_MAX_BEAMS = 64, FT_BEAM_CANDIDATES = FT_MAX_BEAMS + FT_MAX_BANNED_IDS };

/* One text in one step.  All numbers are finite; kernels do not check them again. */
typedef struct ft_beam_params {
    int32_t slot;   /* of beam 0; -1: padding */
    int32_t row;    /* selected row of beam 0; those of the other beams follow, except in the first
                       step, which has one row */
    int32_t width;  /* beams, 1 .. FT_MAX_BEAMS */
    int32_t num_beam_groups; /* of diverse beam search: divides width; 1: no diversity */
    int32_t prompt; /* prompt tokens, in the history of beam 0 in the first step */
    int32_t n_tokens;         /* tokens before this step, the prompt included */
    int32_t max_length;       /* maximum tokens of a hypothesis, the prompt included */
    int32_t min_new_tokens;   /* minimum new tokens; until then eos[] is banned */
    int32_t early_stopping;   /* ft_early_stopping */
    int32_t forced;           /* forced token of this step; -1: none */
    int32_t no_repeat_ngram;  /* no n-gram of this size occurs twice; 0: off */
    float repetition_penalty; /* multiplies log-probabilities of known tokens; 0 or 1: off */
    float diversity_penalty;  /* subtracted for each beam of earlier groups with the same token */
    float divisor; /* of scores that finish in this step: ft_beam_set_length_divisors() */
    float max_length_divisor; /* of the best score that a live beam can still reach */
    int32_t n_eos;            /* length of eos[], the EOS ids */
    int32_t n_banned;         /* length of banned[], ids that only a forced token may be */
    int32_t eos[FT_MAX_BANNED_IDS];
    int32_t banned[FT_MAX_BANNED_IDS];
} ft_beam_params;

/* The state of a slot.  A group stores its finished hypotheses in the slots of its beams. */
typedef struct ft_beam {
    float score;             /* of the live beam; -inf: dead */
    float finished_score;    /* after the length penalty */
    int32_t finished_length; /* new tokens, EOS included; 0: none finished here */
    int32_t finished_order;  /* rank of equal scores: earlier hypotheses have smaller numbers */
    int32_t finished;        /* first beam of a group: number of finished hypotheses in its slots */
    int32_t status;          /* first beam of a group: ft_beam_status */
} ft_beam;

typedef enum ft_beam_status { FT_BEAM_RUNS, FT_BEAM_DONE, FT_BEAM_FAILED } ft_beam_status;

enum { FT_BEAM_WORDS = sizeof(ft_beam) / sizeof(int32_t) };

/* The state of all slots, which persists between steps. */
typedef struct ft_beam_state {
    int32_t *last;              /* [slots]: input token of the next step */
    int32_t *history;           /* [slots, context] */
    int32_t *cache_indirection; /* [slots, context]: beam ids */
    int32_t *finished;          /* [slots, context]: new tokens of finished hypotheses */
    ft_beam *beam;              /* [slots] */
    size_t context, vocabulary;
} ft_beam_state;

/* ---- A search ----------------------------------------------------------------------------- */

FT_HOST_DEVICE bool ft_beam_is_first_step(const ft_beam_params *beams)
{
    return beams->n_tokens == beams->prompt;
}

/* In the last step every candidate finishes its hypothesis. */
FT_HOST_DEVICE bool ft_beam_is_last_step(const ft_beam_params *beams)
{
    return beams->n_tokens + 1 >= beams->max_length;
}

/* Beams per group. */
FT_HOST_DEVICE int32_t ft_beam_group_width(const ft_beam_params *beams)
{
    return beams->width / beams->num_beam_groups;
}

/* Maximum candidates of a beam. */
FT_HOST_DEVICE int32_t ft_beam_max_candidates(const ft_beam_params *beams)
{
    return beams->width + beams->n_eos;
}

FT_HOST_DEVICE bool ft_beam_is_eos(const ft_beam_params *beams, int32_t token)
{
    for (int32_t i = 0; i < beams->n_eos; i++)
        if (beams->eos[i] == token)
            return true;
    return false;
}

/* Set the divisors that depend on the length, on the host, so that devices need no pow(). */
static inline void ft_beam_set_length_divisors(ft_beam_params *beams, double length_penalty)
{
    bool far = beams->early_stopping == FT_EARLY_STOPPING_NEVER && length_penalty > 0.0;
    double now = beams->n_tokens + 1 - beams->prompt, longest = beams->max_length - beams->prompt;
    beams->divisor = (float) ft_math_pow(now, length_penalty);
    beams->max_length_divisor = far ? (float) ft_math_pow(longest, length_penalty) : beams->divisor;
}

/* The score of a beam at the start of this step. */
FT_HOST_DEVICE float ft_beam_input_score(const ft_beam_params *beams, const ft_beam_state *m,
                                         int32_t beam_id)
{
    if (ft_beam_is_first_step(beams))
        return beam_id % ft_beam_group_width(beams) == 0 ? 0.0f : -INFINITY;
    const ft_beam *first = m->beam + beams->slot;
    int32_t head = beam_id - beam_id % ft_beam_group_width(beams);
    return first[head].status == FT_BEAM_RUNS ? first[beam_id].score : -INFINITY;
}

FT_HOST_DEVICE int32_t ft_beam_row(const ft_beam_params *beams, int32_t beam_id)
{
    return ft_beam_is_first_step(beams) ? beams->row : beams->row + beam_id;
}

/* The beam whose slot holds the token at `position` of beam `beam_id`: the cache indirection. */
FT_HOST_DEVICE int32_t ft_beam_parent_at(const ft_beam_params *beams, const ft_beam_state *m,
                                         int32_t beam_id, int32_t position)
{
    size_t slot = (size_t) (beams->slot + beam_id);
    return ft_beam_is_first_step(beams)
               ? 0
               : m->cache_indirection[slot * m->context + (size_t) position];
}

FT_HOST_DEVICE int32_t ft_beam_token_at(const ft_beam_params *beams, const ft_beam_state *m,
                                        int32_t beam_id, int32_t position)
{
    size_t slot = (size_t) (beams->slot + ft_beam_parent_at(beams, m, beam_id, position));
    return m->history[slot * m->context + (size_t) position];
}

/* As ft_sampling_ngram_repeats(). */
FT_HOST_DEVICE bool ft_beam_ngram_repeats(const ft_beam_params *beams, const ft_beam_state *m,
                                          int32_t beam_id, int32_t at)
{
    int32_t n = beams->no_repeat_ngram;
    for (int32_t i = 0; i < n - 1; i++)
        if (ft_beam_token_at(beams, m, beam_id, at + i) !=
            ft_beam_token_at(beams, m, beam_id, beams->n_tokens - n + 1 + i))
            return false;
    return true;
}

/* ---- Candidates --------------------------------------------------------------------------- */

FT_HOST_DEVICE bool ft_beam_has_repetition_penalty(const ft_beam_params *beams)
{
    return beams->repetition_penalty != 0.0f && beams->repetition_penalty != 1.0f;
}

/* The logarithm of a sum of fixed-point probabilities, relative to the largest logit. */
FT_HOST_DEVICE float ft_beam_log_total(uint64_t total)
{
    return (float) (ft_sampling_log((double) total) - FT_SAMPLING_PROB_BITS * 0.69314718055994531);
}

/* The log-probability of a token; the largest logit of the row is finite. */
FT_HOST_DEVICE float ft_beam_logprob(float logit, float largest, float log_total)
{
    float relative = logit - largest;
    return relative - log_total;
}

/* The score of a beam extended by a token; `seen`: the token is in its history. */
FT_HOST_DEVICE float ft_beam_extend_score(float score, float logprob, bool seen,
                                          const ft_beam_params *beams)
{
    if (seen && ft_beam_has_repetition_penalty(beams))
        logprob = logprob > 0.0f ? logprob / beams->repetition_penalty
                                 : logprob * beams->repetition_penalty;
    return score + logprob;
}

/* A candidate as an integer; the larger comes first.  0: none, also for a score of -inf. */
FT_HOST_DEVICE uint64_t ft_beam_candidate(float score, uint32_t index)
{
    uint32_t bits;
    float x = score + 0.0f; /* -0 is 0 */
    if (!(score > -INFINITY))
        return 0;
    memcpy(&bits, &x, sizeof bits);
    bits = bits & 0x80000000u ? ~bits : bits | 0x80000000u;
    return (uint64_t) bits << 32 | (uint32_t) ~index;
}

/* beam * vocabulary + token. */
FT_HOST_DEVICE uint32_t ft_beam_candidate_index(uint64_t candidate)
{
    return ~(uint32_t) candidate;
}

FT_HOST_DEVICE float ft_beam_candidate_score(uint64_t candidate)
{
    uint32_t bits = (uint32_t) (candidate >> 32);
    float score;
    bits = bits & 0x80000000u ? bits & 0x7fffffffu : ~bits;
    memcpy(&score, &bits, sizeof score);
    return score;
}

/*
 * Apply the diversity penalty to a sorted list of candidates: `taken` are the tokens that the beams
 * before `head` have selected in this step.  The list stays sorted.
 */
FT_HOST_DEVICE void ft_beam_penalize_diversity(uint64_t *list, const ft_beam_params *beams,
                                               const int32_t *taken, int32_t head,
                                               uint32_t vocabulary)
{
    for (int32_t i = 0; i < ft_beam_max_candidates(beams) && list[i] != 0; i++) {
        uint32_t index = ft_beam_candidate_index(list[i]);
        int32_t times = 0, at = i;
        for (int32_t beam_id = 0; beam_id < head; beam_id++)
            times += taken[beam_id] == (int32_t) (index % vocabulary);
        float cost = beams->diversity_penalty * (float) times;
        uint64_t moved = ft_beam_candidate(ft_beam_candidate_score(list[i]) - cost, index);
        for (; at > 0 && list[at - 1] < moved; at--)
            list[at] = list[at - 1];
        list[at] = moved;
    }
}

/* ---- A step of one group ------------------------------------------------------------------ */

/* The result of a step of a group: its new beams and newly finished hypotheses. */
typedef struct ft_beam_step {
    int32_t passed;               /* candidates consumed */
    int32_t lives;                /* new beams */
    int32_t parent[FT_MAX_BEAMS]; /* of each: the beam it extends */
    int32_t token[FT_MAX_BEAMS];  /* of each: its new token */
    float score[FT_MAX_BEAMS];
    int32_t ended;                         /* newly finished hypotheses that were kept */
    int32_t finished_parent[FT_MAX_BEAMS]; /* of each: the beam it extends */
    int32_t finished_token[FT_MAX_BEAMS];  /* of each: its last token */
    int32_t finished_index[FT_MAX_BEAMS];  /* of each: its index in the slots of the group */
} ft_beam_step;

/* The worst finished hypothesis: the lowest score, with equal scores the latest. */
FT_HOST_DEVICE int32_t ft_beam_worst_finished(const ft_beam *part, int32_t count)
{
    int32_t worst = 0;
    for (int32_t i = 1; i < count; i++) {
        bool lower = part[i].finished_score < part[worst].finished_score;
        bool equal = part[i].finished_score == part[worst].finished_score;
        if (lower || (equal && part[i].finished_order > part[worst].finished_order))
            worst = i;
    }
    return worst;
}

/* Add a finished hypothesis, in place of the worst if all are in use; false: it is not better. */
FT_HOST_DEVICE bool ft_beam_add_finished(ft_beam *part, const ft_beam_params *beams, float score,
                                         int32_t rank, int32_t *finished_index)
{
    int32_t span = ft_beam_group_width(beams), made = beams->n_tokens + 1 - beams->prompt;
    score = score / beams->divisor;
    *finished_index = part->finished < span ? part->finished++ : ft_beam_worst_finished(part, span);
    ft_beam *worst = &part[*finished_index];
    bool is_free = worst->finished_length == 0;
    if (!is_free && !(score > worst->finished_score))
        return false;
    worst->finished_score = score;
    worst->finished_length = made;
    worst->finished_order = made * FT_MAX_BEAMS + rank;
    return true;
}

/* Begin the step of a group; `part` is the state of its first slot. */
FT_HOST_DEVICE void ft_beam_step_begin(ft_beam_step *turn, ft_beam *part,
                                       const ft_beam_params *beams)
{
    turn->passed = turn->lives = turn->ended = 0;
    for (int32_t i = 0; ft_beam_is_first_step(beams) && i < ft_beam_group_width(beams); i++) {
        ft_beam none = { -INFINITY, 0.0f, 0, 0, 0, FT_BEAM_RUNS };
        part[i] = none;
    }
}

/* Consume the next candidate in order; false: no further candidate is needed. */
FT_HOST_DEVICE bool ft_beam_step_consume(ft_beam_step *turn, ft_beam *part,
                                         const ft_beam_params *beams, uint32_t vocabulary,
                                         uint64_t candidate)
{
    uint32_t index = ft_beam_candidate_index(candidate);
    int32_t beam_id = (int32_t) (index / vocabulary), token = (int32_t) (index % vocabulary);
    int32_t rank = turn->passed++, span = ft_beam_group_width(beams);
    bool closes = ft_beam_is_last_step(beams);
    if (candidate == 0)
        return false;
    if (!closes && !ft_beam_is_eos(beams, token)) {
        turn->parent[turn->lives] = beam_id;
        turn->token[turn->lives] = token;
        turn->score[turn->lives++] = ft_beam_candidate_score(candidate);
    } else if (rank < span && ft_beam_add_finished(part, beams, ft_beam_candidate_score(candidate),
                                                   rank, &turn->finished_index[turn->ended])) {
        turn->finished_parent[turn->ended] = beam_id;
        turn->finished_token[turn->ended++] = token;
    }
    return closes ? turn->passed < span : turn->lives < span;
}

/* Whether the search of a group is over; its first new beam is the best. */
FT_HOST_DEVICE bool ft_beam_is_over(const ft_beam_step *turn, const ft_beam *part,
                                    const ft_beam_params *beams)
{
    int32_t span = ft_beam_group_width(beams);
    if (turn->lives == 0)
        return true;
    if (part->finished < span)
        return false;
    float hope = turn->score[0] / beams->max_length_divisor;
    return beams->early_stopping == FT_EARLY_STOPPING_TRUE ||
           !(hope > part[ft_beam_worst_finished(part, span)].finished_score);
}

/* End the step: store the scores of the beams and the status of the group. */
FT_HOST_DEVICE void ft_beam_step_end(const ft_beam_step *turn, ft_beam *part,
                                     const ft_beam_params *beams, bool failed)
{
    for (int32_t i = 0; i < ft_beam_group_width(beams); i++)
        part[i].score = !failed && i < turn->lives ? turn->score[i] : -INFINITY;
    if (failed)
        part->status = FT_BEAM_FAILED;
    else if (ft_beam_is_over(turn, part, beams))
        part->status = FT_BEAM_DONE;
}

#endif
