/*
 * ops.h - inside cuda-ops.t: one operation run by the CPU and by the device, and compared.
 *
 * The device must write the CPU's bits: codes, floats, and in half precision the CPU's floats
 * rounded.  It must write nothing else.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_TESTS_CUDA_OPS_OPS_H
#define FT_TESTS_CUDA_OPS_OPS_H

#include "kernels/cpu/base/cpu.h"
#include "kernels/cuda/fused_kernels.h"
#include "tests/lib/random.h"

/*
 * A matrix on both sides.  In half precision on the device, the CPU has the same values in F32,
 * unless keep_halves() was called.
 */
typedef struct matrix {
    ft_view host;
    ft_cuda_view device;
} matrix;

typedef void host_kernel(const ft_args *);
typedef int device_kernel(const ft_cuda_args *);

/* An operation with its operands and results on both sides. */
typedef struct both {
    ft_op op;
    host_kernel *host_run;
    device_kernel *device_run;
    ft_args host;
    ft_cuda_args device;
    ft_batch batch;
    ft_cuda_batch device_batch;
    ft_weight weight[FT_MAX_WEIGHTS], device_weight[FT_MAX_WEIGHTS];
    matrix in[FT_MAX_IN], out, codes, second, state[FT_MAX_STATES];
} both;

extern rng numbers;
extern ft_cuda_device_props props;

/* The device and its memory, or all tests are skipped. */
void open_device(void);

/* From here on the CPU has halves where the device has them. */
void keep_halves(bool keep);

/* Forget all memory that was handed out before. */
void begin_case(void);

/* Memory until the next case; the device's is poisoned, with guards around it. */
void *host_memory(size_t bytes);
void *device_memory(size_t bytes);

void *to_device(const void *data, size_t bytes);
void from_device(void *data, const void *memory, size_t bytes);

/* Normal floats in a dtype; codes of a scale, in I8 or held in F32. */
matrix random_matrix(size_t rows, size_t cols, ft_dtype dtype, float scale);
/* The same with these values, [rows * cols]. */
matrix matrix_of(const float *x, size_t rows, size_t cols, ft_dtype dtype, float scale);
/* Random int32, from `first` to `first` + `count` - 1. */
matrix random_numbers(size_t rows, size_t cols, int32_t first, uint32_t count);
/* Random codes that each row has a scale of. */
matrix random_dynamic(size_t rows, size_t cols, ft_dtype dtype);
/* Room for a result, and for one whose rows make their scales. */
matrix result_of(size_t rows, size_t cols, ft_dtype dtype, float scale);
matrix dynamic_result(size_t rows, size_t cols, ft_dtype dtype);

/* Elements and scales of a result that are not the CPU's, and guards around it that were written.
 */
size_t count_differences(const matrix *result);

void begin(both *b, ft_op_kind kind, host_kernel *host_run, device_kernel *device_run);
/* A float matrix, or a vector with rows = 1, of random values. */
void add_weight(both *b, int slot, size_t rows, size_t cols, ft_dtype dtype);

/* On one side; the device's is a launch, and returns its error. */
void run_host(both *b);
int run_device(both *b);

/* What the device's kernel gets. */
const ft_cuda_args *device_args(both *b);

/* On both; how many elements and guards are wrong. */
size_t run_both(both *b);

void test_maps(void);        /* ops-elementwise.c */
void test_rows(size_t step); /* ops-rows.c */
void test_counts(void);      /* ops-counts.c */
void test_linear(void);      /* ops-linear.c */
void test_images(void);      /* ops-images.c */

#endif
