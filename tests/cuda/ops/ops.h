/*
 * ops.h - shared by ops.t: runs one operation on the CPU and on the device and compares them.
 *
 * The device must write the CPU's bits: quantized values, floats, and in f16 and bf16 the CPU's
 * floats rounded.  It must write nothing else.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_TESTS_CUDA_OPS_OPS_H
#define FT_TESTS_CUDA_OPS_OPS_H

#include "kernels/cpu/base/cpu.h"
#include "kernels/cuda/fused_kernels.h"
#include "tests/lib/random.h"

/*
 * A matrix on host and device.  Where the device has f16 or bf16, the CPU has the same values in
 * f32, unless keep_halves() was called.
 */
typedef struct matrix {
    ft_view host, device;
} matrix;

typedef void host_kernel(const ft_args *);
typedef int device_kernel(const ft_cuda_args *);

/* An operation with its operands and results on host and device. */
typedef struct both {
    ft_op op;
    host_kernel *host_run;
    device_kernel *device_run;
    ft_args host;
    ft_cuda_args device;
    ft_batch batch;
    ft_cuda_batch device_batch;
    ft_weight weight[FT_MAX_WEIGHTS], device_weight[FT_MAX_WEIGHTS];
    matrix in[FT_MAX_IN], out, quantized, second, state[FT_MAX_STATES];
} both;

extern rng numbers;
extern ft_cuda_device_props props;

/* Opens the device and allocates memory; skips all tests where there is no device. */
void open_device(void);

/* From here on the CPU has f16 and bf16 matrices where the device has them. */
void keep_f16(bool keep);

/* Frees all memory of the previous case. */
void begin_case(void);

/* Memory that lasts until the next case; device memory is poisoned and has guards around it. */
void *host_memory(size_t bytes);
void *device_memory(size_t bytes);

void *to_device(const void *data, size_t bytes);
void from_device(void *data, const void *memory, size_t bytes);

/* Normal floats in a dtype; with a scale, quantized values in I8 or F32. */
matrix random_matrix(size_t rows, size_t cols, ft_dtype dtype, float scale);
/* A matrix of these values, [rows * cols]. */
matrix matrix_of(const float *x, size_t rows, size_t cols, ft_dtype dtype, float scale);
/* Random int32, from `first` to `first` + `count` - 1. */
matrix random_numbers(size_t rows, size_t cols, int32_t first, uint32_t count);
/* Random quantized values with a scale for each row. */
matrix random_dynamic(size_t rows, size_t cols, ft_dtype dtype);
/* A result matrix, and one with dynamic row scales. */
matrix result_of(size_t rows, size_t cols, ft_dtype dtype, float scale);
matrix dynamic_result(size_t rows, size_t cols, ft_dtype dtype);

/* The number of elements and scales that differ from the CPU's, and of overwritten guard bytes. */
size_t count_differences(const matrix *result);

void begin(both *b, ft_op_kind kind, host_kernel *host_run, device_kernel *device_run);
/* A float matrix, or a vector with rows = 1, of random values. */
void add_weight(both *b, int slot, size_t rows, size_t cols, ft_dtype dtype);

/* Run on one of them; run_device() launches the kernel and returns its error. */
void run_host(both *b);
int run_device(both *b);

/* The arguments of the device's kernel. */
const ft_cuda_args *device_args(both *b);

/* Runs both and returns the number of wrong elements and guard bytes. */
size_t run_both(both *b);

void test_maps(void);        /* ops-elementwise.c */
void test_rows(size_t step); /* ops-rows.c */
void test_counts(void);      /* ops-counts.c */
void test_linear(void);      /* ops-linear.c */
void test_images(void);      /* ops-images.c */

#endif
