/*
 * beam_search.c - shared by the tests of beam search.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "tests/kernels/beam_search.h"

#include "kernels/cpu/sampling/beam_search.h"
#include "runtime/mem.h"
#include "tests/tap/tap.h"

#include <stdlib.h>

static void *array_of(size_t count, size_t size)
{
    void *memory = ft_calloc(count, size);
    if (memory == NULL)
        bail_out("cannot allocate %zu elements", count);
    return memory;
}

/* ---- Models -------------------------------------------------------------------------------- */

static float table_logit(const table *t, uint32_t position, uint32_t last, uint32_t token)
{
    uint32_t h = t->seed * 0x9e3779b1u + position * 0x85ebca77u;
    h += last * 0xc2b2ae3du + token * 0x27d4eb2fu;
    h = (h ^ h >> 15) * 0x2c1b3c6du;
    h = (h ^ h >> 12) * 0x297a2d39u;
    h ^= h >> 15;
    return (float) (h >> 8) * 0x1p-21f;
}

void table_logits(const problem *p, int32_t position, int32_t last, float *out)
{
    for (int32_t i = 0; i < p->vocabulary; i++) {
        out[i] = table_logit(&p->model, (uint32_t) position, (uint32_t) last, (uint32_t) i);
        if (ft_beam_is_eos(&p->rules, i))
            out[i] += p->model.bonus;
    }
}

ft_beam_params rules_of(const problem *p, int32_t known)
{
    ft_beam_params rules = p->rules;
    rules.n_tokens = known;
    rules.forced = known == rules.prompt ? p->first : -1;
    ft_beam_set_length_divisors(&rules, p->length_penalty);
    return rules;
}

/* ---- The reference search ------------------------------------------------------------------ */

#define IMPOSSIBLE ((double) -INFINITY)

typedef struct beam_id {
    double score;
    int32_t count;
    int32_t token[TEXT];
} beam_id;

typedef struct choice_of {
    double score;
    int32_t beam_id, token;
} choice_of;

typedef struct search {
    beam_id beam_id[FT_MAX_BEAMS];
    found kept[2 * FT_MAX_BEAMS];
    int32_t count; /* of the kept hypotheses */
    bool over;
} search;

static bool knows(const beam_id *l, int32_t id)
{
    for (int32_t i = 0; i < l->count; i++)
        if (l->token[i] == id)
            return true;
    return false;
}

static bool makes_ngram_again(const beam_id *l, int32_t n, int32_t id)
{
    for (int32_t at = 0; n > 0 && at + n <= l->count; at++) {
        bool same = l->token[at + n - 1] == id;
        for (int32_t i = 0; i < n - 1; i++)
            same &= l->token[at + i] == l->token[l->count - n + 1 + i];
        if (same)
            return true;
    }
    return false;
}

/* The log-probability of a token after the logits processors. */
static double adjusted(const problem *p, const beam_id *l, double logprob, int32_t id)
{
    const ft_beam_params *rules = &p->rules;
    int32_t made = l->count - rules->prompt;
    if (made == 0 && p->first >= 0)
        return id == p->first ? 0.0 : IMPOSSIBLE;
    if (made < rules->min_new_tokens && ft_beam_is_eos(rules, id))
        return IMPOSSIBLE;
    if (makes_ngram_again(l, rules->no_repeat_ngram, id))
        return IMPOSSIBLE;
    for (int32_t i = 0; i < rules->n_banned; i++)
        if (rules->banned[i] == id)
            return IMPOSSIBLE;
    if (rules->repetition_penalty > 0.0f && knows(l, id))
        return logprob * (double) rules->repetition_penalty;
    return logprob;
}

static int by_score(const void *a, const void *b)
{
    const choice_of *x = a, *y = b;
    if (x->score != y->score)
        return x->score > y->score ? -1 : 1;
    return x->beam_id != y->beam_id ? x->beam_id - y->beam_id : x->token - y->token;
}

static int by_found(const void *a, const void *b)
{
    const found *x = a, *y = b;
    return x->score > y->score ? -1 : x->score < y->score;
}

/* All candidates of the beams, in order; `cost` of each token. */
static choice_of *list_all(const problem *p, const search *part, int32_t span, const double *cost)
{
    size_t words = (size_t) p->vocabulary, n = 0;
    choice_of *all = array_of((size_t) span * words, sizeof *all);
    float *logits = array_of(words, sizeof *logits);
    for (int32_t i = 0; i < span; i++) {
        const beam_id *l = &part->beam_id[i];
        double sum = 0.0;
        table_logits(p, l->count - 1, l->token[l->count - 1], logits);
        for (size_t id = 0; id < words; id++)
            sum += exp((double) logits[id]);
        for (size_t id = 0; id < words; id++) {
            double logprob = adjusted(p, l, (double) logits[id] - log(sum), (int32_t) id);
            double score = l->score == IMPOSSIBLE ? l->score : l->score + logprob - cost[id];
            all[n++] = (choice_of){ score, i, (int32_t) id };
        }
    }
    qsort(all, n, sizeof *all, by_score);
    free(logits);
    return all;
}

static void keep(search *part, const problem *p, const choice_of *c, int32_t span)
{
    const beam_id *l = &part->beam_id[c->beam_id];
    int32_t made = l->count + 1 - p->rules.prompt;
    found *f = &part->kept[part->count++];
    f->score = c->score / pow(made, p->length_penalty);
    f->length = made;
    memcpy(f->token, l->token + p->rules.prompt, (size_t) (made - 1) * sizeof *f->token);
    f->token[made - 1] = c->token;
    for (int32_t i = part->count - 1; i > 0 && by_found(&part->kept[i - 1], &part->kept[i]) > 0;
         i--) { /* stable sort: equal candidates keep their order */
        found swap = part->kept[i];
        part->kept[i] = part->kept[i - 1];
        part->kept[i - 1] = swap;
    }
    part->count = part->count < span ? part->count : span;
}

static bool is_over(const search *part, const problem *p, int32_t span)
{
    const beam_id *best = &part->beam_id[0];
    double length = best->count - p->rules.prompt;
    if (best->score == IMPOSSIBLE)
        return true;
    if (part->count < span)
        return false;
    if (p->rules.early_stopping == FT_EARLY_STOPPING_NEVER && p->length_penalty > 0.0)
        length = p->rules.max_length - p->rules.prompt;
    return p->rules.early_stopping == FT_EARLY_STOPPING_TRUE ||
           best->score / pow(length, p->length_penalty) <= part->kept[span - 1].score;
}

/* As transformers does it: of (1 + ends) times the lanes, at least twice, the best are looked at.
 */
static void turn_plainly(const problem *p, search *part, int32_t span, double *cost)
{
    int32_t ends = p->rules.n_eos > 1 ? p->rules.n_eos : 1, live = 0;
    choice_of *all = list_all(p, part, span, cost);
    beam_id *next = array_of((size_t) span, sizeof *next);
    bool last = part->beam_id[0].count + 1 >= p->rules.max_length;
    for (int32_t i = 0; i < span; i++)
        next[i].score = IMPOSSIBLE;
    for (int32_t i = 0; i < (1 + ends) * span && i < span * p->vocabulary; i++) {
        bool is_end = last || ft_beam_is_eos(&p->rules, all[i].token);
        if (all[i].score == IMPOSSIBLE)
            break;
        if (is_end && i < span)
            keep(part, p, &all[i], span);
        if (is_end || live == span)
            continue;
        next[live] = part->beam_id[all[i].beam_id];
        next[live].token[next[live].count++] = all[i].token;
        next[live++].score = all[i].score;
    }
    memcpy(part->beam_id, next, (size_t) span * sizeof *next);
    part->over = is_over(part, p, span);
    for (int32_t i = 0; i < live; i++)
        cost[part->beam_id[i].token[part->beam_id[i].count - 1]] +=
            (double) p->rules.diversity_penalty;
    for (int32_t i = live; i < span; i++) /* dead, but with the length of the others */
        part->beam_id[i].count = part->beam_id[0].count, part->beam_id[i].token[0] = 0;
    free(next);
    free(all);
}

int32_t search_plainly(const problem *p, found out[FT_MAX_BEAMS])
{
    int32_t parts = p->rules.num_beam_groups, span = p->rules.width / parts, count = 0;
    search *all = array_of((size_t) parts, sizeof *all);
    double *cost = array_of((size_t) p->vocabulary, sizeof *cost);
    for (int32_t i = 0; i < parts; i++)
        for (int32_t j = 0; j < span; j++) {
            beam_id *l = &all[i].beam_id[j];
            l->score = j == 0 ? 0.0 : IMPOSSIBLE;
            l->count = p->rules.prompt;
            memcpy(l->token, p->prompt, sizeof p->prompt);
        }
    for (int32_t known = p->rules.prompt; known < p->rules.max_length; known++) {
        memset(cost, 0, (size_t) p->vocabulary * sizeof *cost);
        for (int32_t i = 0; i < parts; i++)
            if (!all[i].over)
                turn_plainly(p, &all[i], span, cost);
    }
    for (int32_t i = 0; i < parts; i++)
        for (int32_t j = 0; j < all[i].count; j++)
            out[count++] = all[i].kept[j];
    qsort(out, (size_t) count, sizeof *out, by_found);
    free(cost);
    free(all);
    return count;
}

/* ---- Step by step -------------------------------------------------------------------------- */

static void *nonsense(rng *r, size_t bytes)
{
    unsigned char *x = array_of(bytes, 1);
    for (size_t i = 0; i < bytes; i++)
        x[i] = (unsigned char) rng_below(r, 256);
    return x;
}

ft_beam_state memory_new(rng *r, size_t num_slots, size_t vocabulary)
{
    size_t bytes = num_slots * TEXT * sizeof(int32_t);
    return (ft_beam_state){ .last = nonsense(r, num_slots * sizeof(int32_t)),
                            .history = nonsense(r, bytes),
                            .cache_indirection = nonsense(r, bytes),
                            .finished = nonsense(r, bytes),
                            .beam = nonsense(r, num_slots * sizeof(ft_beam)),
                            .context = TEXT,
                            .vocabulary = vocabulary };
}

static void *copy_of(const void *from, size_t bytes)
{
    void *to = array_of(bytes, 1);
    memcpy(to, from, bytes);
    return to;
}

ft_beam_state memory_copy(const ft_beam_state *from, size_t num_slots)
{
    ft_beam_state m = *from;
    size_t bytes = num_slots * from->context * sizeof(int32_t);
    m.last = copy_of(from->last, num_slots * sizeof *from->last);
    m.history = copy_of(from->history, bytes);
    m.cache_indirection = copy_of(from->cache_indirection, bytes);
    m.finished = copy_of(from->finished, bytes);
    m.beam = copy_of(from->beam, num_slots * sizeof *from->beam);
    return m;
}

void memory_free(ft_beam_state *m)
{
    free(m->last);
    free(m->history);
    free(m->cache_indirection);
    free(m->finished);
    free(m->beam);
}

bool memory_equals(const ft_beam_state *a, const ft_beam_state *b, size_t num_slots)
{
    size_t bytes = num_slots * a->context * sizeof(int32_t);
    return memcmp(a->last, b->last, num_slots * sizeof *a->last) == 0 &&
           memcmp(a->history, b->history, bytes) == 0 &&
           memcmp(a->cache_indirection, b->cache_indirection, bytes) == 0 &&
           memcmp(a->finished, b->finished, bytes) == 0 &&
           memcmp(a->beam, b->beam, num_slots * sizeof *a->beam) == 0;
}

bool search_is_over(const ft_beam_state *m, const ft_beam_params *rules)
{
    bool over = true;
    for (int32_t head = 0; head < rules->width; head += ft_beam_group_width(rules))
        over &= m->beam[rules->slot + head].status != FT_BEAM_RUNS;
    return over;
}

void record_prompt(const ft_beam_state *m, const problem *p)
{
    memcpy(m->history + (size_t) p->rules.slot * m->context, p->prompt,
           (size_t) p->rules.prompt * sizeof *p->prompt);
}

int32_t step_logits(const ft_beam_state *m, const problem *p, const ft_beam_params *rules,
                    float *out)
{
    bool begins = ft_beam_is_first_step(rules);
    int32_t rows = begins ? 1 : rules->width, position = rules->n_tokens - 1;
    for (int32_t i = 0; i < rows; i++)
        table_logits(p, position, begins ? p->prompt[position] : m->last[rules->slot + i],
                     out + (size_t) i * m->vocabulary);
    return rows;
}

void step_on_cpu(const ft_beam_state *m, const ft_beam_params *rules, const float *logits)
{
    ft_beam_candidates lists[FT_MAX_BEAMS];
    float *values = array_of(m->vocabulary, sizeof *values);
    memset(lists, 0xee, sizeof lists);
    for (int32_t i = 0; i < rules->width; i++)
        if (ft_beam_input_score(rules, m, i) > -INFINITY)
            ft_cpu_beam_search_row(ft_row_kernels_for(FT_ISA_GENERIC), m, rules, i,
                                   logits + (size_t) (ft_beam_row(rules, i) - rules->row) *
                                                m->vocabulary,
                                   values, &lists[i]);
    ft_cpu_beam_search_merge(m, rules, lists);
    free(values);
}

int32_t collect_found(const ft_beam_state *m, const ft_beam_params *rules, found out[FT_MAX_BEAMS])
{
    int32_t count = 0, span = ft_beam_group_width(rules);
    for (int32_t i = 0; i < rules->width; i++) {
        size_t slot = (size_t) (rules->slot + i);
        const ft_beam *head = &m->beam[rules->slot + i / span * span], *b = &m->beam[slot];
        if (head->status == FT_BEAM_FAILED)
            return -1;
        if (i % span >= head->finished)
            continue;
        out[count].score = (double) b->finished_score;
        out[count].length = b->finished_length;
        memcpy(out[count++].token, m->finished + slot * m->context,
               (size_t) b->finished_length * sizeof(int32_t));
    }
    qsort(out, (size_t) count, sizeof *out, by_found);
    return count;
}

int32_t search_on_cpu(const problem *p, found out[FT_MAX_BEAMS])
{
    rng r = { p->model.seed };
    size_t num_slots = (size_t) (p->rules.slot + p->rules.width);
    ft_beam_state m = memory_new(&r, num_slots, (size_t) p->vocabulary);
    float *logits = array_of((size_t) (p->rules.width * p->vocabulary), sizeof *logits);
    ft_beam_params rules = rules_of(p, p->rules.prompt);
    record_prompt(&m, p);
    do {
        step_logits(&m, p, &rules, logits);
        step_on_cpu(&m, &rules, logits);
        rules = rules_of(p, rules.n_tokens + 1);
    } while (!search_is_over(&m, &rules));
    int32_t count = collect_found(&m, &rules, out);
    free(logits);
    memory_free(&m);
    return count;
}

bool same_tokens(const found *a, const found *b)
{
    return a->length == b->length &&
           memcmp(a->token, b->token, (size_t) a->length * sizeof *a->token) == 0;
}
