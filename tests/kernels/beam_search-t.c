/*
 * beam_search-t.c - beam search on the CPU: it finds the hypotheses of Hugging Face transformers on
 * the same models, and those of a simple reference search where transformers has no such feature.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cpu/sampling/beam_search.h"
#include "tests/kernels/beam_search.h"
#include "tests/tap/tap.h"

#include <stdlib.h>

/* ---- transformers -------------------------------------------------------------------------- */

/* A line of golden/beams.txt: the search, and the best hypothesis of transformers. */
static bool read_line(FILE *file, problem *p, found *best)
{
    char line[2048];
    int n = 0, at = 0;
    ft_beam_params *r = &p->rules;
    memset(p, 0, sizeof *p);
    memset(best, 0, sizeof *best);
    if (fgets(line, sizeof line, file) == NULL)
        return false;
    if (sscanf(line, "%u %d %d %d %lf %d %d %d %f %d %d %d %lf%n", &p->model.seed, &p->vocabulary,
               &r->width, &r->early_stopping, &p->length_penalty, &r->prompt, &r->max_length,
               &r->no_repeat_ngram, &r->repetition_penalty, &r->min_new_tokens, &p->first,
               &r->n_eos, &best->score, &n) != 13)
        bail_out("golden/beams.txt: not a search: %s", line);
    for (; sscanf(line + n, "%d%n", &best->token[best->length], &at) == 1; n += at)
        best->length++;
    p->model.bonus = 1.5f;
    r->num_beam_groups = 1;
    for (int32_t i = 0; i < r->n_eos; i++)
        r->eos[i] = 2 + i;
    for (int32_t i = 0; i < r->prompt; i++)
        p->prompt[i] = ((int32_t) p->model.seed * 7 + i * 11) % (p->vocabulary - 5) + 5;
    return true;
}

/*
 * Two hypotheses tie when their scores differ by less than this; scores are sums of up to 60
 * log-probabilities, each rounded in float where numbers of about 5 are 5e-7 apart.
 */
static const double tie = 1e-5, rounding = 3e-5;

static void test_transformers(void)
{
    char path[4096];
    problem p;
    static found best, mine[FT_MAX_BEAMS];
    int rows = 0, same = 0, other = 0, far = 0;
    const char *source = getenv("FT_SRCDIR");
    snprintf(path, sizeof path, "%s/tests/golden/beams.txt", source == NULL ? "." : source);
    FILE *file = fopen(path, "r");
    if (file == NULL)
        bail_out("%s: cannot open", path);
    for (; read_line(file, &p, &best); rows++) {
        int32_t count = search_on_cpu(&p, mine);
        double difference = count > 0 ? fabs(mine[0].score - best.score) : (double) INFINITY;
        bool equal = count > 0 && same_tokens(&mine[0], &best);
        same += equal;
        other += !equal && difference > tie;
        far += !(difference <= rounding);
        if (!equal)
            diag("seed %u: score %.8g of transformers, %.8g of ours", p.model.seed, best.score,
                 count > 0 ? mine[0].score : (double) NAN);
    }
    fclose(file);
    diag("%d of %d beam search texts equal those of transformers", same, rows);
    is_int(
        rows, 5 * 3 * 3 * 8,
        "the golden file has searches for every width, kind of early stopping and length penalty");
    ok(same * 100 >= rows * 99, "at least 99 %% of the best texts equal those of transformers");
    is_int(other, 0, "every text that differs from transformers' has an equal score");
    is_int(far, 0, "the scores equal those of transformers within the tolerance");
}

/* ---- The reference search ------------------------------------------------------------------ */

static problem draw_problem(rng *r, int32_t width, int32_t parts, int32_t vocabulary)
{
    problem p = { .model = { .seed = (uint32_t) rng_bits(r), .bonus = 1.0f },
                  .vocabulary = vocabulary,
                  .first = rng_below(r, 4) == 0 ? 0 : -1,
                  .length_penalty = rng_uniform(r, -0.5, 2.0) };
    p.rules = (ft_beam_params){ .slot = (int32_t) rng_below(r, 3),
                                .width = width,
                                .num_beam_groups = parts,
                                .prompt = 1 + (int32_t) rng_below(r, 4),
                                .min_new_tokens = (int32_t) rng_below(r, 4),
                                .early_stopping = (int32_t) rng_below(r, 3),
                                .no_repeat_ngram = (int32_t) rng_below(r, 4),
                                .repetition_penalty = rng_below(r, 2) == 0 ? 0.0f : 1.2f,
                                .diversity_penalty = parts > 1 ? 0.7f : 0.0f,
                                .n_eos = (int32_t) rng_below(r, 4),
                                .n_banned = (int32_t) rng_below(r, 3) };
    p.rules.max_length = p.rules.prompt + 1 + (int32_t) rng_below(r, 20);
    for (int32_t i = 0; i < p.rules.n_eos; i++)
        p.rules.eos[i] = 1 + 3 * i;
    for (int32_t i = 0; i < p.rules.n_banned; i++)
        p.rules.banned[i] = (int32_t) rng_below(r, (uint32_t) vocabulary);
    for (int32_t i = 0; i < p.rules.prompt; i++)
        p.prompt[i] = (int32_t) rng_below(r, (uint32_t) vocabulary);
    return p;
}

/* Whether all hypotheses are equal in order; else hypotheses that tie may be swapped. */
static void compare(const found *a, const found *b, int32_t n, bool *same, bool *near)
{
    for (int32_t i = 0; i < n; i++) {
        *same &= same_tokens(&a[i], &b[i]);
        *near &= fabs(a[i].score - b[i].score) <= rounding * (1.0 + fabs(b[i].score));
    }
}

static void test_plain(int32_t width, int32_t parts, int32_t vocabulary)
{
    enum { ROUNDS = 12 };
    rng r = { (uint64_t) (width * 1000 + parts * 100 + vocabulary) };
    int same = 0, near = 0;
    static found mine[FT_MAX_BEAMS], plain[FT_MAX_BEAMS];
    for (int i = 0; i < ROUNDS; i++) {
        problem p = draw_problem(&r, width, parts, vocabulary);
        int32_t count = search_plainly(&p, plain);
        bool equal = search_on_cpu(&p, mine) == count, close = equal;
        compare(mine, plain, equal ? count : 0, &equal, &close);
        same += equal;
        near += close;
    }
    is_int(near, ROUNDS,
           "%d beams in %d groups, %d tokens: the scores equal those of a plain search", width,
           parts, vocabulary);
    /* Among 64 hypotheses, the scores of two may be closer than float precision. */
    ok(same >= ROUNDS - 1,
       "%d beams in %d groups, %d tokens: %d of %d texts equal those of a plain search", width,
       parts, vocabulary, same, ROUNDS);
}

/* ---- Special rows -------------------------------------------------------------------------- */

enum { WORDS = 10, SLOTS = 8 };

static const ft_beam_params four = {
    .width = 4,
    .num_beam_groups = 1,
    .prompt = 1,
    .n_tokens = 1,
    .max_length = 20,
    .n_eos = 1,
    .eos = { 3 },
    .forced = -1,
    .divisor = 1.0f,
    .max_length_divisor = 1.0f,
};

static void fill(float *logits, size_t n, float value)
{
    for (size_t i = 0; i < n; i++)
        logits[i] = value;
}

static bool beams_are(const ft_beam_state *m, const ft_beam_params *rules, const int32_t *token,
                      const int32_t *parent)
{
    bool same = true;
    for (int32_t i = 0; i < rules->width; i++) {
        size_t at = (size_t) (rules->slot + i) * m->context + (size_t) rules->n_tokens;
        same &= m->last[rules->slot + i] == token[i] && m->history[at] == token[i];
        same &= m->cache_indirection[at] == i && m->cache_indirection[at - 1] == parent[i];
    }
    return same;
}

static void test_ties(void)
{
    rng r = { 5 };
    float logits[4 * WORDS];
    ft_beam_state m = memory_new(&r, SLOTS, WORDS);
    ft_beam_params rules = four;
    rules.slot = 3;
    fill(logits, 4 * WORDS, 2.0f);
    step_on_cpu(&m, &rules, logits);
    ok(beams_are(&m, &rules, (int32_t[]){ 0, 1, 2, 4 }, (int32_t[]){ 0, 0, 0, 0 }),
       "of candidates with equal scores those with the smaller token ids continue");
    is_int(m.beam[3].finished, 1,
           "the end token among candidates with equal scores finishes a hypothesis");
    rules.n_tokens++;
    step_on_cpu(&m, &rules, logits);
    ok(beams_are(&m, &rules, (int32_t[]){ 0, 1, 2, 4 }, (int32_t[]){ 0, 0, 0, 0 }),
       "of beams with equal scores the first one continues");
    is_int(m.beam[3].finished, 2, "the first of two equal beams also finishes a hypothesis");
    ok(m.finished[4 * TEXT] == 0 && m.finished[4 * TEXT + 1] == 3,
       "the finished hypothesis has the tokens of its beam");
    memory_free(&m);
}

/*
 * A token of probability 1 does not change a beam's score, which makes hypotheses of equal score.
 * e^-90 vanishes beside 1 but is not zero.
 */
static void test_equal_texts(void)
{
    rng r = { 9 };
    float logits[2 * WORDS];
    ft_beam_state m = memory_new(&r, SLOTS, WORDS);
    ft_beam_params rules = four;
    rules.width = 2;
    rules.max_length_divisor = 2.0f;
    fill(logits, 2 * WORDS, -INFINITY);
    logits[3] = logits[4] = logits[5] = 0.0f; /* 3 ends: the first hypothesis */
    step_on_cpu(&m, &rules, logits);
    rules.n_tokens++;
    fill(logits, 2 * WORDS, -INFINITY);
    logits[3] = 0.0f; /* 4 3, the second */
    logits[WORDS + 4] = 0.0f;
    logits[WORDS + 5] = -90.0f;
    step_on_cpu(&m, &rules, logits);
    ok(m.beam[0].finished == 2 && m.beam[0].finished_score == m.beam[1].finished_score,
       "two hypotheses with equal scores are both kept");
    ft_beam_state before = memory_copy(&m, SLOTS);
    rules.n_tokens++;
    logits[4] = -90.0f; /* 5 4 3 would be the third; 5 4 4 continues */
    step_on_cpu(&m, &rules, logits);
    ok(m.beam[0].finished_length == 1 && m.beam[1].finished_length == 2,
       "a third hypothesis with the same score is dropped");
    memory_free(&m);
    m = before;
    rules.divisor = 2.0f;
    step_on_cpu(&m, &rules, logits);
    ok(m.beam[0].finished_length == 1 && m.beam[1].finished_length == 3,
       "a better hypothesis replaces the younger of two equal ones");
    memory_free(&m);
}

static void test_origins(void)
{
    rng r = { 6 };
    float logits[4 * WORDS];
    ft_beam_state m = memory_new(&r, SLOTS, WORDS);
    ft_beam_params rules = four;
    rules.slot = 1;
    fill(logits, WORDS, 0.0f);
    step_on_cpu(&m, &rules, logits); /* tokens 0, 1, 2, 4 */
    rules.n_tokens++;
    fill(logits, 4 * WORDS, -90.0f);
    logits[2 * WORDS + 7] = logits[2 * WORDS + 8] = 0.0f; /* beam 2 has two children, */
    logits[1 * WORDS + 5] = 0.0f;                         /* beam 1 has one, ... */
    logits[0 * WORDS + 6] = logits[3 * WORDS + 6] = -1.0f;
    logits[0 * WORDS + 9] = logits[3 * WORDS + 9] = -1.0f;
    step_on_cpu(&m, &rules, logits);
    /* One child has probability 1, two of one beam 0.5 each: ordered by beam, then by token. */
    ok(beams_are(&m, &rules, (int32_t[]){ 5, 6, 9, 7 }, (int32_t[]){ 1, 0, 0, 2 }),
       "beams inherit the cache indirection of their parents");
    rules.n_tokens++;
    fill(logits, 4 * WORDS, -90.0f);
    logits[3 * WORDS + 3] = logits[0 * WORDS + 1] = 0.0f; /* 2 7 ends, 1 5 1 continues */
    step_on_cpu(&m, &rules, logits);
    const int32_t *text = m.finished + (size_t) (rules.slot + 1) * TEXT;
    ok(text[0] == 2 && text[1] == 7 && text[2] == 3,
       "the tokens of a beam are read through the cache indirection");
    memory_free(&m);
}

static void test_not_numbers(void)
{
    rng r = { 7 };
    float logits[4 * WORDS];
    ft_beam_state m = memory_new(&r, SLOTS, WORDS);
    ft_beam_params sick = four, well = four;
    well.slot = 4;
    fill(logits, 4 * WORDS, 1.0f);
    step_on_cpu(&m, &sick, logits);
    step_on_cpu(&m, &well, logits);
    sick.n_tokens = ++well.n_tokens;
    logits[2 * WORDS + 9] = NAN;
    step_on_cpu(&m, &sick, logits);
    is_int(m.beam[0].status, FT_BEAM_FAILED, "a NaN in the logits of a live beam fails its search");
    logits[2 * WORDS + 9] = 1.0f;
    step_on_cpu(&m, &well, logits);
    is_int(m.beam[4].status, FT_BEAM_RUNS, "a NaN in one search leaves the other searches running");
    sick.n_tokens++;
    step_on_cpu(&m, &sick, logits);
    ok(m.beam[0].status == FT_BEAM_FAILED && m.last[0] == 0 &&
           m.cache_indirection[3 * TEXT + 3] == 3,
       "a failed search stays failed, and its beams hold valid token ids");

    fill(logits, WORDS, -INFINITY);
    step_on_cpu(&m, &four, logits);
    ok(m.beam[0].status == FT_BEAM_DONE && m.beam[0].finished == 0,
       "a search in which every token is banned ends without a hypothesis");
    logits[4] = INFINITY;
    step_on_cpu(&m, &four, logits);
    is_int(m.beam[0].status, FT_BEAM_FAILED, "+inf in the logits fails the search");
    fill(logits, WORDS, -INFINITY);
    logits[4] = 1.0f;
    step_on_cpu(&m, &four, logits);
    ok(m.last[0] == 4 && m.beam[0].score == 0.0f && m.beam[1].score == -INFINITY,
       "-inf in the logits only excludes that token");
    well = four;
    well.n_tokens++;
    fill(logits, 4 * WORDS, 1.0f);
    logits[3 * WORDS] = NAN;
    step_on_cpu(&m, &well, logits);
    is_int(m.beam[0].status, FT_BEAM_RUNS, "a NaN in the logits of a dead beam is ignored");
    memory_free(&m);
}

/* Decode steps may be in flight when a search ends. */
static void test_over(void)
{
    rng r = { 8 };
    float logits[2 * WORDS];
    ft_beam_state m = memory_new(&r, SLOTS, WORDS);
    ft_beam_params rules = four;
    rules.width = 2;
    rules.early_stopping = FT_EARLY_STOPPING_TRUE;
    rules.n_eos = 2;
    rules.eos[1] = 1;
    fill(logits, 2 * WORDS, 0.0f);
    logits[3] = logits[1] = 3.0f; /* both ends are best */
    step_on_cpu(&m, &rules, logits);
    ok(m.beam[0].status == FT_BEAM_DONE && m.beam[0].finished == 2,
       "a search ends when all its hypotheses are found");
    ft_beam_state before = memory_copy(&m, SLOTS);
    rules.n_tokens++;
    step_on_cpu(&m, &rules, logits);
    ok(memcmp(m.beam, before.beam, SLOTS * sizeof *m.beam) == 0 &&
           memcmp(m.finished, before.finished, SLOTS * TEXT * sizeof *m.finished) == 0,
       "a search that has ended keeps its hypotheses");
    memory_free(&before);
    memory_free(&m);
}

int main(void)
{
    test_transformers();
    static const int32_t cases[][3] = {
        { 1, 1, 50 },   { 2, 1, 50 },  { 4, 1, 211 }, { 8, 1, 90 }, { 8, 1, 13 },
        { 32, 1, 300 }, { 32, 1, 20 }, { 64, 1, 70 }, { 64, 1, 9 }, { 4, 2, 50 },
        { 6, 3, 64 },   { 8, 8, 40 },  { 64, 4, 65 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        test_plain(cases[i][0], cases[i][1], cases[i][2]);
    test_ties();
    test_equal_texts();
    test_origins();
    test_not_numbers();
    test_over();
    return done_testing();
}
