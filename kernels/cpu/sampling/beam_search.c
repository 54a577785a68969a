/*
 * beam_search.c - the operation BEAM: one step of beam search, with the arithmetic of
 * kernels/beam_search.h.
 *
 * Only the few candidates that a beam contributes are sorted: a heap holds the best ones with the
 * worst on top, and nearly all tokens are rejected by a comparison with it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cpu/sampling/beam_search.h"
#include "kernels/cpu/sampling/sample.h"
#include "kernels/cpu/base/cpu.h"
#include "runtime/mem.h"

/* ---- Candidates of a beam -------------------------------------------------------------------- */

/* One row of logits, that of one beam. */
typedef struct row {
    const ft_beam_memory *memory;
    const ft_beams *beams;
    int32_t lane;
    const float *logits;
    float score, largest, log_total;
    float *values; /* score of the beam extended by each token */
} row;

static float extend(const row *r, size_t token, bool seen)
{
    float logprob = ft_beam_logprob(r->logits[token], r->largest, r->log_total);
    return ft_beam_extend(r->score, logprob, seen, r->beams);
}

static void ban(const row *r, int32_t id)
{
    if (id >= 0 && (size_t) id < r->memory->vocabulary)
        r->values[id] = -INFINITY;
}

static void repeat(const row *r)
{
    for (int32_t at = 0; ft_beams_repeat(r->beams) && at < r->beams->known; at++) {
        int32_t id = ft_beam_token(r->beams, r->memory, r->lane, at);
        if (id >= 0 && (size_t) id < r->memory->vocabulary)
            r->values[id] = extend(r, (size_t) id, true);
    }
}

static void apply_bans(const row *r)
{
    const ft_beams *beams = r->beams;
    int32_t n = beams->ngram;
    for (int32_t at = 0; n > 0 && at <= beams->known - n; at++)
        if (ft_beam_recurs(beams, r->memory, r->lane, at))
            ban(r, ft_beam_token(beams, r->memory, r->lane, at + n - 1));
    for (int32_t i = 0; beams->known - beams->prompt < beams->least && i < beams->ends; i++)
        ban(r, beams->end[i]);
    for (int32_t i = 0; i < beams->bans; i++)
        ban(r, beams->ban[i]);
}

static void extend_all(const row *r)
{
    size_t n = r->memory->vocabulary;
    int32_t forced = r->beams->forced;
    for (size_t i = 0; i < n; i++)
        r->values[i] = forced < 0 ? extend(r, i, false) : -INFINITY;
    if (forced >= 0 && (size_t) forced < n)
        r->values[forced] = r->score;
    if (forced >= 0)
        return;
    repeat(r);
    apply_bans(r);
}

/* ---- Top candidates -------------------------------------------------------------------------- */

/* Restores the min-heap property of `heap`, which may be violated only at `at`. */
static void sift(uint64_t *heap, size_t n, size_t at)
{
    for (size_t child; (child = 2 * at + 1) < n; at = child) {
        if (child + 1 < n && heap[child + 1] < heap[child])
            child++;
        if (heap[at] <= heap[child])
            return;
        uint64_t swap = heap[at];
        heap[at] = heap[child];
        heap[child] = swap;
    }
}

/* In descending order. */
static void sort_heap(uint64_t *heap, size_t n)
{
    for (size_t left = n; left > 1; left--) {
        uint64_t smallest = heap[0];
        heap[0] = heap[left - 1];
        heap[left - 1] = smallest;
        sift(heap, left - 1, 0);
    }
}

static void keep_best(const row *r, ft_beam_list *out)
{
    size_t n = r->memory->vocabulary, depth = (size_t) ft_beams_depth(r->beams);
    uint32_t first = (uint32_t) r->lane * (uint32_t) n;
    uint64_t *heap = out->candidate;
    float least =
        -INFINITY; /* candidates must exceed this; ties go to the smaller id, which comes first */
    for (size_t i = 0; i < n; i++) {
        if (!(r->values[i] > least))
            continue;
        heap[0] = ft_beam_candidate(r->values[i], first + (uint32_t) i);
        sift(heap, depth, 0);
        least = heap[0] == 0 ? -INFINITY : ft_beam_value(heap[0]);
    }
    sort_heap(heap, depth);
}

/* Uses the buffer of `values` for the probabilities, before the values are computed. */
static float log_total(const ft_rows_isa *isa, const row *r)
{
    uint32_t *mass = (uint32_t *) (void *) r->values;
    return ft_beam_log_total(
        isa->masses(mass, r->logits, r->largest, ft_choice_slope(1.0f), r->memory->vocabulary));
}

void ft_cpu_beam_row(const ft_rows_isa *isa, const ft_beam_memory *memory, const ft_beams *beams,
                     int32_t lane, const float *logits, float *values, ft_beam_list *out)
{
    row r = { .memory = memory, .beams = beams, .lane = lane, .logits = logits, .values = values };
    size_t n = memory->vocabulary;
    memset(out, 0, sizeof *out);
    out->failed = !isa->largest(logits, n, &r.largest) || r.largest == INFINITY;
    if (out->failed || r.largest == -INFINITY)
        return;
    r.score = ft_beam_score(beams, memory, lane);
    r.log_total = log_total(isa, &r);
    extend_all(&r);
    keep_best(&r, out);
}

/* ---- Merging ------------------------------------------------------------------------------- */

/* One search: the state of its beams while the groups of diverse beam search advance one by one. */
typedef struct group {
    const ft_beam_memory *memory;
    const ft_beams *beams;
    ft_beam_list *lists;
    int32_t parent[FT_MAX_BEAMS]; /* of each beam; itself if the beam is inactive */
    int32_t token[FT_MAX_BEAMS];  /* FT_NO_TOKEN: the beam is inactive */
} group;

/* Takes the best remaining candidate of the beams of one group. */
static uint64_t next_candidate(const group *g, int32_t head, int32_t taken[FT_MAX_BEAMS])
{
    int32_t best = head, depth = ft_beams_depth(g->beams);
    uint64_t most = 0;
    for (int32_t lane = head; lane < head + ft_beams_span(g->beams); lane++) {
        int32_t at = taken[lane];
        if (at < depth && g->lists[lane].candidate[at] > most) {
            most = g->lists[lane].candidate[at];
            best = lane;
        }
    }
    taken[best]++;
    return most;
}

/* Copies the tokens of hypotheses that have just finished. */
static void copy_finished(const group *g, int32_t head, const ft_beam_turn *turn)
{
    const ft_beams *beams = g->beams;
    const ft_beam_memory *m = g->memory;
    for (int32_t i = 0; i < turn->ended; i++) {
        size_t seat = (size_t) (beams->seat + head + turn->slot[i]);
        int32_t *to = m->finished + seat * m->context;
        for (int32_t at = beams->prompt; at < beams->known; at++)
            *to++ = ft_beam_token(beams, m, turn->ended_lane[i], at);
        *to = turn->ended_token[i];
    }
}

static bool prepare_lists(const group *g, int32_t head)
{
    bool failed = false;
    for (int32_t lane = head; lane < head + ft_beams_span(g->beams); lane++) {
        ft_beam_list *list = &g->lists[lane];
        if (ft_beam_score(g->beams, g->memory, lane) == -INFINITY)
            memset(list, 0, sizeof *list);
        failed |= list->failed;
        if (g->beams->diversity != 0.0f && head > 0)
            ft_beam_diversify(list->candidate, g->beams, g->token, head,
                              (uint32_t) g->memory->vocabulary);
    }
    return failed;
}

static void take_turn(group *g, int32_t head)
{
    const ft_beams *beams = g->beams;
    ft_beam *part = g->memory->beam + beams->seat + head;
    ft_beam_turn turn;
    int32_t taken[FT_MAX_BEAMS] = { 0 };
    bool failed = prepare_lists(g, head);
    ft_beam_turn_begin(&turn, part, beams);
    if (part->status != FT_BEAM_RUNS)
        return;
    while (!failed && ft_beam_turn_take(&turn, part, beams, (uint32_t) g->memory->vocabulary,
                                        next_candidate(g, head, taken)))
        ;
    ft_beam_turn_end(&turn, part, beams, failed);
    copy_finished(g, head, &turn);
    for (int32_t i = 0; i < turn.lives; i++) {
        g->parent[head + i] = turn.parent[i];
        g->token[head + i] = turn.token[i];
    }
}

/* Every beam inherits the cache indirection of its parent; its new tokens are in its own pages. */
static void move_origins(const group *g)
{
    const ft_beams *beams = g->beams;
    const ft_beam_memory *m = g->memory;
    int32_t *origin = m->origin + (size_t) beams->seat * m->context;
    for (int32_t at = 0; at < beams->known; at++) {
        int32_t before[FT_MAX_BEAMS];
        for (int32_t lane = 0; lane < beams->width; lane++)
            before[lane] = ft_beam_origin(beams, m, lane, at);
        for (int32_t lane = 0; lane < beams->width; lane++)
            origin[(size_t) lane * m->context + (size_t) at] = before[g->parent[lane]];
    }
}

/* As ft_cpu_sample_append(). */
static void keep_token(const group *g, int32_t lane)
{
    const ft_beam_memory *m = g->memory;
    size_t seat = (size_t) (g->beams->seat + lane);
    size_t at = seat * m->context + (size_t) g->beams->known;
    int32_t token = g->token[lane] == FT_NO_TOKEN ? 0 : g->token[lane];
    m->last[seat] = token;
    if ((size_t) g->beams->known < m->context) {
        m->history[at] = token;
        m->origin[at] = lane;
    }
}

void ft_cpu_beam_merge(const ft_beam_memory *memory, const ft_beams *beams, ft_beam_list *lists)
{
    group g = { .memory = memory, .beams = beams, .lists = lists };
    for (int32_t lane = 0; lane < beams->width; lane++) {
        g.parent[lane] = lane;
        g.token[lane] = FT_NO_TOKEN;
    }
    for (int32_t head = 0; head < beams->width; head += ft_beams_span(beams))
        take_turn(&g, head);
    move_origins(&g);
    for (int32_t lane = 0; lane < beams->width; lane++)
        keep_token(&g, lane);
}

/* ---- The operation ------------------------------------------------------------------------- */

/* Scratch: a row of values per thread, then the candidate lists of all slots. */
static size_t row_bytes(size_t vocabulary)
{
    return ft_round_up(vocabulary * sizeof(float), 64);
}

size_t ft_cpu_beam_scratch(const ft_plan *plan, const ft_op *op, const ft_limits *limits)
{
    size_t bytes = row_bytes((size_t) plan->value[op->in[0]].cols);
    return (size_t) limits->threads * bytes + limits->sequences * sizeof(ft_beam_list);
}

/* Everything of one step of beam search. */
typedef struct step {
    const ft_args *args;
    ft_beam_memory memory;
    ft_beam_list *lists; /* of all slots */
} step;

static void list_lane(const step *s, const ft_beams *beams, int32_t lane, float *values)
{
    size_t at = (size_t) ft_beam_row(beams, lane);
    if (ft_beam_score(beams, &s->memory, lane) > -INFINITY)
        ft_cpu_beam_row(s->args->rows, &s->memory, beams, lane, ft_row_f32(&s->args->in[0], at),
                        values, &s->lists[beams->seat + lane]);
}

/* Chunk i is beam i % FT_MAX_BEAMS of search i / FT_MAX_BEAMS. */
static void list_lanes(const void *job, int thread, size_t first, size_t end)
{
    const step *s = job;
    char *values = (char *) s->args->scratch + (size_t) thread * row_bytes(s->memory.vocabulary);
    for (size_t i = first; i < end; i++) {
        const ft_beams *beams = &s->args->batch->beams[i / FT_MAX_BEAMS];
        int32_t lane = (int32_t) (i % FT_MAX_BEAMS);
        if (beams->seat >= 0 && lane < beams->width)
            list_lane(s, beams, lane, (float *) (void *) values);
    }
}

static void merge_lanes(const void *job, int thread, size_t first, size_t end)
{
    const step *s = job;
    (void) thread;
    for (size_t i = first; i < end; i++) {
        const ft_beams *beams = &s->args->batch->beams[i];
        if (beams->seat >= 0)
            ft_cpu_beam_merge(&s->memory, beams, s->lists + beams->seat);
    }
}

/*
 * Cost in elements: per token an exponential and a logarithm; of a merge mostly the cache
 * indirection.
 */
enum { TOKEN_COST = 8, MERGE_COST = 8 };

void ft_cpu_beam(const ft_args *args)
{
    const ft_batch *batch = args->batch;
    size_t groups = batch->beams == NULL ? 0 : batch->groups, lanes = 0;
    step s = { .args = args,
               .memory = {
                   .last = args->state[FT_STATE_LAST].data,
                   .history = args->state[FT_STATE_HISTORY].data,
                   .origin = args->state[FT_STATE_ORIGIN].data,
                   .finished = args->state[FT_STATE_FINISHED].data,
                   .beam = args->state[FT_STATE_BEAMS].data,
                   .context = args->limits->context,
                   .vocabulary = args->in[0].cols,
               } };
    size_t rows = (size_t) args->limits->threads * row_bytes(s.memory.vocabulary);
    s.lists = (ft_beam_list *) (void *) ((char *) args->scratch + rows);
    for (size_t i = 0; i < groups; i++)
        lanes += (size_t) batch->beams[i].width;
    double listing = (double) TOKEN_COST * (double) lanes * (double) s.memory.vocabulary;
    double merging = (double) MERGE_COST * (double) lanes * (double) batch->context;
    ft_team_deal(ft_team_size(args->threads, lanes, listing), groups * FT_MAX_BEAMS, list_lanes,
                 &s);
    ft_team_deal(ft_team_size(args->threads, groups, merging), groups, merge_lanes, &s);
}
