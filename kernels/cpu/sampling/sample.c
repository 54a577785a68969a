/*
 * sample.c - samples the next token of a sequence, with the arithmetic of kernels/sampling.h.
 *
 * The vocabulary is never sorted. Tokens are put into bins by log-probability; the sums of the bins
 * locate the bin of the top-k or top-p cutoff, or of the sampled token, and only the tokens of that
 * bin are sorted.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/sampling.h"
#include "kernels/cpu/sampling/sample.h"

#include <stdlib.h>

enum { BINS = 4096 };

typedef struct entry {
    float logit;
    int32_t id;
} entry;

/* One row of logits, in the caller's scratch. */
typedef struct sample_row {
    const ft_row_kernels *kernels;
    size_t vocabulary;
    float *logit;     /* [vocabulary]: after penalties and bans; later after top-k */
    uint32_t *weight; /* [vocabulary]: fixed-point probabilities; or 1 per token, to count tokens */
    uint64_t *bin;    /* [BINS]: sums of the weights */
    entry *list;      /* [vocabulary]: the tokens of one bin */
    float max_logit;  /* maximum logit */
    float slope, scale; /* exponent per unit of a logit, bins per unit of an exponent */
} sample_row;

static size_t align64(size_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

size_t ft_cpu_sample_row_scratch(size_t vocabulary)
{
    return align64(vocabulary * sizeof(float)) + align64(vocabulary * sizeof(uint32_t)) +
           align64(BINS * sizeof(uint64_t)) + align64(vocabulary * sizeof(entry));
}

static sample_row sample_row_in(const ft_row_kernels *kernels, void *scratch, size_t vocabulary)
{
    char *p = scratch;
    sample_row r = { .kernels = kernels, .vocabulary = vocabulary, .logit = scratch };
    p += align64(vocabulary * sizeof *r.logit);
    r.weight = (uint32_t *) (void *) p;
    p += align64(vocabulary * sizeof *r.weight);
    r.bin = (uint64_t *) (void *) p;
    p += align64(BINS * sizeof *r.bin);
    r.list = (entry *) (void *) p;
    return r;
}

/* ---- Logits processors -------------------------------------------------------------------- */

static void ban(sample_row *r, int32_t id)
{
    if (id >= 0 && (size_t) id < r->vocabulary)
        r->logit[id] = -INFINITY;
}

static void apply_bans(sample_row *r, const ft_sampling_params *params, const int32_t *history)
{
    int32_t n = params->no_repeat_ngram;
    for (int32_t i = 0; i < params->n_banned; i++)
        ban(r, params->banned[i]);
    for (int32_t at = 0; n > 0 && at <= params->n_tokens - n; at++)
        if (ft_sampling_ngram_repeats(history, params->n_tokens, n, at))
            ban(r, history[at + n - 1]);
}

static void process_logits(sample_row *r, const float *logits, const ft_sampling_params *params,
                           const int32_t *history, const uint32_t *seen)
{
    memcpy(r->logit, logits, r->vocabulary * sizeof *logits);
    if (ft_sampling_has_penalties(params))
        for (size_t i = 0; i < r->vocabulary; i++)
            if (seen[i] != 0)
                r->logit[i] = ft_sampling_penalize(logits[i], seen[i], params);
    apply_bans(r, params, history);
}

/* ---- Order by probability ------------------------------------------------------------------- */

static float exponent(const sample_row *r, size_t id)
{
    return ft_sampling_exponent(r->logit[id], r->max_logit, r->slope);
}

/* More likely tokens are never in a later bin; every token with a weight is in some bin. */
static unsigned bin_of(const sample_row *r, size_t id)
{
    float at = -exponent(r, id) * r->scale;
    return at < BINS - 1 ? (unsigned) at : BINS - 1;
}

static uint64_t fill_bins(sample_row *r)
{
    uint64_t sum = 0;
    memset(r->bin, 0, BINS * sizeof *r->bin);
    for (size_t id = 0; id < r->vocabulary; id++)
        if (r->weight[id] != 0) {
            r->bin[bin_of(r, id)] += r->weight[id];
            sum += r->weight[id];
        }
    return sum;
}

/* Descending probability, then ascending id. */
static int compare_entries(const void *a, const void *b)
{
    const entry *x = a, *y = b;
    if (x->logit != y->logit)
        return x->logit > y->logit ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

static size_t list_bin(sample_row *r, unsigned bin)
{
    size_t n = 0;
    for (size_t id = 0; id < r->vocabulary; id++)
        if (r->weight[id] != 0 && bin_of(r, id) == bin)
            r->list[n++] = (entry){ r->logit[id], (int32_t) id };
    qsort(r->list, n, sizeof *r->list, compare_entries);
    return n;
}

/* The token at which the running sum of weights exceeds `target`; *sum is that sum. */
static entry find_token(sample_row *r, uint64_t target, uint64_t *sum)
{
    uint64_t cum_weight = 0;
    unsigned bin = 0;
    while (cum_weight + r->bin[bin] <= target)
        cum_weight += r->bin[bin++];
    size_t n = list_bin(r, bin), i = 0;
    while (i < n - 1 && cum_weight + r->weight[r->list[i].id] <= target)
        cum_weight += r->weight[r->list[i++].id];
    *sum = cum_weight + r->weight[r->list[i].id];
    return r->list[i];
}

/* ---- Sampling ------------------------------------------------------------------------------- */

/* Makes the bins as narrow as the range of the exponents allows. */
static void scale_bins(sample_row *r)
{
    float min_exponent = 0.0f;
    for (size_t id = 0; id < r->vocabulary; id++) {
        float y = exponent(r, id);
        if (y > FT_SAMPLING_MIN_EXPONENT && y < min_exponent)
            min_exponent = y;
    }
    r->scale = min_exponent < 0.0f ? (BINS - 1) / -min_exponent : 0.0f;
    r->scale = r->scale < 0x1p100f ? r->scale : 0x1p100f;
}

static void keep_top_k(sample_row *r, int32_t k)
{
    for (size_t id = 0; id < r->vocabulary; id++)
        r->weight[id] = exponent(r, id) > FT_SAMPLING_MIN_EXPONENT;
    if (fill_bins(r) <= (uint64_t) k)
        return;
    uint64_t count;
    entry last = find_token(r, (uint64_t) k - 1, &count);
    for (size_t id = 0; id < r->vocabulary; id++) {
        entry token = { r->logit[id], (int32_t) id };
        if (compare_entries(&token, &last) > 0)
            r->logit[id] = -INFINITY;
    }
}

static uint64_t compute_probs(sample_row *r, float slope)
{
    return r->kernels->fixed_probs(r->weight, r->logit, r->max_logit, slope, r->vocabulary);
}

static uint64_t prob_above(const sample_row *r, float min_exponent)
{
    uint64_t sum = 0;
    for (size_t id = 0; id < r->vocabulary; id++)
        if (exponent(r, id) >= min_exponent)
            sum += r->weight[id];
    return sum;
}

static int32_t sample_token(sample_row *r, const ft_sampling_params *params)
{
    r->slope = ft_sampling_exponent_scale(params->temperature);
    scale_bins(r);
    if (params->top_k > 0 && (size_t) params->top_k < r->vocabulary)
        keep_top_k(r, params->top_k);
    compute_probs(r, r->slope);
    uint64_t sum = fill_bins(r), kept_sum = sum;
    if (ft_sampling_has_top_p(params))
        find_token(r, ft_sampling_top_p_threshold(params->top_p, sum) - 1, &kept_sum);
    if (params->min_p > 0.0f) {
        uint64_t min_p_sum = prob_above(r, ft_sampling_min_p_threshold(params->min_p));
        kept_sum = min_p_sum < kept_sum ? min_p_sum : kept_sum;
    }
    uint64_t random = ft_philox_draw(params->seed, params->step);
    return find_token(r, ft_sampling_draw(random, kept_sum), &kept_sum).id;
}

static int32_t argmax_first(const float *logits, float value)
{
    int32_t id = 0;
    while (logits[id] != value)
        id++;
    return id;
}

void ft_cpu_sample_row(const ft_row_kernels *kernels, const float *logits, size_t vocabulary,
                       const ft_sampling_params *params, const int32_t *history,
                       const uint32_t *seen, void *scratch, int32_t *token, float *logprob)
{
    sample_row r = sample_row_in(kernels, scratch, vocabulary);
    float max_logit;
    *token = FT_NO_TOKEN;
    if (logprob != NULL)
        *logprob = NAN;
    if (!kernels->max_logit(logits, vocabulary, &max_logit) || max_logit == INFINITY)
        return;
    process_logits(&r, logits, params, history, seen);
    kernels->max_logit(r.logit, vocabulary, &r.max_logit);
    if (r.max_logit == -INFINITY)
        return;
    if (params->temperature > 0.0f && r.max_logit < INFINITY)
        *token = sample_token(&r, params);
    else
        *token = argmax_first(r.logit, r.max_logit);
    if (logprob == NULL)
        return;
    memcpy(r.logit, logits, vocabulary * sizeof *logits);
    r.max_logit = max_logit;
    *logprob = ft_sampling_logprob(logits[*token], max_logit,
                                   compute_probs(&r, ft_sampling_exponent_scale(1.0f)));
}

/* ---- Token history -------------------------------------------------------------------------- */

void ft_cpu_sample_append(const ft_cpu_token_history *history_state,
                          const ft_sampling_params *params, int32_t token)
{
    if (params->slot < 0)
        return;
    size_t slot = (size_t) params->slot;
    history_state->last[slot] = token == FT_NO_TOKEN ? 0 : token;
    if (token == FT_NO_TOKEN)
        return;
    if ((size_t) params->n_tokens < history_state->context)
        history_state->history[slot * history_state->context + (size_t) params->n_tokens] = token;
    history_state->seen[slot * history_state->vocabulary + (size_t) token]++;
}

void ft_cpu_record_prompt(const ft_cpu_token_history *history_state,
                          const ft_cpu_prompt_tokens *prompt)
{
    size_t vocab_size = history_state->vocabulary;
    for (size_t i = 0; i < prompt->tokens; i++) {
        int32_t seq_id = prompt->seq_id[i], id = prompt->ids[i];
        if (seq_id < 0)
            continue;
        size_t slot = (size_t) prompt->slot[seq_id];
        size_t position = (size_t) (prompt->n_past[seq_id] + (int32_t) i - prompt->start[seq_id]);
        uint32_t *seen = history_state->seen + slot * vocab_size;
        if (position == 0)
            memset(seen, 0, vocab_size * sizeof *seen);
        if (id < 0)
            continue;
        history_state->history[slot * history_state->context + position] = id;
        seen[id] |= FT_TOKEN_IN_PROMPT;
    }
}
