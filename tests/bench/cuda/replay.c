/*
 * replay.c - see replay.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "tests/bench/cuda/replay.h"

#include "tests/lib/ops/device.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

enum { REPLAYS = 30, WARM_UPS = 3 };

void must(int status, const char *what)
{
    if (status == cudaSuccess)
        return;
    fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, what,
            cudaGetErrorString((cudaError_t) status));
    exit(1);
}

ft_cuda_device_props open_gpu(void)
{
    ft_cuda_device_props props;
    char text[GPU_TEXT];
    bool found = find_gpu(&props, text);
    fprintf(found ? stdout : stderr, "%s\n", text);
    if (!found)
        exit(1);
    return props;
}

void *device_copy(const void *data, size_t bytes)
{
    void *memory;
    must(cudaMalloc(&memory, bytes), "cudaMalloc");
    must(cudaMemcpy(memory, data, bytes, cudaMemcpyHostToDevice), "cudaMemcpy");
    return memory;
}

size_t argument(int argc, char **argv, int i, size_t otherwise)
{
    return argc > i ? strtoul(argv[i], NULL, 10) : otherwise;
}

static int by_size(const void *a, const void *b)
{
    float x = *(const float *) a, y = *(const float *) b;
    return x < y ? -1 : x > y;
}

double replay(launch_one launch, void *data)
{
    return replay_times(launch, data, REPLAYS);
}

double replay_times(launch_one launch, void *data, int replays)
{
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t run;
    cudaEvent_t begin, end;
    float times[REPLAYS];
    must(cudaStreamCreate(&stream), "cudaStreamCreate");
    must(cudaEventCreate(&begin), "cudaEventCreate");
    must(cudaEventCreate(&end), "cudaEventCreate");
    must(launch(stream, 0, data), "first launch");
    must(cudaStreamSynchronize(stream), "first launch");
    must(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), "capture");
    for (size_t i = 0; i < LAUNCHES; i++)
        must(launch(stream, i, data), "captured launch");
    must(cudaStreamEndCapture(stream, &graph), "capture");
    must(cudaGraphInstantiate(&run, graph, 0), "instantiate");
    for (int i = -WARM_UPS; i < replays; i++) {
        must(cudaEventRecord(begin, stream), "record");
        must(cudaGraphLaunch(run, stream), "launch");
        must(cudaEventRecord(end, stream), "record");
        must(cudaStreamSynchronize(stream), "replay");
        if (i >= 0)
            must(cudaEventElapsedTime(&times[i], begin, end), "elapsed");
    }
    qsort(times, (size_t) replays, sizeof *times, by_size);
    cudaGraphExecDestroy(run);
    cudaGraphDestroy(graph);
    cudaEventDestroy(begin);
    cudaEventDestroy(end);
    cudaStreamDestroy(stream);
    return (double) times[replays / 2] * 1e3 / LAUNCHES;
}
