/*
 * sampling.h - the arithmetic of token sampling, equal on every device.
 *
 * The order of a float sum differs between devices, and a total that differs in its last bit could
 * move a draw near the boundary of two tokens to the other token.  Probabilities are therefore
 * unnormalized fixed-point integers,
 *
 *     prob = round(2^30 * e^((logit - max logit) / temperature)),
 *
 * whose sums are exact in any order.  More than 30 bits are not useful: a token that is less
 * probable than the most probable one by a factor of 2^31 has prob 0 and is never sampled, and 2^18
 * tokens add up to less than 2^49, which a double represents.  Sampling is then integer arithmetic
 * on tokens sorted as in sampling_params.h, higher logit first, then smaller id first:
 *
 *     top-k   keeps the first k;
 *     top-p   keeps the shortest prefix whose sum is at least p times the sum of the kept tokens;
 *     min-p   keeps tokens with at least min_p times the probability of the first;
 *     draw    takes the token at which the prefix sum exceeds (random 64 bits * sum) / 2^64.
 *
 * Each of them keeps a prefix of the order, so that the shortest one applies.  The order compares
 * logits, not probs, because different logits may have the same prob.
 *
 * Special logits: if any logit is NaN or +inf, or if no token is both not banned and above -inf,
 * the result is FT_NO_TOKEN.  If penalties turn a finite logit into +inf, this token is certain; of
 * several, the smallest id is sampled.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_SAMPLING_H
#define FT_KERNELS_SAMPLING_H

#include "kernels/activation.h"
#include "kernels/sampling_params.h"
#include "kernels/philox.h"

enum { FT_NO_TOKEN = -1 };

/* FT_STATE_TOKEN_COUNTS: a word of `seen` for each token. */
#define FT_TOKEN_IN_PROMPT 0x80000000u /* in the prompt; other bits: times sampled */

/* ---- Logits ------------------------------------------------------------------------------- */

FT_HOST_DEVICE bool ft_sampling_has_repetition_penalty(const ft_sampling_params *params)
{
    return params->repetition_penalty != 0.0f && params->repetition_penalty != 1.0f;
}

/* Whether any penalty depends on `seen`. */
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
 * Whether the n - 1 tokens from `at` on equal the last n - 1 tokens of the history.  Then the token
 * after them would repeat an n-gram.  0 <= at <= n_tokens - n.
 */
FT_HOST_DEVICE bool ft_sampling_ngram_repeats(const int32_t *history, int32_t n_tokens, int32_t n,
                                              int32_t at)
{
    for (int32_t i = 0; i < n - 1; i++)
        if (history[at + i] != history[n_tokens - n + 1 + i])
            return false;
    return true;
}

/* ---- Probabilities ------------------------------------------------------------------------ */

/*
 * 2^f, |f| <= 1/2: 1 + f Q(f), Q of degree 4, highest power first; minimax relative error 1.1e-7.
 * The last coefficient is 1, so that the prob of the most probable token is exactly 2^30.
 */
#define FT_SAMPLING_EXP2_POLYNOMIAL                                                                \
    {                                                                                              \
        0x1.5bba08p-10f, 0x1.3cea88p-7f, 0x1.c6b754p-5f, 0x1.ebf9bcp-3f, 0x1.62e42ap-1f, 1.0f      \
    }
enum { FT_SAMPLING_PROB_BITS = 30 };
#define FT_SAMPLING_MIN_EXPONENT (-31.0f) /* 2^-31 of the most probable token rounds to prob 0 */

/*
 * Exponent of 2 per unit of a logit.  The limit avoids 0 * inf = NaN: with a temperature of 1e-30
 * the largest logit still differs from all others.
 */
FT_HOST_DEVICE float ft_sampling_exponent_scale(float temperature)
{
    float scale = FT_LOG2_E / temperature;
    return scale < 0x1p100f ? scale : 0x1p100f;
}

/* log2 of a probability relative to the maximum, clamped from below; the minimum for NaN. */
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
        12582912.0f + FT_SAMPLING_PROB_BITS; /* 1.5 * 2^23: the integer is in the low bits */
    float rounded = y + shift;
    float f = y - (rounded - shift), p = c[0];
    for (unsigned i = 1; i < sizeof c / sizeof c[0]; i++)
        p = fmaf(p, f, c[i]);
    uint32_t bits, power;
    memcpy(&bits, &p, sizeof bits);
    memcpy(&power, &rounded, sizeof power);
    bits += power << 23; /* adds round(y) + 30 to the exponent; upper bits overflow */
    memcpy(&p, &bits, sizeof p);
#ifdef __CUDA_ARCH__
    return (uint32_t) __float2int_rn(p); /* one instruction */
#else
    return (uint32_t) (int32_t) rintf(p);
#endif
}

/* ---- Thresholds --------------------------------------------------------------------------- */

/* The natural logarithm of a normal positive number, accurate to 1e-12; equal bits on all devices.
 */
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

/* The minimum sum of the top-p prefix: p * sum, at least 1.  0 < p < 1. */
FT_HOST_DEVICE uint64_t ft_sampling_top_p_threshold(float top_p, uint64_t sum)
{
    double threshold = ceil((double) top_p * (double) sum);
    return threshold < 1.0 ? 1 : (uint64_t) threshold;
}

FT_HOST_DEVICE bool ft_sampling_has_top_p(const ft_sampling_params *params)
{
    return params->top_p > 0.0f && params->top_p < 1.0f;
}

/* The minimum exponent of min-p; 0 if min_p is 1 or more: the most probable tokens always stay. */
FT_HOST_DEVICE float ft_sampling_min_p_threshold(float min_p)
{
    double y = ft_sampling_log((double) min_p) / 0.69314718055994531;
    return y < 0.0 ? (float) y : 0.0f;
}

/* Map 64 random bits to a position in the cumulative sum: 0 .. sum - 1. */
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
 * The log-softmax of one of the raw logits; `total` is the sum of all probs at temperature 1.  The
 * total omits tokens with prob 0, so that the result may be too large by 2^-31 for each of them.
 */
FT_HOST_DEVICE float ft_sampling_logprob(float logit, float max_logit, uint64_t total)
{
    double log_total = ft_sampling_log((double) total);
    double relative = log_total - FT_SAMPLING_PROB_BITS * 0.69314718055994531;
    double difference = (double) logit - (double) max_logit;
    return (float) (difference - relative + 0.0); /* avoids -0 */
}

#endif
