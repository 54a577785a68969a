/*
 * replay.h - how long a kernel takes among others of its kind: a graph of launches, replayed.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_TESTS_BENCH_REPLAY_H
#define FT_TESTS_BENCH_REPLAY_H

#include <cuda_runtime_api.h>
#include <stddef.h>

/* End the program when a CUDA call has failed; `what` names it. */
void must(int status, const char *what);

enum { LAUNCHES = 24 }; /* of a graph */

/* Put launch i of a graph on the stream; returns cudaError_t. */
typedef int (*launch_one)(cudaStream_t stream, size_t i, void *data);

/* Microseconds of one launch: the median of 30 replays of a graph. */
double replay(launch_one launch, void *data);

#endif
