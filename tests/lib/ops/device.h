/*
 * device.h - the GPU on which tests and benchmarks of single kernels run.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_TESTS_LIB_OPS_DEVICE_H
#define FT_TESTS_LIB_OPS_DEVICE_H

#include "kernels/cuda/cuda.h"

enum { GPU_TEXT = 256 };

/*
 * The current CUDA device, as the backend describes it; has_imma stays false, because only cuBLASLt
 * can tell.  `text` receives its name, or the reason why there is none (the result is false).
 */
bool find_gpu(ft_cuda_device_props *props, char text[GPU_TEXT]);

#endif
