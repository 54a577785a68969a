/*
 * sample.c - see sample.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "tests/kernels/sample.h"
#include "tests/tap/tap.h"

#include <float.h>
#include <stdlib.h>

/* ---- Logits --------------------------------------------------------------------------------- */

const char *shape_name(shape s)
{
    static const char *const names[] = { "normal",     "peaked",     "flat",
                                         "like words", "few values", "equal",
                                         "holes",      "huge ones",  "tiny ones" };
    return names[s];
}

static float normal(rng *r)
{
    return (float) rng_normal(r);
}

static double uniform(rng *r)
{
    return rng_uniform(r, 0.0, 1.0);
}

static float draw_logit(rng *r, shape s, size_t n)
{
    static const float few[] = { -2.0f, -0.0f, 0.0f, 0.5f, 0.75f };
    switch (s) {
    case NORMAL:
        return 2.0f * normal(r) - 3.0f;
    case PEAKED:
        return rng_below(r, 1000) == 0 ? 20.0f + 3.0f * normal(r) : 3.0f * normal(r);
    case FLAT:
        return 7.0f + 0.01f * normal(r);
    case WORDS:
        return (float) (-1.1 * log(1.0 + uniform(r) * (double) n)) + 0.2f * normal(r);
    case FEW:
        return few[rng_below(r, 5)];
    case EQUAL:
        return -1.25f;
    case HOLES:
        return rng_below(r, 3) == 0 ? -INFINITY : 2.0f * normal(r);
    case HUGE_ONES:
        return (float) (2.0 * uniform(r) - 1.0) * FLT_MAX;
    case TINY:
        return 30.0f * normal(r) * 0x1p-149f;
    case SHAPES:
        break;
    }
    return 0.0f;
}

void fill_logits(rng *r, float *logits, size_t n, shape s)
{
    for (size_t i = 0; i < n; i++)
        logits[i] = draw_logit(r, s, n);
}

/* ---- Sampling options ----------------------------------------------------------------------- */

ft_sampling_params draw_choice(rng *r, unsigned rules, size_t vocabulary, int32_t known)
{
    static const float temperatures[] = { 1.0f, 0.7f, 1.5f, 0.05f, 20.0f };
    ft_sampling_params c = { .seed = rng_bits(r),
                             .step = (uint32_t) rng_bits(r),
                             .n_tokens = known };
    c.temperature = temperatures[rng_below(r, 5)];
    if (rules & TOP_K)
        c.top_k = 1 + (int32_t) rng_below(r, rng_below(r, 2) ? 50 : (uint32_t) vocabulary + 9);
    if (rules & TOP_P)
        c.top_p = rng_below(r, 8) == 0 ? 1e-30f : (float) uniform(r);
    if (rules & MIN_P)
        c.min_p = (float) (rng_below(r, 2) ? uniform(r) * 1.1 : pow(10.0, -9.0 * uniform(r)));
    if (rules & PENALTIES) {
        c.repetition_penalty = rng_below(r, 4) == 0 ? 0.0f : 0.5f + 2.0f * (float) uniform(r);
        c.presence_penalty = rng_below(r, 4) == 0 ? 0.0f : normal(r);
        c.frequency_penalty = rng_below(r, 4) == 0 ? 0.0f : 0.5f * normal(r);
    }
    if (rules & NGRAM)
        c.no_repeat_ngram = 1 + (int32_t) rng_below(r, 4);
    if (rules & BANS)
        c.n_banned = 1 + (int32_t) rng_below(r, FT_MAX_BANNED_IDS);
    for (int32_t i = 0; i < c.n_banned; i++) /* some are not valid ids */
        c.banned[i] = (int32_t) rng_below(r, (uint32_t) vocabulary + 8) - 4;
    return c;
}

void fill_history(rng *r, int32_t *history, int32_t known, size_t vocabulary, uint32_t *seen)
{
    memset(seen, 0, vocabulary * sizeof *seen);
    for (int32_t i = 0; i < known; i++) {
        bool again = i > 3 && rng_below(r, 4) != 0;
        history[i] = again ? history[i - 1 - (int32_t) rng_below(r, 3)]
                           : (int32_t) rng_below(r, (uint32_t) vocabulary);
        if (i < known / 2)
            seen[history[i]] |= FT_TOKEN_IN_PROMPT;
        else
            seen[history[i]]++;
    }
}

/* ---- The rules, plainly -----------------------------------------------------------------------
 */

static void ban_plainly(float *out, size_t n, int32_t id)
{
    if (id >= 0 && (size_t) id < n)
        out[id] = -INFINITY;
}

void adjust_plainly(float *out, const float *logits, size_t n, const ft_sampling_params *sampling,
                    const int32_t *history, const uint32_t *seen)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t chosen = seen[i] & 0x7fffffff;
        out[i] = logits[i];
        if (sampling->repetition_penalty != 0.0f && seen[i] != 0)
            out[i] = out[i] < 0.0f ? out[i] * sampling->repetition_penalty
                                   : out[i] / sampling->repetition_penalty;
        if (chosen > 0)
            out[i] =
                out[i] - sampling->frequency_penalty * (float) chosen - sampling->presence_penalty;
    }
    for (int32_t i = 0; i < sampling->n_banned; i++)
        ban_plainly(out, n, sampling->banned[i]);
    int32_t length = sampling->no_repeat_ngram, known = sampling->n_tokens;
    for (int32_t end = length; length > 0 && end <= known; end++) {
        /* Whether the n-gram before `end`, without its last token, is the suffix of the text. */
        bool same = true;
        for (int32_t i = 1; i < length; i++)
            same &= history[end - 1 - i] == history[known - i];
        if (same)
            ban_plainly(out, n, history[end - 1]);
    }
}

typedef struct candidate {
    float logit, exponent;
    uint32_t mass;
    int32_t id;
} candidate;

static int likelier_first(const void *a, const void *b)
{
    const candidate *x = a, *y = b;
    if (x->logit != y->logit)
        return x->logit > y->logit ? -1 : 1;
    return x->id < y->id ? -1 : 1;
}

static uint64_t sum_of(const candidate *order, size_t n)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += order[i].mass;
    return sum;
}

/* The number of sorted tokens that top-k, top-p and min-p keep. */
static size_t count_kept(const candidate *order, size_t n, const ft_sampling_params *sampling)
{
    size_t kept = n;
    if (sampling->top_k > 0 && (size_t) sampling->top_k < n)
        kept = (size_t) sampling->top_k;
    if (sampling->top_p > 0.0f && sampling->top_p < 1.0f) {
        uint64_t share = ft_sampling_top_p_threshold(sampling->top_p, sum_of(order, kept));
        uint64_t sum = order[0].mass;
        for (kept = 1; sum < share; kept++)
            sum += order[kept].mass;
    }
    while (sampling->min_p > 0.0f &&
           order[kept - 1].exponent < ft_sampling_min_p_threshold(sampling->min_p))
        kept--;
    return kept;
}

static int32_t draw_plainly(candidate *order, size_t n, const ft_sampling_params *sampling)
{
    float slope = ft_sampling_exponent_scale(sampling->temperature);
    for (size_t i = 0; i < n; i++) {
        order[i].exponent = ft_sampling_exponent(order[i].logit, order[0].logit, slope);
        order[i].mass = ft_sampling_fixed_prob(order[i].exponent);
    }
    uint64_t sum = sum_of(order, count_kept(order, n, sampling)), before = 0;
    uint64_t place = ft_sampling_draw(ft_philox_draw(sampling->seed, sampling->step), sum);
    while (before + order->mass <= place)
        before += order++->mass;
    return order->id;
}

int32_t sample_naive(const float *logits, size_t n, const ft_sampling_params *sampling,
                     const int32_t *history, const uint32_t *seen)
{
    float *adjusted = malloc(n * sizeof *adjusted);
    candidate *order = calloc(n, sizeof *order);
    int32_t token = FT_NO_TOKEN;
    if (adjusted == NULL || order == NULL)
        bail_out("out of memory");
    adjust_plainly(adjusted, logits, n, sampling, history, seen);
    for (size_t i = 0; i < n; i++)
        order[i] = (candidate){ .logit = adjusted[i], .id = (int32_t) i };
    qsort(order, n, sizeof *order, likelier_first);
    if (order->logit > -INFINITY)
        token = sampling->temperature > 0.0f && order->logit < INFINITY
                    ? draw_plainly(order, n, sampling)
                    : order->id;
    free(adjusted);
    free(order);
    return token;
}
