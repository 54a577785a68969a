/*
 * backend.h - what a device must be able to do to run plans: one table of functions.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_BACKEND_H
#define FT_KERNELS_BACKEND_H

#include "kernels/op.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ft_device ft_device; /* one open device of a backend */
typedef struct ft_exec ft_exec;     /* one plan made ready to run, with its memory */

typedef struct ft_limits {
    size_t tokens, sequences; /* of one run */
    int threads;              /* CPU only */
} ft_limits;

typedef struct ft_backend {
    const char *name; /* "cpu", "cuda" */

    /* Describe device `index`; false when there is none, with the reason in out->detail. */
    bool (*describe)(int index, ft_device_info *out);

    ft_status (*open)(ft_device **out, int index, ft_error *err);
    void (*close)(ft_device *device);

    /* Make one weight usable on the device.  On the CPU it is used where it lies. */
    ft_status (*upload)(ft_device *device, ft_weight *weight, ft_error *err);

    /* Allocate all memory that running `plan` within `limits` takes; the plan stays borrowed. */
    ft_status (*prepare)(ft_exec **out, ft_device *device, const ft_plan *plan,
                         const ft_limits *limits, ft_error *err);
    void (*release)(ft_exec *exec);

    /* Copy the first `rows` rows of a value to or from the device. */
    ft_status (*write)(ft_exec *exec, int value, const void *data, size_t rows, ft_error *err);
    ft_status (*read)(const ft_exec *exec, int value, void *data, size_t rows, ft_error *err);

    /* Run the whole plan.  `counts` (one per value, or NULL) receives what OBSERVE sees. */
    ft_status (*run)(ft_exec *exec, const ft_batch *batch, ft_counts *const *counts, ft_error *err);
} ft_backend;

extern const ft_backend ft_backend_cpu;
extern const ft_backend ft_backend_cuda;

#ifdef __cplusplus
}
#endif

#endif
