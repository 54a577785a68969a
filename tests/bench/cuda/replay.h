/*
 * replay.h - time of a kernel launch, as one of many in a replayed CUDA graph.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_TESTS_BENCH_CUDA_REPLAY_H
#define FT_TESTS_BENCH_CUDA_REPLAY_H

#include "kernels/cuda/cuda.h"

#include <cuda_runtime_api.h>
#include <stddef.h>

/* Ends the program if a CUDA call has failed; `what` names it. */
void must(int status, const char *what);

/* Opens the device and prints its name; ends the program if there is none. */
ft_cuda_device_props open_gpu(void);

/* Device memory that holds these bytes. */
void *device_copy(const void *data, size_t bytes);

/* Argument i of the command line as a number. */
size_t argument(int argc, char **argv, int i, size_t otherwise);

enum { LAUNCHES = 24 }; /* of a graph */

/* Enqueues launch i of a graph on the stream; returns cudaError_t. */
typedef int (*launch_one)(cudaStream_t stream, size_t i, void *data);

/* Microseconds of one launch: the median of 30 replays of a graph. */
double replay(launch_one launch, void *data);
double replay_times(launch_one launch, void *data, int replays); /* with up to 30 replays */

#endif
