/*
 * replay.c - times of launches that are replayed as CUDA graphs.
 *
 * The launches of a graph rotate over copies of the operands, so that operands come from DRAM and
 * not from L2.  The graphs run round-robin with pauses, because a GPU at its power limit throttles
 * whatever runs last.  The result is the median over all rounds, divided by the number of launches
 * of a graph.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cuda/tune/replay.h"

#include <stdlib.h>
#include <time.h>

enum { PAUSE_NS = 500000 };

int ft_cuda_clock_init(ft_cuda_clock *clock)
{
    *clock = (ft_cuda_clock){ .stream = NULL };
    int code = (int) cudaStreamCreateWithFlags(&clock->stream, cudaStreamNonBlocking);
    if (code == 0)
        code = (int) cudaEventCreate(&clock->begin);
    return code != 0 ? code : (int) cudaEventCreate(&clock->end);
}

void ft_cuda_clock_fini(ft_cuda_clock *clock)
{
    if (clock->begin != NULL)
        (void) cudaEventDestroy(clock->begin);
    if (clock->end != NULL)
        (void) cudaEventDestroy(clock->end);
    if (clock->stream != NULL)
        (void) cudaStreamDestroy(clock->stream);
}

/* ---- Graphs ------------------------------------------------------------------------------- */

static bool capture(ft_cuda_replay *out, const ft_cuda_clock *clock, const ft_cuda_launches *l)
{
    cudaGraph_t graph = NULL;
    int code = 0;
    for (int i = 0; i < l->count && code == 0; i++)
        code = l->launch(l->context, i % l->sets);
    int ended = (int) cudaStreamEndCapture(clock->stream, &graph);
    if (code == 0 && ended == 0)
        code = (int) cudaGraphInstantiate(&out->graph, graph, 0);
    if (graph != NULL)
        (void) cudaGraphDestroy(graph);
    return code == 0 && ended == 0;
}

bool ft_cuda_replay_capture(ft_cuda_replay *out, const ft_cuda_clock *clock,
                            const ft_cuda_launches *l)
{
    *out = (ft_cuda_replay){ .launches = l->count };
    if (l->launch(l->context, 0) == 0 && cudaStreamSynchronize(clock->stream) == cudaSuccess &&
        cudaStreamBeginCapture(clock->stream, cudaStreamCaptureModeThreadLocal) == cudaSuccess &&
        capture(out, clock, l))
        return true;
    (void) cudaGetLastError();
    out->graph = NULL;
    return false;
}

void ft_cuda_replay_fini(ft_cuda_replay *replay)
{
    if (replay->graph != NULL)
        (void) cudaGraphExecDestroy(replay->graph);
    replay->graph = NULL;
}

/* ---- Timing ------------------------------------------------------------------------------- */

/* One round: an untimed graph first, to warm up caches and clocks. */
static int time_once(const ft_cuda_clock *clock, const ft_cuda_replay *replay, float *ms)
{
    nanosleep(&(struct timespec){ .tv_nsec = PAUSE_NS }, NULL);
    int code = (int) cudaGraphLaunch(replay->graph, clock->stream);
    if (code == 0)
        code = (int) cudaEventRecord(clock->begin, clock->stream);
    if (code == 0)
        code = (int) cudaGraphLaunch(replay->graph, clock->stream);
    if (code == 0)
        code = (int) cudaEventRecord(clock->end, clock->stream);
    if (code == 0)
        code = (int) cudaStreamSynchronize(clock->stream);
    return code != 0 ? code : (int) cudaEventElapsedTime(ms, clock->begin, clock->end);
}

static int compare_floats(const void *a, const void *b)
{
    float x = *(const float *) a, y = *(const float *) b;
    return (x > y) - (x < y);
}

int ft_cuda_replay_run(const ft_cuda_clock *clock, ft_cuda_replay *const *replay, int count,
                       int rounds)
{
    int code = 0;
    for (int round = 0; round < rounds; round++)
        for (int i = 0; i < count && code == 0; i++)
            code = time_once(clock, replay[i], &replay[i]->ms[round]);
    for (int i = 0; i < count && code == 0; i++) {
        qsort(replay[i]->ms, (size_t) rounds, sizeof replay[i]->ms[0], compare_floats);
        replay[i]->median = replay[i]->ms[rounds / 2] / (float) replay[i]->launches;
    }
    return code;
}
