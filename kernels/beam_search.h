/*
 * beam_search.h - beam search: what a group of lanes remembers, and the arithmetic of a step, the
 * same on every device.
 *
 * A text has `width` lanes, seats in a row.  A step goes through these stages.
 *
 *     rows       Each live lane adds to its score the log-probability of every token and hands in
 *                its best candidates: width + ends are enough, for so many of one lane are the
 *                best of all at most, or go on although all ends stand before them.
 *     merge      Candidates of all lanes pass in order.  One that ends the text and is among the
 *                first `width` is kept as finished; the first `width` that do not end become the
 *                lanes.
 *     end        The search is done when no lane can improve what is finished.
 *
 * The order: higher score first; of equal ones the smaller lane * vocabulary + token.  A candidate
 * is one integer, ft_beam_candidate(), so that this order is that of integers.  Scores are the
 * sums of float32 log-probabilities, in the order of tokens.  A finished text's score is divided by
 * (new tokens)^length penalty.
 *
 * These are the semantics of the beam search of Hugging Face transformers 5, with one difference:
 * there a lane that has no candidate goes on at a score of -1e9, here it is dead, and less than
 * `width` texts may finish.
 *
 * Diversity: transformers has given up group beam search; it is meant as A. Vijayakumar et al.,
 * "Diverse Beam Search" (2016) with Hamming diversity define it.  The lanes are cut into parts of
 * equal width, each a beam search of its own.  In a step the parts take turns, and a candidate
 * loses `diversity` for each lane of earlier parts that has just taken the same token.
 *
 * Nothing is copied when lanes change places but a lane's list of origins: `origin` says for each
 * position in which lane's history, and in which lane's pages of the cache, its token lies.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_BEAM_SEARCH_H
#define FT_KERNELS_BEAM_SEARCH_H

#include "kernels/sampling.h"

enum { FT_MAX_BEAMS = 64, FT_BEAM_CANDIDATES = FT_MAX_BEAMS + FT_MAX_BANNED_IDS };

/* One text in one run.  All numbers are finite; nothing here is checked again by the kernels. */
typedef struct ft_beam_params {
    int32_t slot;     /* of lane 0; -1: nobody's */
    int32_t row;      /* of the run's selected rows: that of lane 0, then, but in the first step,
                         those of the other lanes */
    int32_t width;    /* lanes, 1 .. FT_MAX_BEAMS */
    int32_t parts;    /* divides width; 1: no diversity */
    int32_t prompt;   /* tokens that were given: lane 0's history has them in the first step */
    int32_t n_tokens; /* tokens before this step: prompt in the first, then one more each step */
    int32_t longest;  /* tokens of a text at most, the prompt included */
    int32_t least;    /* new tokens before which none of end[] is chosen */
    int32_t early;    /* ft_early_stopping */
    int32_t forced;   /* the only token that may be chosen in this step; -1: none is */
    int32_t no_repeat_ngram;  /* no run of that many tokens occurs twice; 0: no such ban */
    float repetition_penalty; /* multiplies log-probabilities of known tokens; 0 or 1: no */
    float diversity_penalty;  /* what a token costs for each lane of earlier parts that took it */
    float divisor;            /* of scores that finish now: ft_beam_set_length_divisors() ... */
    float max_length_divisor; /* ... and of the best that a lane may hope for */
    int32_t ends;             /* of end[], ids that end a text */
    int32_t bans;             /* of ban[], ids that are never chosen but where forced */
    int32_t end[FT_MAX_BANNED_IDS];
    int32_t ban[FT_MAX_BANNED_IDS];
} ft_beam_params;

/* What a seat remembers.  Each part keeps its finished texts in the seats of its lanes. */
typedef struct ft_beam {
    float score;             /* of the lane; -inf: it is dead */
    float finished_score;    /* divided */
    int32_t finished_length; /* new tokens, the end included */
    int32_t finished_order;  /* the earlier of two that are equal has the smaller number */
    int32_t finished;        /* a part's first lane: seats from here on that hold a finished text */
    int32_t status;          /* a part's first lane: ft_beam_status */
} ft_beam;

typedef enum ft_beam_status { FT_BEAM_RUNS, FT_BEAM_DONE, FT_BEAM_FAILED } ft_beam_status;

enum { FT_BEAM_WORDS = sizeof(ft_beam) / sizeof(int32_t) };

/* What is remembered, by seat. */
typedef struct ft_beam_state {
    int32_t *last;              /* [seats]: what the next step embeds */
    int32_t *history;           /* [seats, context] */
    int32_t *cache_indirection; /* [seats, context]: lanes */
    int32_t *finished;          /* [seats, context]: new tokens of finished texts */
    ft_beam *beam;              /* [seats] */
    size_t context, vocabulary;
} ft_beam_state;

/* ---- A text ------------------------------------------------------------------------------- */

FT_HOST_DEVICE bool ft_beam_is_first_step(const ft_beam_params *beams)
{
    return beams->n_tokens == beams->prompt;
}

/* The last step: whatever is chosen ends the text. */
FT_HOST_DEVICE bool ft_beam_is_last_step(const ft_beam_params *beams)
{
    return beams->n_tokens + 1 >= beams->longest;
}

/* Lanes of a part. */
FT_HOST_DEVICE int32_t ft_beam_group_width(const ft_beam_params *beams)
{
    return beams->width / beams->parts;
}

/* Candidates that a lane hands in at most. */
FT_HOST_DEVICE int32_t ft_beam_max_candidates(const ft_beam_params *beams)
{
    return beams->width + beams->ends;
}

FT_HOST_DEVICE bool ft_beam_is_eos(const ft_beam_params *beams, int32_t token)
{
    for (int32_t i = 0; i < beams->ends; i++)
        if (beams->end[i] == token)
            return true;
    return false;
}

/* Set what depends on the length; on the host, so that no device needs a power of its own. */
static inline void ft_beam_set_length_divisors(ft_beam_params *beams, double length_penalty)
{
    bool far = beams->early == FT_EARLY_STOPPING_NEVER && length_penalty > 0.0;
    double now = beams->n_tokens + 1 - beams->prompt, most = beams->longest - beams->prompt;
    beams->divisor = (float) pow(now, length_penalty);
    beams->max_length_divisor = far ? (float) pow(most, length_penalty) : beams->divisor;
}

/* The score that a lane brings into this step. */
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

/* The lane that has the token at `position` of the text of `lane`. */
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

/* The logarithm of a sum of masses, relative to the largest logit. */
FT_HOST_DEVICE float ft_beam_log_total(uint64_t total)
{
    return (float) (ft_sampling_log((double) total) - FT_SAMPLING_PROB_BITS * 0.69314718055994531);
}

/* Of a row whose largest logit is finite. */
FT_HOST_DEVICE float ft_beam_logprob(float logit, float largest, float log_total)
{
    float relative = logit - largest;
    return relative - log_total;
}

/* The score of a lane that goes on with a token; `seen`: the token is known there. */
FT_HOST_DEVICE float ft_beam_extend_score(float score, float logprob, bool seen,
                                          const ft_beam_params *beams)
{
    if (seen && ft_beam_has_repetition_penalty(beams))
        logprob = logprob > 0.0f ? logprob / beams->repetition_penalty
                                 : logprob * beams->repetition_penalty;
    return score + logprob;
}

/* A candidate as a number: the larger comes first.  0: none, as for a score of -inf. */
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

/* lane * vocabulary + token. */
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
 * What lanes before `head` have just taken makes a token dearer; `taken` are their tokens.  The
 * list stays in order.
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

/* ---- A step of one part ------------------------------------------------------------------- */

/* What a step makes of a part: its lanes, and what has finished. */
typedef struct ft_beam_step {
    int32_t passed;               /* candidates */
    int32_t lives;                /* of them, lanes that go on */
    int32_t parent[FT_MAX_BEAMS]; /* of each: its lane before */
    int32_t token[FT_MAX_BEAMS];  /* ... and what it goes on with */
    float score[FT_MAX_BEAMS];
    int32_t ended;                         /* finished texts that were kept */
    int32_t finished_parent[FT_MAX_BEAMS]; /* of each: its lane before, its last token ... */
    int32_t finished_token[FT_MAX_BEAMS];
    int32_t finished_index[FT_MAX_BEAMS]; /* ... and its place among the finished, from the part's
                                             head */
} ft_beam_step;

/* The worst of finished texts: the lowest score, of equal ones the youngest. */
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

/* A finished text takes a free place or that of a worse one; false: there is none. */
FT_HOST_DEVICE bool ft_beam_add_finished(ft_beam *part, const ft_beam_params *beams, float score,
                                         int32_t rank, int32_t *finished_index)
{
    int32_t span = ft_beam_group_width(beams), made = beams->n_tokens + 1 - beams->prompt;
    score = score / beams->divisor;
    *finished_index = part->finished < span ? part->finished++ : ft_beam_worst_finished(part, span);
    ft_beam *place = &part[*finished_index];
    bool is_free = place->finished_length == 0;
    if (!is_free && !(score > place->finished_score))
        return false;
    place->finished_score = score;
    place->finished_length = made;
    place->finished_order = made * FT_MAX_BEAMS + rank;
    return true;
}

/* Begin the turn of a part, whose first seat `part` is. */
FT_HOST_DEVICE void ft_beam_step_begin(ft_beam_step *turn, ft_beam *part,
                                       const ft_beam_params *beams)
{
    turn->passed = turn->lives = turn->ended = 0;
    for (int32_t i = 0; ft_beam_is_first_step(beams) && i < ft_beam_group_width(beams); i++) {
        ft_beam none = { -INFINITY, 0.0f, 0, 0, 0, FT_BEAM_RUNS };
        part[i] = none;
    }
}

/* The next candidate in the order; false: no further one is of use. */
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

/* Whether the search of a part is over; its best lane is the first. */
FT_HOST_DEVICE bool ft_beam_is_over(const ft_beam_step *turn, const ft_beam *part,
                                    const ft_beam_params *beams)
{
    int32_t span = ft_beam_group_width(beams);
    if (turn->lives == 0)
        return true;
    if (part->finished < span)
        return false;
    float hope = turn->score[0] / beams->max_length_divisor;
    return beams->early == FT_EARLY_STOPPING_TRUE ||
           !(hope > part[ft_beam_worst_finished(part, span)].finished_score);
}

/* End the turn: the lanes' scores, and whether there is another step. */
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
