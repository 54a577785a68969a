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
typedef struct row {
    const ft_rows_isa *isa;
    size_t vocabulary;
    float *logit;     /* [vocabulary]: after penalties and bans; later after top-k */
    uint32_t *weight; /* [vocabulary]: fixed-point probabilities; or 1 per token, to count tokens */
    uint64_t *bin;    /* [BINS]: sums of the weights */
    entry *list;      /* [vocabulary]: the tokens of one bin */
    float largest;    /* maximum logit */
    float slope, scale; /* exponent per unit of a logit, bins per unit of an exponent */
} row;

static size_t aligned(size_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

size_t ft_cpu_choose_scratch(size_t vocabulary)
{
    return aligned(vocabulary * sizeof(float)) + aligned(vocabulary * sizeof(uint32_t)) +
           aligned(BINS * sizeof(uint64_t)) + aligned(vocabulary * sizeof(entry));
}

static row row_in(const ft_rows_isa *isa, void *scratch, size_t vocabulary)
{
    char *p = scratch;
    row r = { .isa = isa, .vocabulary = vocabulary, .logit = scratch };
    p += aligned(vocabulary * sizeof *r.logit);
    r.weight = (uint32_t *) (void *) p;
    p += aligned(vocabulary * sizeof *r.weight);
    r.bin = (uint64_t *) (void *) p;
    p += aligned(BINS * sizeof *r.bin);
    r.list = (entry *) (void *) p;
    return r;
}

/* ---- Logits processors -------------------------------------------------------------------- */

static void ban(row *r, int32_t id)
{
    if (id >= 0 && (size_t) id < r->vocabulary)
        r->logit[id] = -INFINITY;
}

static void apply_bans(row *r, const ft_choice *choice, const int32_t *history)
{
    int32_t n = choice->ngram;
    for (int32_t i = 0; i < choice->bans; i++)
        ban(r, choice->ban[i]);
    for (int32_t at = 0; n > 0 && at <= choice->known - n; at++)
        if (ft_choice_recurs(history, choice->known, n, at))
            ban(r, history[at + n - 1]);
}

static void adjust(row *r, const float *logits, const ft_choice *choice, const int32_t *history,
                   const uint32_t *seen)
{
    memcpy(r->logit, logits, r->vocabulary * sizeof *logits);
    if (ft_choice_penalizes(choice))
        for (size_t i = 0; i < r->vocabulary; i++)
            if (seen[i] != 0)
                r->logit[i] = ft_choice_penalize(logits[i], seen[i], choice);
    apply_bans(r, choice, history);
}

/* ---- Order by probability ------------------------------------------------------------------- */

static float exponent(const row *r, size_t id)
{
    return ft_choice_exponent(r->logit[id], r->largest, r->slope);
}

/* More likely tokens are never in a later bin; every token with a weight is in some bin. */
static unsigned bin_of(const row *r, size_t id)
{
    float at = -exponent(r, id) * r->scale;
    return at < BINS - 1 ? (unsigned) at : BINS - 1;
}

static uint64_t fill_bins(row *r)
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
static int by_order(const void *a, const void *b)
{
    const entry *x = a, *y = b;
    if (x->logit != y->logit)
        return x->logit > y->logit ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

static size_t list_bin(row *r, unsigned bin)
{
    size_t n = 0;
    for (size_t id = 0; id < r->vocabulary; id++)
        if (r->weight[id] != 0 && bin_of(r, id) == bin)
            r->list[n++] = (entry){ r->logit[id], (int32_t) id };
    qsort(r->list, n, sizeof *r->list, by_order);
    return n;
}

/* The token at which the running sum of weights exceeds `target`; *sum is that sum. */
static entry find_token(row *r, uint64_t place, uint64_t *sum)
{
    uint64_t before = 0;
    unsigned bin = 0;
    while (before + r->bin[bin] <= place)
        before += r->bin[bin++];
    size_t n = list_bin(r, bin), i = 0;
    while (i < n - 1 && before + r->weight[r->list[i].id] <= place)
        before += r->weight[r->list[i++].id];
    *sum = before + r->weight[r->list[i].id];
    return r->list[i];
}

/* ---- Sampling ------------------------------------------------------------------------------- */

/* Makes the bins as narrow as the range of the exponents allows. */
static void scale_bins(row *r)
{
    float least = 0.0f;
    for (size_t id = 0; id < r->vocabulary; id++) {
        float y = exponent(r, id);
        if (y > FT_CHOICE_FLOOR && y < least)
            least = y;
    }
    r->scale = least < 0.0f ? (BINS - 1) / -least : 0.0f;
    r->scale = r->scale < 0x1p100f ? r->scale : 0x1p100f;
}

static void keep_top_k(row *r, int32_t k)
{
    for (size_t id = 0; id < r->vocabulary; id++)
        r->weight[id] = exponent(r, id) > FT_CHOICE_FLOOR;
    if (fill_bins(r) <= (uint64_t) k)
        return;
    uint64_t count;
    entry last = find_token(r, (uint64_t) k - 1, &count);
    for (size_t id = 0; id < r->vocabulary; id++) {
        entry token = { r->logit[id], (int32_t) id };
        if (by_order(&token, &last) > 0)
            r->logit[id] = -INFINITY;
    }
}

static uint64_t weigh(row *r, float slope)
{
    return r->isa->masses(r->weight, r->logit, r->largest, slope, r->vocabulary);
}

static uint64_t mass_above(const row *r, float least)
{
    uint64_t sum = 0;
    for (size_t id = 0; id < r->vocabulary; id++)
        if (exponent(r, id) >= least)
            sum += r->weight[id];
    return sum;
}

static int32_t draw(row *r, const ft_choice *choice)
{
    r->slope = ft_choice_slope(choice->temperature);
    scale_bins(r);
    if (choice->top_k > 0 && (size_t) choice->top_k < r->vocabulary)
        keep_top_k(r, choice->top_k);
    weigh(r, r->slope);
    uint64_t sum = fill_bins(r), kept = sum;
    if (ft_choice_has_top_p(choice))
        find_token(r, ft_choice_share(choice->top_p, sum) - 1, &kept);
    if (choice->min_p > 0.0f) {
        uint64_t likely = mass_above(r, ft_choice_least(choice->min_p));
        kept = likely < kept ? likely : kept;
    }
    uint64_t random = ft_philox_draw(choice->seed, choice->step);
    return find_token(r, ft_choice_place(random, kept), &kept).id;
}

static int32_t first_of(const float *logits, float value)
{
    int32_t id = 0;
    while (logits[id] != value)
        id++;
    return id;
}

void ft_cpu_choose_row(const ft_rows_isa *isa, const float *logits, size_t vocabulary,
                       const ft_choice *choice, const int32_t *history, const uint32_t *seen,
                       void *scratch, int32_t *token, float *logprob)
{
    row r = row_in(isa, scratch, vocabulary);
    float largest;
    *token = FT_NO_TOKEN;
    if (logprob != NULL)
        *logprob = NAN;
    if (!isa->largest(logits, vocabulary, &largest) || largest == INFINITY)
        return;
    adjust(&r, logits, choice, history, seen);
    isa->largest(r.logit, vocabulary, &r.largest);
    if (r.largest == -INFINITY)
        return;
    if (choice->temperature > 0.0f && r.largest < INFINITY)
        *token = draw(&r, choice);
    else
        *token = first_of(r.logit, r.largest);
    if (logprob == NULL)
        return;
    memcpy(r.logit, logits, vocabulary * sizeof *logits);
    r.largest = largest;
    *logprob = ft_choice_logprob(logits[*token], largest, weigh(&r, ft_choice_slope(1.0f)));
}

/* ---- Token history -------------------------------------------------------------------------- */

void ft_cpu_choose_keep(const ft_cpu_memory *memory, const ft_choice *choice, int32_t token)
{
    if (choice->seat < 0)
        return;
    size_t seat = (size_t) choice->seat;
    memory->last[seat] = token == FT_NO_TOKEN ? 0 : token;
    if (token == FT_NO_TOKEN)
        return;
    if ((size_t) choice->known < memory->context)
        memory->history[seat * memory->context + (size_t) choice->known] = token;
    memory->seen[seat * memory->vocabulary + (size_t) token]++;
}

void ft_cpu_choose_note(const ft_cpu_memory *memory, const ft_cpu_prompts *note)
{
    size_t words = memory->vocabulary;
    for (size_t i = 0; i < note->tokens; i++) {
        int32_t owner = note->owner[i], id = note->ids[i];
        if (owner < 0)
            continue;
        size_t seat = (size_t) note->seat[owner];
        size_t position = (size_t) (note->past[owner] + (int32_t) i - note->start[owner]);
        uint32_t *seen = memory->seen + seat * words;
        if (position == 0)
            memset(seen, 0, words * sizeof *seen);
        if (id < 0)
            continue;
        memory->history[seat * memory->context + position] = id;
        seen[id] |= FT_SEEN_PROMPT;
    }
}
