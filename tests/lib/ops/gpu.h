/*
 * gpu.h - memory of the host and of a GPU, for tests of single kernels: what fails ends the test.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_TESTS_LIB_OPS_GPU_H
#define FT_TESTS_LIB_OPS_GPU_H

#include "tests/lib/ops/device.h"

/* The device, or all tests are skipped. */
ft_cuda_device_props need_chip(void);

/* A call of the CUDA runtime, or of a launcher; `what` names it. */
void must(int status, const char *what);

void *must_have(size_t bytes);     /* of the host; free() */
void *device_memory(size_t bytes); /* cudaFree() */
void to_device(void *to, const void *from, size_t bytes);
void from_device(void *to, const void *from, size_t bytes);

#endif
