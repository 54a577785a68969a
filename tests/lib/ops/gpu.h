/*
 * gpu.h - host and GPU memory for tests of single kernels; a failed call ends the test.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_TESTS_LIB_OPS_GPU_H
#define FT_TESTS_LIB_OPS_GPU_H

#include "tests/lib/ops/device.h"

/* The device; skips all tests where there is none. */
ft_cuda_device_props need_gpu(void);

/* Ends the test if a CUDA call or a launch failed; `what` names it. */
void must(int status, const char *what);

void *must_have(size_t bytes);     /* host memory; free() */
void *device_memory(size_t bytes); /* cudaFree() */
void to_device(void *to, const void *from, size_t bytes);
void from_device(void *to, const void *from, size_t bytes);

#endif
