/*
 * replay.h - times of launches that are replayed as CUDA graphs.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_TUNE_REPLAY_H
#define FT_KERNELS_CUDA_TUNE_REPLAY_H

#include <cuda_runtime_api.h>
#include <stdbool.h>

enum { FT_CUDA_REPLAY_MAX_LAUNCHES = 24, FT_CUDA_REPLAY_MAX_ROUNDS = 100 };

/* A stream and what measures time on it. */
typedef struct ft_cuda_clock {
    cudaStream_t stream;
    cudaEvent_t begin, end;
} ft_cuda_clock;

/* Returns a cudaError_t; fini also accepts a clock whose init failed, or zeros. */
int ft_cuda_clock_init(ft_cuda_clock *clock);
void ft_cuda_clock_fini(ft_cuda_clock *clock);

/* Launches on operand set 0, 1, ... of `sets`, in rotation.  Returns a cudaError_t. */
typedef struct ft_cuda_launches {
    int (*launch)(const void *context, int set);
    const void *context;
    int sets, count; /* launches in a graph */
} ft_cuda_launches;

typedef struct ft_cuda_replay {
    cudaGraphExec_t graph; /* NULL: none */
    int launches;
    float ms[FT_CUDA_REPLAY_MAX_ROUNDS], median; /* of one launch */
} ft_cuda_replay;

/* False: a launch failed, and there is no graph. */
bool ft_cuda_replay_capture(ft_cuda_replay *out, const ft_cuda_clock *clock,
                            const ft_cuda_launches *launches);
void ft_cuda_replay_fini(ft_cuda_replay *replay);

/* Runs all graphs round-robin and computes their median times.  Returns a cudaError_t. */
int ft_cuda_replay_run(const ft_cuda_clock *clock, ft_cuda_replay *const *replay, int count,
                       int rounds);

#endif
