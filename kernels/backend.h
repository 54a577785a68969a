/*
 * backend.h - the interface of devices that run plans: one table of functions.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_BACKEND_H
#define FT_KERNELS_BACKEND_H

#include "kernels/gemm_problem.h"
#include "kernels/limits.h"
#include "kernels/weight_quantizer.h"
#include "runtime/mem.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ft_device ft_device; /* one open device of a backend */
typedef struct ft_exec ft_exec;     /* a plan prepared for execution, with its buffers */

/* Offset of the row scales of a dynamic value: bytes from its first element. */
static inline size_t ft_row_scales_offset(const ft_value *value, const ft_limits *limits)
{
    size_t rows = ft_limits_rows(limits, value->rows);
    return ft_round_up(rows * (size_t) value->cols * ft_dtype_size(value->dtype), 64);
}

/* Bytes of a copy of the first `rows` rows of a value: its elements, then its row scales. */
static inline size_t ft_saved_bytes(const ft_value *value, size_t rows)
{
    size_t bytes = ft_round_up(rows * (size_t) value->cols * ft_dtype_size(value->dtype), 64);
    return value->dynamic ? bytes + ft_round_up(rows * sizeof(float), 64) : bytes;
}

/* What the fastest kernels depend on, beside the version of FT; the driver's own version. */
typedef struct ft_device_identity {
    char name[96], driver[32];
} ft_device_identity;

typedef struct ft_backend {
    const char *name; /* "cpu", "cuda" */

    /* Float plans of a half-precision model store activations in its precision; else in F32. */
    bool f16_activations;

    /* run() returns before the forward pass has completed, and the next one may be started. */
    bool runs_async;

    /* Describe device `index`; false if there is none, with the reason in out->detail. */
    bool (*describe)(int index, ft_device_info *out);

    ft_status (*open)(ft_device **out, int index, ft_error *err);
    void (*close)(ft_device *device);

    /* Free memory of a device; NULL: it uses the host's. */
    ft_status (*free_memory)(ft_device *device, size_t *bytes, ft_error *err);

    /*
     * The weights will be those of this mapped file, which stays until close(); may start copies
     * before upload().  NULL: nothing to prepare.
     */
    void (*read_ahead)(ft_device *device, const void *file, size_t bytes);

    /*
     * Upload all weights of a model; their pointers may become device pointers.  The CPU uses them
     * in place.  The weights of a contiguous fusion group of `plan` become contiguous in memory;
     * plan NULL: no groups.
     */
    ft_status (*upload)(ft_device *device, const ft_plan *plan, ft_weight *weights, int count,
                        ft_error *err);

    /*
     * Refuse an operation that passes ft_op_check() but that this backend does not support; `what`
     * is the start of the error text.  NULL: all operations are supported.
     */
    ft_status (*supports_op)(const ft_plan *plan, const ft_op *op, const char *what, ft_error *err);

    /* Allocate all memory that `plan` needs within `limits`; the plan stays borrowed. */
    ft_status (*prepare)(ft_exec **out, ft_device *device, const ft_plan *plan,
                         const ft_limits *limits, ft_error *err);
    void (*release)(ft_exec *exec);

    /*
     * Copy the first `rows` rows of a value to or from the device.  The token inputs come with the
     * batch instead: ft_batch.input.  read() also copies the row
     * scales of a dynamic value, unless `scales` is NULL.
     */
    ft_status (*write)(ft_exec *exec, int value, const void *data, size_t rows, ft_error *err);
    ft_status (*read)(const ft_exec *exec, int value, void *data, float *scales, size_t rows,
                      ft_error *err);

    /*
     * Run a forward pass.  It may still be running on return; reading a value waits for it.
     * `counts` (one per value, or NULL) receives the counters of OBSERVE, at the latest in
     * collect().
     */
    ft_status (*run)(ft_exec *exec, const ft_batch *batch, ft_counts *const *counts, ft_error *err);

    /*
     * Run operations first .. end - 1 of a forward pass, on values that earlier operations or
     * restore() left in memory; neither of them splits a fusion group, nor does run_range() count.
     */
    ft_status (*run_range)(ft_exec *exec, const ft_batch *batch, int first, int end, ft_error *err);

    /*
     * Allocate device memory for saved values; copy the first `rows` rows of a value to it and
     * back, ft_saved_bytes() each.  A dynamic value is copied with its row scales.
     */
    ft_status (*alloc_saved)(ft_exec *exec, void **out, size_t bytes, ft_error *err);
    void (*free_saved)(void *saved);
    ft_status (*save)(const ft_exec *exec, int value, void *to, size_t rows, ft_error *err);
    ft_status (*restore)(ft_exec *exec, int value, const void *from, size_t rows, ft_error *err);

    /*
     * The first `rows` tokens that the last forward pass sampled, or with `back` 1 the one before
     * it, and their log-probabilities.  Waits for that forward pass only.  Backends without
     * runs_async keep the last one only.
     */
    ft_status (*chosen)(ft_exec *exec, unsigned back, int32_t *token, float *logprob, size_t rows,
                        ft_error *err);

    /* Run one operation again, on the values of the last forward pass: for timing. */
    ft_status (*run_op)(ft_exec *exec, const ft_batch *batch, int op, ft_error *err);

    /*
     * Describe the kernel that run() uses for the int8 GEMM of operation `op` with the rows of this
     * batch, and why a kernel that the user requested is not used.  Returns the number of
     * operations from `op` on that this GEMM covers; 0, with an empty text, if `op` is not an int8
     * GEMM.
     */
    int (*describe_gemm)(ft_exec *exec, const ft_batch *batch, int op, char *text, size_t size);

    /* Wait for all forward passes. */
    ft_status (*wait)(ft_exec *exec, ft_error *err);

    /* Add the counters that are still on the device to `counts`. */
    ft_status (*collect)(ft_exec *exec, ft_counts *const *counts, ft_error *err);

    /*
     * Time all kernels for a GEMM, and those of the vendor's library, alternately, with operands
     * that are in no cache.  NULL: there is one kernel.
     */
    ft_status (*benchmark_gemm)(ft_device *device, const ft_gemm_problem *match,
                                ft_gemm_candidate out[FT_MAX_GEMM_CANDIDATES], int *count,
                                ft_error *err);

    /*
     * Find the fastest kernels for a GEMM with each of `count` numbers of rows, the largest last,
     * of which problem->m is it.  Rows that need more memory than there is stay without names.  The
     * next two functions exist where this one does.
     */
    ft_status (*tune_gemm)(ft_device *device, const ft_gemm_problem *problem, const size_t *rows,
                           size_t count, ft_gemm_tuning *out, ft_error *err);
    ft_status (*identify)(const ft_device *device, ft_device_identity *out, ft_error *err);

    /* From now on, plans use these kernels; names that the device does not know have no effect. */
    ft_status (*use_tuned)(ft_device *device, const ft_tuned_gemm *tuned, size_t count,
                           ft_error *err);

    /*
     * Fill host memory with `count` normally distributed numbers, which depend on the other
     * arguments only: FT_ENOMEM or FT_EDEVICE.  device NULL: computed on the host, without a
     * device.  One call at a time for each device.  NULL: the backend has no generator.
     */
    ft_status (*fill_normal)(ft_device *device, float *out, size_t count, float mean,
                             float deviation, uint64_t seed, ft_error *err);

    /* Quantizes weights on the device.  NULL: calibration does so on the host. */
    const ft_weight_quantizer *quantizer;
} ft_backend;

extern const ft_backend ft_backend_cpu;
extern const ft_backend ft_backend_cuda;

#ifdef __cplusplus
}
#endif

#endif
