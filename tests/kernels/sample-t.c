/*
 * sample-t.c - sampling on the CPU: the sampling options, their probabilities, and special logits.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cpu/sampling/sample.h"
#include "tests/kernels/sample.h"
#include "tests/tap/tap.h"

#include <stdlib.h>

enum { MAX_SIZE = 33001, KNOWN = 40 };

static rng chance = { 20 };
static float logits[MAX_SIZE];
static uint32_t seen[MAX_SIZE];
static int32_t history[KNOWN];
static void *scratch;

static int32_t choose(const float *x, size_t n, const ft_sampling_params *sampling, float *logprob)
{
    int32_t token = -77;
    memset(scratch, (int) rng_below(&chance, 256), ft_cpu_sample_row_scratch(n));
    ft_cpu_sample_row(ft_row_kernels_for(FT_ISA_GENERIC), x, n, sampling, history, seen, scratch,
                      &token, logprob);
    return token;
}

/* ---- Arithmetic ------------------------------------------------------------------------------ */

/* The known-answer vectors that Random123 publishes for philox4x32, 10 rounds. */
static void test_philox(void)
{
    static const struct {
        uint64_t key;
        ft_philox counter, words;
    } n_tokens[] = {
        { 0, { { 0, 0, 0, 0 } }, { { 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8 } } },
        { ~0ull,
          { { ~0u, ~0u, ~0u, ~0u } },
          { { 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd } } },
        { 0x299f31d0a4093822,
          { { 0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344 } },
          { { 0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1 } } },
    };
    for (size_t i = 0; i < sizeof n_tokens / sizeof n_tokens[0]; i++) {
        ft_philox words = ft_philox_words(n_tokens[i].key, n_tokens[i].counter);
        ok(memcmp(&words, &n_tokens[i].words, sizeof words) == 0,
           "Philox4x32-10 gives the published words of vector %zu", i);
    }
    ok(ft_philox_draw(0, 0) == 0x6627e8d5e169c58d,
       "ft_philox_draw() returns the first two words of Philox4x32-10");
}

static void test_masses(void)
{
    double worst = 0.0, worst_log = 0.0;
    for (int i = 0; i < 1000000; i++) {
        float y = (float) rng_uniform(&chance, (double) FT_SAMPLING_MIN_EXPONENT, 0.0);
        double expected = exp2((double) y + (double) FT_SAMPLING_PROB_BITS),
               mass = (double) ft_sampling_fixed_prob(y);
        double error = fmax(fabs(mass - expected) - 0.5, 0.0) / expected;
        worst = error > worst ? error : worst;
    }
    ok(ft_sampling_fixed_prob(0.0f) == 1u << FT_SAMPLING_PROB_BITS,
       "the most likely token has the weight 2^30");
    ok(ft_sampling_fixed_prob(FT_SAMPLING_MIN_EXPONENT) == 0,
       "a token at the floor has the weight 0");
    /* The polynomial's error is 1.1e-7; five roundings of numbers of at most 1.42 add 2e-7. */
    ok(worst < 3e-7, "weights are 2^(30 + y), within 3e-7 relative and 0.5 absolute (%.2g)", worst);
    for (int i = 0; i < 100000; i++) {
        double x = exp(rng_uniform(&chance, -90.0, 90.0));
        worst_log = fmax(worst_log, fabs(ft_sampling_log(x) - log(x)));
    }
    /* The series ends at s^15 / 15; the remainder is below 2 * 0.172^17 / 17 = 1.2e-14. */
    ok(worst_log < 1e-13, "logarithms are within 1e-13 of libm's (%.2g)", worst_log);
}

/* ---- Sampling options ------------------------------------------------------------------------ */

static void test_against_plain(shape s)
{
    static const size_t sizes[] = { 1, 2, 3, 31, 257, 1000, 1021 };
    int wrong = 0;
    for (unsigned rules = 0; rules < RULES; rules++)
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
            for (int round = 0; round < 3; round++) {
                size_t n = sizes[i];
                int32_t n_tokens = (int32_t) rng_below(&chance, KNOWN + 1);
                fill_logits(&chance, logits, n, s);
                fill_history(&chance, history, n_tokens, n, seen);
                ft_sampling_params sampling = draw_choice(&chance, rules, n, n_tokens);
                if (round == 0)
                    sampling.temperature = 0.0f;
                int32_t token = choose(logits, n, &sampling, NULL);
                int32_t expected = sample_naive(logits, n, &sampling, history, seen);
                if (token != expected && wrong++ == 0)
                    diag("rules %u, %zu tokens: %d, expected %d", rules, n, token, expected);
            }
    is_int(wrong, 0, "%s: every combination of sampling parameters samples like a full sort",
           shape_name(s));
}

static void test_large(void)
{
    int wrong = 0;
    for (int i = 0; i < 200; i++) {
        fill_logits(&chance, logits, MAX_SIZE, (shape) (i % SHAPES));
        fill_history(&chance, history, KNOWN, MAX_SIZE, seen);
        ft_sampling_params sampling =
            draw_choice(&chance, rng_below(&chance, RULES), MAX_SIZE, KNOWN);
        wrong += choose(logits, MAX_SIZE, &sampling, NULL) !=
                 sample_naive(logits, MAX_SIZE, &sampling, history, seen);
    }
    is_int(wrong, 0, "a full sort and the sampler agree in a vocabulary of %d", MAX_SIZE);
}

/*
 * Pearson's statistic for `draws` tokens against exact probabilities; tokens that are expected less
 * than 8 times are one class.  Returns how many standard deviations it is above its mean: with df
 * classes the statistic has mean df and variance 2 df.  -1: a token of probability 0 was drawn.
 */
static double chi_square(const int *count, const double *probability, size_t n, int draws)
{
    double statistic = 0.0, rare = 0.0;
    int degrees = -1, rare_count = 0;
    for (size_t i = 0; i < n; i++) {
        double expected = probability[i] * draws;
        if (probability[i] == 0.0 && count[i] > 0)
            return -1.0;
        if (expected < 8.0) {
            rare += expected;
            rare_count += count[i];
            continue;
        }
        statistic += (count[i] - expected) * (count[i] - expected) / expected;
        degrees++;
    }
    if (rare >= 8.0) {
        statistic += (rare_count - rare) * (rare_count - rare) / rare;
        degrees++;
    }
    return degrees > 0 ? fabs(statistic - degrees) / sqrt(2.0 * degrees) : 0.0;
}

static const double *compared;

static int by_probability(const void *a, const void *b)
{
    int x = *(const int *) a, y = *(const int *) b;
    return compared[x] > compared[y] ? -1 : compared[x] < compared[y] ? 1 : x - y;
}

/* The sampling distribution in double, from the published definitions of the options. */
static void distribute(double *probability, const float *x, int n, const ft_sampling_params *c)
{
    int order[300], kept = n;
    double sum = 0.0, reached = 0.0;
    for (int i = 0; i < n; i++) {
        probability[i] = exp((double) x[i] / (double) c->temperature);
        order[i] = i;
    }
    compared = probability;
    qsort(order, (size_t) n, sizeof *order, by_probability);
    if (c->top_k > 0 && c->top_k < n)
        kept = c->top_k;
    for (int i = 0; i < kept; i++)
        sum += probability[order[i]];
    for (int i = 0; c->top_p > 0.0f && i < kept; i++) {
        reached += probability[order[i]] / sum;
        if (reached >= (double) c->top_p)
            kept = i + 1;
    }
    while (probability[order[kept - 1]] < (double) c->min_p * probability[order[0]])
        kept--;
    sum = 0.0;
    for (int i = 0; i < kept; i++)
        sum += probability[order[i]];
    for (int i = 0; i < n; i++)
        probability[order[i]] = i < kept ? probability[order[i]] / sum : 0.0;
}

static void test_distribution(const char *name, ft_sampling_params sampling)
{
    enum { N = 300, DRAWS = 50000 };
    static int count[N];
    double probability[N];
    rng r = { 7 };
    memset(count, 0, sizeof count);
    fill_logits(&r, logits, N, NORMAL);
    distribute(probability, logits, N, &sampling);
    sampling.seed = 1234567;
    for (int i = 0; i < DRAWS; i++) {
        sampling.step = (uint32_t) i;
        count[choose(logits, N, &sampling, NULL)]++;
    }
    double deviations = chi_square(count, probability, N, DRAWS);
    /* Right programs leave 4 standard deviations once in some thousand seeds; this seed is fixed.
     */
    ok(deviations >= 0.0 && deviations < 4.0,
       "%s: token frequencies match their probabilities (%.2f)", name, deviations);
}

static void test_distributions(void)
{
    test_distribution("temperature 1", (ft_sampling_params){ .temperature = 1.0f });
    test_distribution("temperature 0.6", (ft_sampling_params){ .temperature = 0.6f });
    test_distribution("temperature 1.7", (ft_sampling_params){ .temperature = 1.7f });
    test_distribution("top-k 40", (ft_sampling_params){ .temperature = 1.0f, .top_k = 40 });
    test_distribution("top-p 0.9", (ft_sampling_params){ .temperature = 1.0f, .top_p = 0.9f });
    test_distribution("min-p 0.05", (ft_sampling_params){ .temperature = 1.0f, .min_p = 0.05f });
    test_distribution("top-k, top-p",
                      (ft_sampling_params){ .temperature = 0.9f, .top_k = 50, .top_p = 0.8f });
    test_distribution("top-p, min-p",
                      (ft_sampling_params){ .temperature = 1.3f, .top_p = 0.95f, .min_p = 0.02f });
    test_distribution(
        "all of them",
        (ft_sampling_params){ .temperature = 0.8f, .top_k = 100, .top_p = 0.97f, .min_p = 0.01f });
}

/* Tokens of one seed's steps must not depend on each other: pairs are as frequent as they should.
 */
static void test_independence(void)
{
    enum { N = 6, DRAWS = 60000 };
    static const float x[N] = { 0.3f, -1.0f, 0.0f, 1.0f, 0.7f, -0.2f };
    ft_sampling_params sampling = { .seed = 99, .temperature = 1.0f };
    int count[N * N] = { 0 };
    double one[N], pair[N * N];
    distribute(one, x, N, &sampling);
    for (int i = 0; i < N * N; i++)
        pair[i] = one[i / N] * one[i % N];
    for (int i = 0; i < DRAWS; i++) {
        sampling.step = 2 * (uint32_t) i;
        int32_t first = choose(x, N, &sampling, NULL);
        sampling.step++;
        count[first * N + choose(x, N, &sampling, NULL)]++;
    }
    double deviations = chi_square(count, pair, N * N, DRAWS);
    ok(deviations >= 0.0 && deviations < 4.0, "tokens of neighbouring steps are independent (%.2f)",
       deviations);
}

/* ---- Special cases --------------------------------------------------------------------------- */

static void test_greedy(void)
{
    static const float x[] = { 1.0f, 3.0f, -0.0f, 3.0f, 2.0f };
    ft_sampling_params sampling = { .top_k = 3, .top_p = 0.5f, .min_p = 0.1f, .seed = 5 };
    is_int(choose(x, 5, &sampling, NULL), 1,
           "temperature 0 selects the first of the largest logits");
    sampling.n_banned = 1;
    sampling.banned[0] = 1;
    is_int(choose(x, 5, &sampling, NULL), 3,
           "temperature 0 selects the next logit if the first is banned");
    sampling = (ft_sampling_params){ .temperature = 1e-30f };
    is_int(choose(x, 5, &sampling, NULL) % 2, 1,
           "a temperature of nearly 0 samples among the largest logits");
    static const float zeros[] = { -1.0f, -0.0f, 0.0f };
    sampling = (ft_sampling_params){ 0 };
    is_int(choose(zeros, 3, &sampling, NULL), 1, "+0 and -0 are equal logits");
}

static void test_borders(void)
{
    static const float ties[] = { 0.0f, 2.0f, 2.0f, 2.0f, 1.0f };
    int drawn[5] = { 0 };
    ft_sampling_params sampling = { .temperature = 1.0f, .top_k = 2 };
    for (sampling.step = 0; sampling.step < 1000; sampling.step++)
        drawn[choose(ties, 5, &sampling, NULL)]++;
    ok(drawn[1] > 400 && drawn[2] > 400 && drawn[1] + drawn[2] == 1000,
       "top-k 2 of three equal tokens keeps the smaller ids");
    memset(drawn, 0, sizeof drawn);
    sampling = (ft_sampling_params){ .temperature = 1.0f, .top_k = 1000 };
    for (sampling.step = 0; sampling.step < 1000; sampling.step++)
        drawn[choose(ties, 5, &sampling, NULL)]++;
    ok(drawn[0] > 0 && drawn[4] > 0, "a top-k above the vocabulary size keeps all tokens");
    memset(drawn, 0, sizeof drawn);
    sampling = (ft_sampling_params){ .temperature = 1.0f, .top_p = 1e-38f };
    for (sampling.step = 0; sampling.step < 100; sampling.step++)
        drawn[choose(ties, 5, &sampling, NULL)]++;
    is_int(drawn[1], 100, "a tiny top-p keeps one token");
    memset(drawn, 0, sizeof drawn);
    sampling = (ft_sampling_params){ .temperature = 1.0f, .min_p = 2.0f };
    for (sampling.step = 0; sampling.step < 1000; sampling.step++)
        drawn[choose(ties, 5, &sampling, NULL)]++;
    ok(drawn[1] > 250 && drawn[2] > 250 && drawn[3] > 250 && drawn[0] + drawn[4] == 0,
       "a min-p of 1 or more keeps the most likely token");
}

/* A cumulative probability that is reached exactly: two of four equal tokens have one half. */
static void test_exact_share(void)
{
    static const float equal[] = { 1.0f, 1.0f, 1.0f, 1.0f };
    int largest = 0, beyond = 0;
    ft_sampling_params sampling = { .temperature = 1.0f, .top_p = 0.5f };
    for (sampling.step = 0; sampling.step < 200; sampling.step++) {
        int32_t half = choose(equal, 4, &sampling, NULL);
        sampling.top_p = 0x1.000002p-1f;
        int32_t more = choose(equal, 4, &sampling, NULL);
        sampling.top_p = 0.5f;
        largest = half > largest ? half : largest;
        beyond = more > beyond ? more : beyond;
    }
    is_int(largest, 1, "top-p 0.5 keeps two of four equal tokens");
    is_int(beyond, 2, "a top-p slightly above 0.5 keeps three of four equal tokens");
}

static void test_special_logits(void)
{
    float x[] = { 1.0f, -INFINITY, NAN, 2.0f }, logprob = 0.0f;
    ft_sampling_params sampling = { .temperature = 1.0f };
    is_int(choose(x, 4, &sampling, &logprob), FT_NO_TOKEN, "a NaN logit yields no token");
    ok(logprob != logprob, "a NaN logit yields no log-probability");
    sampling.temperature = 0.0f;
    is_int(choose(x, 4, &sampling, NULL), FT_NO_TOKEN,
           "a NaN logit yields no token at temperature 0");
    sampling.n_banned = 1;
    sampling.banned[0] = 2;
    is_int(choose(x, 4, &sampling, NULL), FT_NO_TOKEN,
           "a NaN logit yields no token even if that token is banned");
    x[2] = INFINITY;
    sampling = (ft_sampling_params){ .temperature = 1.0f };
    is_int(choose(x, 4, &sampling, &logprob), FT_NO_TOKEN, "a logit of +inf yields no token");
    ok(logprob != logprob, "a logit of +inf yields no log-probability");
    sampling.n_banned = 1;
    sampling.banned[0] = 2;
    is_int(choose(x, 4, &sampling, NULL), FT_NO_TOKEN,
           "a logit of +inf yields no token even if that token is banned");
    for (int i = 0; i < 4; i++)
        x[i] = -INFINITY;
    sampling.n_banned = 0;
    is_int(choose(x, 4, &sampling, &logprob), FT_NO_TOKEN,
           "logits that are all -inf yield no token");
    ok(logprob != logprob, "logits that are all -inf yield no log-probability");
    for (int i = 0; i < 4; i++)
        x[i] = (float) i;
    sampling = (ft_sampling_params){ .temperature = 1.0f, .n_banned = 4, .banned = { 3, 1, 0, 2 } };
    is_int(choose(x, 4, &sampling, NULL), FT_NO_TOKEN,
           "a row with all tokens banned yields no token");
}

static void test_logprob(void)
{
    double worst = 0.0;
    for (int round = 0; round < 50; round++) {
        size_t n = 1 + rng_below(&chance, 5000);
        float logprob;
        fill_logits(&chance, logits, n, round % 2 ? NORMAL : WORDS);
        fill_history(&chance, history, KNOWN, n, seen);
        ft_sampling_params sampling =
            draw_choice(&chance, TOP_K | TOP_P | PENALTIES | NGRAM, n, KNOWN);
        int32_t token = choose(logits, n, &sampling, &logprob);
        double sum = 0.0;
        if (token == FT_NO_TOKEN) /* a small vocabulary, with all tokens banned */
            continue;
        for (size_t i = 0; i < n; i++)
            sum += exp((double) logits[i]);
        worst = fmax(worst, fabs((double) logprob - ((double) logits[token] - log(sum))));
    }
    /*
     * A logit's distance from the largest is rounded to 24 bits, as is its product with log2(e): at
     * 16, e^-16 is off by a relative 2e-6, but the logits that matter are within 3: 3e-7.  The
     * polynomial adds 1e-7, and the result, of at most 32, half a unit: 1e-6.
     */
    ok(worst < 2e-6, "log-probabilities are those of the unmodified logits, to 2e-6 (%.2g)", worst);
}

/* ---- Penalties and bans, one at a time ----------------------------------------------------------
 */

static void test_penalties(void)
{
    ft_sampling_params sampling = { .repetition_penalty = 1.25f };
    ok(ft_sampling_penalize(2.0f, FT_TOKEN_IN_PROMPT, &sampling) == 1.6f,
       "a repetition penalty of 1.25 divides a positive logit of a prompt token");
    ok(ft_sampling_penalize(-2.0f, 1, &sampling) == -2.5f,
       "a repetition penalty multiplies a negative logit of a generated token");
    ok(ft_sampling_penalize(2.0f, 0, &sampling) == 2.0f,
       "a repetition penalty leaves new tokens unchanged");
    sampling = (ft_sampling_params){ .presence_penalty = 0.5f, .frequency_penalty = 0.25f };
    ok(ft_sampling_penalize(2.0f, FT_TOKEN_IN_PROMPT, &sampling) == 2.0f,
       "presence and frequency penalties leave prompt tokens unchanged");
    ok(ft_sampling_penalize(2.0f, FT_TOKEN_IN_PROMPT | 3, &sampling) == 0.75f,
       "a token generated 3 times loses the presence penalty once and the frequency penalty 3 "
       "times");
    sampling.repetition_penalty = 2.0f;
    ok(ft_sampling_penalize(3.0f, 1, &sampling) == 0.75f,
       "the repetition penalty is applied before the others");
}

/* The tokens that an n-gram ban allows, found by offering each alone. */
static void test_ngrams(void)
{
    /* In 2-grams 3 and 1 follow 7; in 3-grams only 3 follows 5 7. */
    static const int32_t text[] = { 5, 7, 3, 9, 7, 1, 0, 5, 7 };
    static const struct {
        int32_t n, n_tokens;
        unsigned banned; /* a bit for each id */
    } cases[] = {
        { 1, 9, 1 << 5 | 1 << 7 | 1 << 3 | 1 << 9 | 1 << 1 | 1 << 0 },
        { 2, 9, 1 << 3 | 1 << 1 },
        { 3, 9, 1 << 3 },
        { 4, 9, 0 },
        { 2, 2, 0 },
        { 9, 9, 0 },
        { 10, 9, 0 },
        { 1, 0, 0 },
        { 2, 5, 1 << 3 },
    };
    memcpy(history, text, sizeof text);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ft_sampling_params sampling = { .no_repeat_ngram = cases[i].n,
                                        .n_tokens = cases[i].n_tokens };
        unsigned banned = 0;
        for (int id = 0; id < 10; id++) {
            float x[10] = { 0 };
            x[id] = 1.0f;
            if (choose(x, 10, &sampling, NULL) != id)
                banned |= 1u << id;
        }
        is_int(banned, cases[i].banned,
               "no_repeat_ngram %d after %d tokens bans the token that would complete a repeated "
               "n-gram",
               cases[i].n, cases[i].n_tokens);
    }
}

/* ---- Memory ------------------------------------------------------------------------------------
 */

static void test_memory(void)
{
    enum { SLOTS = 3, CONTEXT = 5, TOKENS = 7 };
    int32_t text[SLOTS * CONTEXT], last[SLOTS] = { -9, -9, -9 };
    uint32_t words[SLOTS * TOKENS];
    ft_cpu_token_history memory = { text, words, last, CONTEXT, TOKENS };
    memset(text, 0x55, sizeof text);
    memset(words, 0x55, sizeof words);
    /* Two prompts, one with a negative id, and a padding row. */
    static const int32_t ids[] = { 4, 4, 6, -1, 3, 2 }, seq_id[] = { 0, 0, 1, 1, 1, -1 };
    static const int32_t start[] = { 0, 2 }, n_past[] = { 0, 0 }, slot[] = { 2, 0 };
    ft_cpu_record_prompt(&memory, &(ft_cpu_prompt_tokens){ ids, seq_id, 6, start, n_past, slot });
    ok(text[10] == 4 && text[11] == 4 && text[0] == 6 && text[1] == 0x55555555 && text[2] == 3,
       "the prompt's tokens are recorded in the history, except negative ids");
    uint32_t sum = 0;
    for (int i = 0; i < TOKENS; i++)
        sum += (uint32_t) (words[i] != 0) + (uint32_t) (words[14 + i] != 0);
    ok(sum == 3 && words[6] == FT_TOKEN_IN_PROMPT && words[3] == FT_TOKEN_IN_PROMPT &&
           words[18] == FT_TOKEN_IN_PROMPT,
       "the prompt's tokens are counted, and the counts of the slot's last text are cleared");
    ok(words[7] == 0x55555555 && text[5] == 0x55555555, "other slots are left unchanged");
    ft_sampling_params sampling = { .slot = 2, .n_tokens = 2 };
    ft_cpu_sample_append(&memory, &sampling, 4);
    sampling.n_tokens = 3;
    ft_cpu_sample_append(&memory, &sampling, 4);
    ok(text[12] == 4 && text[13] == 4 && words[18] == (FT_TOKEN_IN_PROMPT | 2) && last[2] == 4,
       "generated tokens are appended to the history and counted");
    sampling.n_tokens = CONTEXT;
    ft_cpu_sample_append(&memory, &sampling, 1);
    ok(words[15] == 1 && last[2] == 1, "tokens beyond the context are only counted");
    ft_cpu_sample_append(&memory, &sampling, FT_NO_TOKEN);
    ok(last[2] == 0 && words[14] == 0, "a step without a token records nothing");
    sampling.slot = -1;
    ft_cpu_sample_append(&memory, &sampling, 3);
    ok(last[0] == -9 && last[1] == -9, "a token without a slot is not recorded");
    static const int32_t more[] = { 5 }, before[] = { 2 };
    ft_cpu_record_prompt(&memory, &(ft_cpu_prompt_tokens){ more, seq_id, 1, start, before, slot });
    ok(words[18] == (FT_TOKEN_IN_PROMPT | 2) && words[19] == FT_TOKEN_IN_PROMPT,
       "a later prefill chunk of a prompt clears nothing");
}

int main(void)
{
    scratch = malloc(ft_cpu_sample_row_scratch(MAX_SIZE));
    if (scratch == NULL)
        bail_out("out of memory");
    test_philox();
    test_masses();
    for (int s = 0; s < SHAPES; s++)
        test_against_plain((shape) s);
    test_large();
    test_distributions();
    test_independence();
    test_greedy();
    test_borders();
    test_exact_share();
    test_special_logits();
    test_logprob();
    test_penalties();
    test_ngrams();
    test_memory();
    free(scratch);
    return done_testing();
}
