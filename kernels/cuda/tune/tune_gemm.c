/*
 * tune_gemm.c - the fastest kernel and tile for a GEMM on this device, for several numbers of rows.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cuda/host/device.h"
#include "kernels/cuda/tune/families.h"
#include "kernels/cuda/tune/operand_sets.h"
#include "kernels/cuda/tune/replay.h"
#include "runtime/error.h"

#include <string.h>

enum { MAX_CANDIDATES = 64, ROUNDS = 5 };

/* A candidate that is slower by this factor in one round is not timed again. */
static const float hopeless = 1.25f;

/* Differences below this are noise, and the selected kernel stays. */
static const float worth = 0.97f;

typedef struct tuner {
    const ft_cuda_gemm_family *family;
    const ft_cuda_device_props *props;
    ft_gemm_problem problem;
    ft_cuda_operand_sets operands;
    ft_cuda_clock clock;
} tuner;

typedef struct candidate {
    const tuner *t;
    int index;
    ft_cuda_replay replay;
} candidate;

/* ---- Candidates --------------------------------------------------------------------------- */

static int launch(const void *context, int set)
{
    const candidate *c = context;
    return c->t->family->launch(c->index, c->t->props, c->t->clock.stream,
                                &c->t->operands.set[set]);
}

/* Graphs of large GEMMs are shorter: about 2 ms. */
static int launches_of(const ft_gemm_problem *p)
{
    double seconds = (double) p->m * (double) p->n * (double) p->k / 2e14;
    double launches = 2e-3 / seconds;
    return launches >= FT_CUDA_REPLAY_MAX_LAUNCHES ? FT_CUDA_REPLAY_MAX_LAUNCHES
           : launches < 4.0                        ? 4
                                                   : (int) launches;
}

static bool capture(const tuner *t, candidate *out, int index)
{
    *out = (candidate){ .t = t, .index = index };
    const ft_cuda_launches launches = { launch, out, t->operands.count, launches_of(&t->problem) };
    return ft_cuda_replay_capture(&out->replay, &t->clock, &launches);
}

/* The selected kernel first, then all others that fit; returns their number. */
static int init_candidates(const tuner *t, candidate *candidates)
{
    const ft_cuda_gemm_operands *first = &t->operands.set[0];
    char name[FT_GEMM_KERNEL_NAME];
    int selected = t->family->select(t->props, first), count = 0;
    if (selected < 0 || !capture(t, &candidates[count++], selected))
        return 0;
    for (int i = 0; count < MAX_CANDIDATES && t->family->describe(i, name); i++)
        if (i != selected && t->family->fits(i, t->props, first))
            count += capture(t, &candidates[count], i);
    return count;
}

/* ---- Times -------------------------------------------------------------------------------- */

static int run(const tuner *t, candidate *candidates, int count, int rounds)
{
    ft_cuda_replay *replays[MAX_CANDIDATES];
    for (int i = 0; i < count; i++)
        replays[i] = &candidates[i].replay;
    return ft_cuda_replay_run(&t->clock, replays, count, rounds);
}

/* Keep the first candidate and those that are not hopeless; returns their number. */
static int drop_slow(candidate *candidates, int count)
{
    int kept = 1;
    float best = candidates[0].replay.median;
    for (int i = 1; i < count; i++)
        best = candidates[i].replay.median < best ? candidates[i].replay.median : best;
    for (int i = 1; i < count; i++) {
        if (candidates[i].replay.median > hopeless * best) {
            ft_cuda_replay_fini(&candidates[i].replay);
            continue;
        }
        candidate keep = candidates[i];
        candidates[i].replay.graph = NULL;
        candidates[kept++] = keep;
    }
    return kept;
}

static void describe(const candidate *c, ft_gemm_candidate *out)
{
    (void) c->t->family->describe(c->index, out->name);
    out->seconds = 1e-3 * (double) c->replay.median;
}

/* For the rows of t->problem; no names: no kernel supports the GEMM. */
static int tune(const tuner *t, ft_gemm_tuning *out)
{
    candidate candidates[MAX_CANDIDATES] = { 0 };
    int count = init_candidates(t, candidates), best = 0;
    int code = count > 0 ? run(t, candidates, count, 1) : 0;
    if (count > 0 && code == 0) {
        count = drop_slow(candidates, count);
        code = run(t, candidates, count, ROUNDS);
    }
    for (int i = 1; i < count; i++)
        if (candidates[i].replay.median < candidates[best].replay.median &&
            candidates[i].replay.median < worth * candidates[0].replay.median)
            best = i;
    if (count > 0 && code == 0) {
        describe(&candidates[0], &out->used);
        describe(&candidates[best], &out->fastest);
    }
    for (int i = 0; i < count; i++)
        ft_cuda_replay_fini(&candidates[i].replay);
    return code;
}

/* ---- Rows --------------------------------------------------------------------------------- */

/* Operands for as many of the numbers of rows as fit into memory; *count becomes their number. */
static int init_operands(tuner *t, const size_t *rows, size_t *count)
{
    int code = (int) cudaErrorMemoryAllocation;
    for (; *count > 0 && code == (int) cudaErrorMemoryAllocation; --*count) {
        ft_cuda_operand_sets_fini(&t->operands);
        t->problem.m = rows[*count - 1];
        code = ft_cuda_operand_sets_init(&t->operands, t->family, t->props, &t->problem,
                                         t->clock.stream);
        if (code == 0)
            return 0;
        (void) cudaGetLastError();
    }
    return code;
}

static int tune_all(tuner *t, const size_t *rows, size_t count, ft_gemm_tuning *out)
{
    int code = (int) cudaSetDevice(t->props->index);
    if (code == 0)
        code = ft_cuda_clock_init(&t->clock);
    if (code == 0)
        code = init_operands(t, rows, &count);
    for (size_t i = 0; i < count && code == 0; i++) {
        t->problem.m = rows[i];
        code = tune(t, &out[i]);
    }
    ft_cuda_operand_sets_fini(&t->operands);
    ft_cuda_clock_fini(&t->clock);
    return code;
}

ft_status ft_cuda_tune_gemm(ft_device *device, const ft_gemm_problem *problem, const size_t *rows,
                            size_t count, ft_gemm_tuning *out, ft_error *err)
{
    ft_cuda_device_props props = device->props;
    props.num_tuned = 0;
    tuner t = { .family = ft_cuda_gemm_family_of(problem), .props = &props, .problem = *problem };
    memset(out, 0, count * sizeof *out);
    int code = t.family == NULL ? 0 : tune_all(&t, rows, count, out);
    return code == 0 ? FT_OK : ft_cuda_fail(err, &device->props, code, "tuning of a GEMM");
}
