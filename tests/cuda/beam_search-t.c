/*
 * beam_search-t.c - beam search steps on the GPU: the same beams, scores, hypotheses and cache
 * indirection as on the CPU, bit for bit, step after step, whatever else is in the batch.
 *
 *     tests/cuda/beam_search.t [ROUNDS]
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "tests/tap/tap.h"

#ifdef HAVE_CUDA

#include "kernels/cuda/sampling/beam_search.h"
#include "tests/kernels/beam_search.h"
#include "tests/kernels/sample.h"
#include "tests/lib/ops/gpu.h"

#include <cuda_runtime_api.h>
#include <stdlib.h>

enum { SLOTS = 150, GROUPS = 12, STEPS = 9 };

static ft_cuda_device_props props;
static rng chance = { 12 };

/* ---- Both devices --------------------------------------------------------------------------- */

/* A batch: its searches, their logits and their state, on both devices. */
typedef struct sides {
    size_t groups, words, rows;
    ft_beam_params beams[GROUPS];
    float *logits;
    ft_beam_state host, found;
    ft_cuda_beam_params device;
} sides;

static size_t context_bytes(void)
{
    return (size_t) SLOTS * TEXT * sizeof(int32_t);
}

static void sides_init(sides *s, size_t words)
{
    memset(s, 0, sizeof *s);
    s->words = words;
    s->logits = must_have(SLOTS * words * sizeof *s->logits);
    s->host = memory_new(&chance, SLOTS, words);
    s->found = memory_copy(&s->host, SLOTS);
    s->device = (ft_cuda_beam_params){
        .memory = { .last = device_memory(SLOTS * sizeof(int32_t)),
                    .history = device_memory(context_bytes()),
                    .cache_indirection = device_memory(context_bytes()),
                    .finished = device_memory(context_bytes()),
                    .beam = device_memory(SLOTS * sizeof(ft_beam)),
                    .context = TEXT,
                    .vocabulary = words },
        .logits = device_memory((SLOTS * words + 1) * sizeof(float)),
        .beams = device_memory(sizeof s->beams),
        .scratch = device_memory(ft_cuda_beam_scratch(SLOTS, words)),
        .num_slots = SLOTS,
    };
    must((int) cudaMemset(s->device.scratch, 0x5a, ft_cuda_beam_scratch(SLOTS, words)), "poison");
    ft_beam_state *m = &s->device.memory;
    to_device(m->last, s->host.last, SLOTS * sizeof(int32_t));
    to_device(m->history, s->host.history, context_bytes());
    to_device(m->cache_indirection, s->host.cache_indirection, context_bytes());
    to_device(m->finished, s->host.finished, context_bytes());
    to_device(m->beam, s->host.beam, SLOTS * sizeof(ft_beam));
}

static void sides_fini(sides *s)
{
    ft_beam_state *m = &s->device.memory;
    void *all[] = { m->last,
                    m->history,
                    m->cache_indirection,
                    m->finished,
                    m->beam,
                    (void *) (uintptr_t) s->device.logits,
                    (void *) (uintptr_t) s->device.beams,
                    s->device.scratch };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        must((int) cudaFree(all[i]), "cudaFree");
    memory_free(&s->host);
    memory_free(&s->found);
    free(s->logits);
}

static bool same(sides *s)
{
    const ft_beam_state *m = &s->device.memory;
    from_device(s->found.last, m->last, SLOTS * sizeof(int32_t));
    from_device(s->found.history, m->history, context_bytes());
    from_device(s->found.cache_indirection, m->cache_indirection, context_bytes());
    from_device(s->found.finished, m->finished, context_bytes());
    from_device(s->found.beam, m->beam, SLOTS * sizeof(ft_beam));
    return memory_equals(&s->host, &s->found, SLOTS);
}

/* ---- Batches -------------------------------------------------------------------------------- */

/* Searches of all beam widths and options, some slots apart; prompts in the history of beam 0. */
static void draw_batch(sides *s, int32_t widest)
{
    static const int32_t parts[] = { 1, 1, 1, 2, 4 };
    int32_t slot = (int32_t) rng_below(&chance, 3);
    s->groups = 0;
    s->device.widest = 0;
    while (s->groups < GROUPS) {
        ft_beam_params b = { .slot = slot,
                             .width = 1 + (int32_t) rng_below(&chance, (uint32_t) widest),
                             .num_beam_groups = parts[rng_below(&chance, 5)],
                             .prompt = 1 + (int32_t) rng_below(&chance, 290),
                             .min_new_tokens = (int32_t) rng_below(&chance, 4),
                             .early_stopping = (int32_t) rng_below(&chance, 3),
                             .no_repeat_ngram = (int32_t) rng_below(&chance, 4),
                             .repetition_penalty = rng_below(&chance, 2) == 0 ? 0.0f : 1.2f,
                             .n_eos = (int32_t) rng_below(&chance, 5),
                             .n_banned = (int32_t) rng_below(&chance, FT_MAX_BANNED_IDS + 1) };
        if (s->groups == 0 || b.width % b.num_beam_groups != 0)
            b.width = widest, b.num_beam_groups = 1;
        if (slot + b.width > SLOTS)
            break;
        b.diversity_penalty = b.num_beam_groups > 1 ? 0.5f : 0.0f;
        b.max_length = b.prompt + 2 + (int32_t) rng_below(&chance, STEPS);
        for (int32_t i = 0; i < b.n_eos; i++)
            b.eos[i] = (int32_t) rng_below(&chance, (uint32_t) s->words);
        for (int32_t i = 0; i < b.n_banned; i++)
            b.banned[i] = (int32_t) rng_below(&chance, (uint32_t) s->words);
        for (int32_t i = 0; i < b.prompt; i++)
            s->host.history[(size_t) slot * TEXT + (size_t) i] =
                (int32_t) rng_below(&chance, s->words < 9 ? (uint32_t) s->words : 9);
        if (rng_below(&chance, 8) == 0)
            b.slot = -1;
        slot += b.width + (int32_t) rng_below(&chance, 2);
        s->device.widest =
            b.width > (int32_t) s->device.widest ? (size_t) b.width : s->device.widest;
        s->beams[s->groups++] = b;
    }
    to_device(s->device.memory.history, s->host.history, context_bytes());
}

static void draw_logits(sides *s, ft_beam_params *b)
{
    size_t count = ft_beam_is_first_step(b) ? 1 : (size_t) b->width, n = s->words;
    b->row = (int32_t) s->rows;
    for (size_t i = 0; i < count; i++, s->rows++) {
        float *x = s->logits + s->rows * n;
        fill_logits(&chance, x, n, (shape) rng_below(&chance, SHAPES));
        for (int32_t j = 0; j < b->n_eos; j++) /* so that texts end */
            x[b->eos[j]] += rng_below(&chance, 3) == 0 ? 4.0f : 0.0f;
        if (rng_below(&chance, 200) == 0)
            x[rng_below(&chance, (uint32_t) n)] = NAN;
        if (rng_below(&chance, 200) == 0)
            x[rng_below(&chance, (uint32_t) n)] = INFINITY;
    }
}

/* A step of all searches, `step` steps after their prompts; their logits begin at `offset`. */
static void run_step(sides *s, int32_t step, size_t offset)
{
    s->rows = 0;
    for (size_t i = 0; i < s->groups; i++) {
        ft_beam_params *b = &s->beams[i];
        b->n_tokens = b->prompt + step;
        b->forced = step == 0 && i % 4 == 1 ? 3 % (int32_t) s->words : -1;
        ft_beam_set_length_divisors(b, (double) i * 0.3 - 0.5);
        draw_logits(s, b);
        if (b->slot >= 0)
            step_on_cpu(&s->host, b, s->logits + (size_t) b->row * s->words);
    }
    ft_cuda_beam_params args = s->device;
    float *logits = (float *) (uintptr_t) args.logits + offset;
    args.logits = logits;
    args.groups = s->groups;
    to_device(logits, s->logits, s->rows * s->words * sizeof *logits);
    to_device((void *) (uintptr_t) args.beams, s->beams, sizeof s->beams);
    must(ft_cuda_beam_step(&props, NULL, &args), "launch");
    must((int) cudaDeviceSynchronize(), "beam search step");
}

static void test_against_cpu(size_t words, int32_t widest, int rounds)
{
    int good = 0, steps = 0;
    for (int round = 0; round < rounds; round++) {
        sides s;
        sides_init(&s, words);
        draw_batch(&s, widest);
        for (int32_t step = 0; step < STEPS; step++, steps++) {
            run_step(&s, step, (size_t) round % 2); /* aligned, and not */
            bool equal = same(&s);
            good += equal;
            if (!equal) { /* from here on, the states differ */
                steps += STEPS - step;
                break;
            }
        }
        sides_fini(&s);
    }
    is_int(good, steps,
           "beam search over %zu tokens with up to %d beams has the CPU's state after each step",
           words, widest);
}

static void test_nothing(void)
{
    ft_cuda_beam_params none = { .memory = { .vocabulary = 100 } };
    is_int(ft_cuda_beam_step(&props, NULL, &none), 0,
           "ft_cuda_beam_step() does nothing for a batch without searches");
}

int main(int argc, char **argv)
{
    static const struct {
        size_t words;
        int32_t beam_width;
    } sizes[] = { { 2, 4 },     { 13, 8 },   { 64, 64 },    { 97, 32 },   { 1024, 5 },
                  { 2051, 64 }, { 4100, 1 }, { 30001, 16 }, { 32000, 64 } };
    int rounds = argc > 1 ? atoi(argv[1]) : 3;
    props = need_gpu();
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        test_against_cpu(sizes[i].words, sizes[i].beam_width, rounds);
    test_against_cpu(256206, 8, 1);
    test_nothing();
    return done_testing();
}

#else

int main(void)
{
    skip_all("this build has no CUDA backend");
}

#endif
