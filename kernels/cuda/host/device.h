/*
 * device.h - an open GPU: its properties, the weights in its memory, and its error texts.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_HOST_DEVICE_H
#define FT_KERNELS_CUDA_HOST_DEVICE_H

#include "kernels/backend.h"
#include "kernels/cuda/cuda.h"

#include <cuda_runtime_api.h>

typedef struct ft_cuda_generator ft_cuda_generator; /* fill_normal.c */

/* Belongs to one model; the sessions of the model share it read-only. */
struct ft_device {
    ft_cuda_device_props props;
    char **weights; /* [uploads]: one allocation for each upload */
    int uploads;
    ft_cuda_generator *generator; /* NULL: no random numbers yet */
    struct ft_cuda_h2d_opening *opening; /* of the first upload; NULL: none, or it has begun */
    struct ft_cuda_h2d_closing *closing; /* of the last upload; NULL: none */
};

/* ---- Errors (errors.c) -------------------------------------------------------------------- */

/*
 * Whether an error is sticky, which means that the context is lost: every later call of this
 * process on this device returns the same error.
 */
bool ft_cuda_is_context_lost(int code);

/* Fill *err from a CUDA error; `what` names the operation.  The text reports a lost context. */
ft_status ft_cuda_fail(ft_error *err, const ft_cuda_device_props *props, int code,
                       const char *what);

/* Allocate device memory; the error text has the requested and the free bytes. */
ft_status ft_cuda_alloc(void **out, const ft_cuda_device_props *props, size_t bytes,
                        const char *what, ft_error *err);

/*
 * Why there is no device; `code` is the result of cudaGetDeviceCount(), `driver` the CUDA version
 * of the driver (0: no driver).
 */
void ft_cuda_explain_no_device(int code, int driver, char *out, size_t capacity);

/* Why an existing device of this name cannot be used. */
void ft_cuda_explain_unusable(const char *device, int code, char *out, size_t capacity);

/* The text of a curandStatus_t, and an error with it; props NULL: of a host generator. */
const char *ft_cuda_explain_curand(int status);
ft_status ft_cuda_fail_curand(ft_error *err, const ft_cuda_device_props *props, int status,
                              const char *what);

/* ---- Random numbers (fill_normal.c) ------------------------------------------------------- */

/* ft_backend.fill_normal. */
ft_status ft_cuda_fill_normal(ft_device *device, float *out, size_t count, float mean,
                              float deviation, uint64_t seed, ft_error *err);
void ft_cuda_generator_free(ft_cuda_generator *generator);

/* ---- Weights and forward passes ----------------------------------------------------------- */

/* ft_backend.upload: copies all weights through pinned buffers. */
ft_status ft_cuda_upload(ft_device *device, const ft_plan *plan, ft_weight *weights, int count,
                         ft_error *err);

/* Whether the weights of each contiguous fusion group of a plan are adjacent in memory. */
bool ft_cuda_has_contiguous_groups(const ft_plan *plan);

/* The functions of ft_backend for one prepared plan (exec.c, run.c, launch_ops.c). */
ft_status ft_cuda_prepare(ft_exec **out, ft_device *device, const ft_plan *plan,
                          const ft_limits *limits, ft_error *err);
void ft_cuda_release(ft_exec *exec);
ft_status ft_cuda_write(ft_exec *exec, int value, const void *data, size_t rows, ft_error *err);
ft_status ft_cuda_read(const ft_exec *exec, int value, void *data, float *scales, size_t rows,
                       ft_error *err);
ft_status ft_cuda_poll_tokens(ft_exec *exec, unsigned back, int32_t *token, float *logprob,
                              size_t rows, ft_error *err);
ft_status ft_cuda_run(ft_exec *exec, const ft_batch *batch, ft_counts *const *counts,
                      ft_error *err);
ft_status ft_cuda_run_range(ft_exec *exec, const ft_batch *batch, int first, int end,
                            ft_error *err);
ft_status ft_cuda_run_op(ft_exec *exec, const ft_batch *batch, int op, ft_error *err);
int ft_cuda_describe_gemm(ft_exec *exec, const ft_batch *batch, int op, char *text, size_t size);
ft_status ft_cuda_wait(ft_exec *exec, ft_error *err);
ft_status ft_cuda_collect(ft_exec *exec, ft_counts *const *counts, ft_error *err);

/* saved_values.c */
ft_status ft_cuda_alloc_saved(ft_exec *exec, void **out, size_t bytes, ft_error *err);
void ft_cuda_free_saved(void *saved);
ft_status ft_cuda_save(const ft_exec *exec, int value, void *to, size_t rows, ft_error *err);
ft_status ft_cuda_restore(ft_exec *exec, int value, const void *from, size_t rows, ft_error *err);

/* ft_backend.benchmark_gemm (benchmark_gemm.c). */
ft_status ft_cuda_benchmark_gemm(ft_device *device, const ft_gemm_problem *problem,
                                 ft_gemm_candidate out[FT_MAX_GEMM_CANDIDATES], int *count,
                                 ft_error *err);

/* ft_backend.tune_gemm (tune_gemm.c), identify and use_tuned (use_tuned.c). */
ft_status ft_cuda_tune_gemm(ft_device *device, const ft_gemm_problem *problem, const size_t *rows,
                            size_t count, ft_gemm_tuning *out, ft_error *err);
ft_status ft_cuda_identify(const ft_device *device, ft_device_identity *out, ft_error *err);
ft_status ft_cuda_use_tuned(ft_device *device, const ft_tuned_gemm *tuned, size_t count,
                            ft_error *err);

/* ft_backend.quantizer (kernels/cuda/quantize/). */
extern const ft_weight_quantizer ft_cuda_weight_quantizer;

#endif
