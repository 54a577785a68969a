/*
 * device.h - an open GPU: its properties, the model's weights on it, and the text of its errors.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_HOST_DEVICE_H
#define FT_KERNELS_CUDA_HOST_DEVICE_H

#include "kernels/backend.h"
#include "kernels/cuda/cuda.h"

#include <cuda_runtime_api.h>

/* One model's: sessions share it and only read. */
struct ft_device {
    ft_cuda_device_props props;
    char **weights; /* [uploads], an allocation each */
    int uploads;
};

/* ---- Errors (errors.c) -------------------------------------------------------------------- */

/*
 * Whether an error takes the whole context with it: no later call of this process on this device
 * succeeds, and all of them return it.
 */
bool ft_cuda_is_context_lost(int code);

/* Fill *err from a CUDA error; `what` names the step or the operation.  A lost context is said. */
ft_status ft_cuda_fail(ft_error *err, const ft_cuda_device_props *props, int code,
                       const char *what);

/* Device memory, or a refusal that says how many bytes were asked and how many are free. */
ft_status ft_cuda_alloc(void **out, const ft_cuda_device_props *props, size_t bytes,
                        const char *what, ft_error *err);

/* Why there is no device: what counting them returned, and what the driver supports (0: none). */
void ft_cuda_explain_no_device(int code, int driver, char *out, size_t capacity);

/* Why the device of this name, which is there, cannot be used. */
void ft_cuda_explain_unusable(const char *device, int code, char *out, size_t capacity);

/* ---- Weights and runs --------------------------------------------------------------------- */

/* ft_backend.upload: all weights, copied through pinned buffers. */
ft_status ft_cuda_upload(ft_device *device, const ft_plan *plan, ft_weight *weights, int count,
                         ft_error *err);

/* Whether the weights of each contiguous fusion group of a plan lie one behind the other. */
bool ft_cuda_has_contiguous_groups(const ft_plan *plan);

/* The functions of ft_backend that concern one plan made ready to run (exec.c). */
ft_status ft_cuda_prepare(ft_exec **out, ft_device *device, const ft_plan *plan,
                          const ft_limits *limits, ft_error *err);
void ft_cuda_release(ft_exec *exec);
ft_status ft_cuda_write(ft_exec *exec, int value, const void *data, size_t rows, ft_error *err);
ft_status ft_cuda_read(const ft_exec *exec, int value, void *data, float *scales, size_t rows,
                       ft_error *err);
ft_status ft_cuda_chosen(ft_exec *exec, unsigned back, int32_t *token, float *logprob, size_t rows,
                         ft_error *err);
ft_status ft_cuda_run(ft_exec *exec, const ft_batch *batch, ft_counts *const *counts,
                      ft_error *err);
ft_status ft_cuda_run_op(ft_exec *exec, const ft_batch *batch, int op, ft_error *err);
int ft_cuda_explain(ft_exec *exec, const ft_batch *batch, int op, char *text, size_t size);
ft_status ft_cuda_wait(ft_exec *exec, ft_error *err);
ft_status ft_cuda_collect(ft_exec *exec, ft_counts *const *counts, ft_error *err);

/* ft_backend.compare (benchmark_gemm.c). */
ft_status ft_cuda_compare(ft_device *device, const ft_gemm_problem *match,
                          ft_gemm_candidate out[FT_MAX_GEMM_CANDIDATES], int *count, ft_error *err);

#endif
