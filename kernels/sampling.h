/*
 * sampling.h - the arithmetic of choosing a token, the same on every device.
 *
 * A GPU adds in whatever order suits it, and floats would notice: a total that differs in its last
 * bit makes a draw near the border between two tokens fall to the other one.  So likelihoods are
 * whole numbers,
 *
 *     mass = round(2^30 * e^((logit - largest logit) / temperature)),
 *
 * and sums of them are exact in any order.  2^30 is as fine as is useful: what is less likely than
 * the likeliest token by a factor of 2^31 has mass 0 and is never drawn, and 2^18 tokens add up to
 * less than 2^49, which a double holds.  A choice is then integer arithmetic on masses that stand
 * in the order of sampling_params.h, likelier first, smaller id first:
 *
 *     top-k   keeps the first k;
 *     top-p   keeps the shortest beginning whose sum is at least p times the sum of what is kept;
 *     min-p   keeps those of at least min_p times the likelihood of the first;
 *     draw    takes the token at which the running sum exceeds (random 64 bits * sum) / 2^64.
 *
 * All of them keep a beginning of the order, so the shortest one counts.  The order itself compares
 * logits, not masses: two tokens that the exponential cannot tell apart are still two.
 *
 * Special logits: NaN or +inf anywhere, or no token that is not banned and above -inf, chooses
 * nothing: FT_NO_TOKEN.  Penalties may make +inf of a finite logit: a token of it is certain, and
 * of several the first id is chosen.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_SAMPLING_H
#define FT_KERNELS_SAMPLING_H

#include "kernels/activation.h"
#include "kernels/sampling_params.h"
#include "kernels/philox.h"

enum { FT_NO_TOKEN = -1 };

/* What is known of a token in a sequence: a word of `seen`. */
#define FT_TOKEN_IN_PROMPT 0x80000000u /* it is in the prompt; the other bits: times chosen */

/* ---- Logits ------------------------------------------------------------------------------- */

FT_HOST_DEVICE bool ft_sampling_has_repetition_penalty(const ft_sampling_params *params)
{
    return params->repetition_penalty != 0.0f && params->repetition_penalty != 1.0f;
}

/* Whether `seen` has an influence. */
FT_HOST_DEVICE bool ft_sampling_has_penalties(const ft_sampling_params *params)
{
    return ft_sampling_has_repetition_penalty(params) || params->presence_penalty != 0.0f ||
           params->frequency_penalty != 0.0f;
}

FT_HOST_DEVICE float ft_sampling_penalize(float logit, uint32_t seen,
                                          const ft_sampling_params *params)
{
    uint32_t chosen = seen & ~FT_TOKEN_IN_PROMPT;
    if (seen != 0 && ft_sampling_has_repetition_penalty(params))
        logit =
            logit > 0.0f ? logit / params->repetition_penalty : logit * params->repetition_penalty;
    if (chosen != 0) {
        float times = params->frequency_penalty * (float) chosen;
        logit = logit - times;
        logit = logit - params->presence_penalty;
    }
    return logit;
}

/*
 * Whether the tokens from `at` on are the last n - 1 of the history: then the one behind them would
 * make a run of n tokens occur again.  0 <= at <= known - n.
 */
FT_HOST_DEVICE bool ft_sampling_ngram_repeats(const int32_t *history, int32_t n_tokens, int32_t n,
                                              int32_t at)
{
    for (int32_t i = 0; i < n - 1; i++)
        if (history[at + i] != history[n_tokens - n + 1 + i])
            return false;
    return true;
}

/* ---- Likelihoods -------------------------------------------------------------------------- */

/*
 * 2^f, |f| <= 1/2: 1 + f Q(f), Q of degree 4, highest power first; minimax of the relative error:
 * 1.1e-7.  That the last coefficient is 1 makes the likeliest token's mass 2^30 exactly.
 */
#define FT_SAMPLING_EXP2_POLYNOMIAL                                                                \
    {                                                                                              \
        0x1.5bba08p-10f, 0x1.3cea88p-7f, 0x1.c6b754p-5f, 0x1.ebf9bcp-3f, 0x1.62e42ap-1f, 1.0f      \
    }
enum { FT_SAMPLING_PROB_BITS = 30 };
#define FT_SAMPLING_MIN_EXPONENT                                                                   \
    (-31.0f) /* of exponents: 2^-31 of the likeliest rounds to mass 0 */

/*
 * Exponents of 2 for a unit of a logit.  Held below where 0 * slope could be NaN: a temperature of
 * 1e-30 still tells the largest logit from all others.
 */
FT_HOST_DEVICE float ft_sampling_exponent_scale(float temperature)
{
    float scale = FT_LOG2_E / temperature;
    return scale < 0x1p100f ? scale : 0x1p100f;
}

/* log2 of a token's likelihood relative to the likeliest, at least the floor; that too for NaN. */
FT_HOST_DEVICE float ft_sampling_exponent(float logit, float max_logit, float scale)
{
    float y = (logit - max_logit) * scale;
    return y > FT_SAMPLING_MIN_EXPONENT ? y : FT_SAMPLING_MIN_EXPONENT;
}

/* round(2^30 * 2^y), FT_SAMPLING_MIN_EXPONENT <= y <= 0. */
FT_HOST_DEVICE uint32_t ft_sampling_fixed_prob(float y)
{
    const float c[] = FT_SAMPLING_EXP2_POLYNOMIAL;
    const float shift =
        12582912.0f + FT_SAMPLING_PROB_BITS; /* 1.5 * 2^23: units become the last bits */
    float rounded = y + shift;
    float f = y - (rounded - shift), p = c[0];
    for (unsigned i = 1; i < sizeof c / sizeof c[0]; i++)
        p = fmaf(p, f, c[i]);
    uint32_t bits, power;
    memcpy(&bits, &p, sizeof bits);
    memcpy(&power, &rounded, sizeof power);
    bits += power << 23; /* its upper bits leave; what stays is round(y) + 30, in the exponent */
    memcpy(&p, &bits, sizeof p);
#ifdef __CUDA_ARCH__
    return (uint32_t) __float2int_rn(p); /* one instruction */
#else
    return (uint32_t) (int32_t) rintf(p);
#endif
}

/* ---- Borders ------------------------------------------------------------------------------ */

/* The natural logarithm of a normal positive number, to 1e-12: the same bits everywhere. */
FT_HOST_DEVICE double ft_sampling_log(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    int power = (int) (bits >> 52) - 1023;
    bits = (bits & 0xfffffffffffffu) | 0x3ff0000000000000u;
    memcpy(&x, &bits, sizeof x);
    if (x > 1.4142135623730951) {
        x = x * 0.5;
        power++;
    }
    /* ln(x) = 2 atanh(s), s = (x - 1) / (x + 1), |s| < 0.172 */
    double s = (x - 1.0) / (x + 1.0), square = s * s, sum = 1.0 / 15.0;
    for (int i = 13; i > 0; i -= 2) {
        sum = sum * square;
        sum = sum + 1.0 / i;
    }
    double high = power * 0.69314718055994531;
    return high + 2.0 * s * sum;
}

/* What top-p's beginning has to reach: p * sum, at least 1.  0 < p < 1. */
FT_HOST_DEVICE uint64_t ft_sampling_top_p_threshold(float top_p, uint64_t sum)
{
    double threshold = ceil((double) top_p * (double) sum);
    return threshold < 1.0 ? 1 : (uint64_t) threshold;
}

FT_HOST_DEVICE bool ft_sampling_has_top_p(const ft_sampling_params *params)
{
    return params->top_p > 0.0f && params->top_p < 1.0f;
}

/* min-p's border among exponents; 0 where min_p is 1 or more: the likeliest always stay. */
FT_HOST_DEVICE float ft_sampling_min_p_threshold(float min_p)
{
    double y = ft_sampling_log((double) min_p) / 0.69314718055994531;
    return y < 0.0 ? (float) y : 0.0f;
}

/* The place in the order that random bits stand for: 0 .. sum - 1. */
FT_HOST_DEVICE uint64_t ft_sampling_draw(uint64_t random, uint64_t sum)
{
#ifdef __CUDA_ARCH__
    return __umul64hi(random, sum);
#else
    __extension__ typedef unsigned __int128 wide;
    return (uint64_t) ((wide) random * sum >> 64);
#endif
}

/*
 * log of the softmax of raw logits at one of them: `total` is the sum of all masses at temperature
 * 1.  It misses what has mass 0, so it may be too large by 2^-31 for each such token.
 */
FT_HOST_DEVICE float ft_sampling_logprob(float logit, float max_logit, uint64_t total)
{
    double log_total = ft_sampling_log((double) total);
    double relative = log_total - FT_SAMPLING_PROB_BITS * 0.69314718055994531;
    double difference = (double) logit - (double) max_logit;
    return (float) (difference - relative + 0.0); /* never -0, as of two zeros */
}

#endif
