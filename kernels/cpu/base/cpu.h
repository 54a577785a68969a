/*
 * cpu.h - internal header of the CPU backend: prototypes of the operations, and helpers for rows.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CPU_BASE_CPU_H
#define FT_KERNELS_CPU_BASE_CPU_H

#include "kernels/backend.h"
#include "kernels/cpu/base/isa.h"
#include "kernels/cpu/base/rows.h"
#include "kernels/threads/team.h"
#include "kernels/op.h"
#include "kernels/view.h"

/*
 * The arguments of an operation. ft_op_check() has validated shapes and dtypes; kernels do not
 * check them again.
 */
typedef struct ft_args {
    ft_isa isa;
    const ft_row_kernels *rows;
    const ft_op *op;
    ft_view in[FT_MAX_IN], out, quantized, second;
    ft_view state[FT_MAX_STATES];            /* with their full capacity of rows */
    const ft_weight *weight[FT_MAX_WEIGHTS]; /* NULL: absent */
    const ft_batch *batch;
    const ft_limits *limits;
    ft_counts *counts; /* of the observed calibration point (of OBSERVE, or the operation's inner
                          one); NULL: no observation */
    void *scratch;
    size_t scratch_bytes;
    int threads;
} ft_args;

/* Every operation: void ft_cpu_norm(const ft_args *). */
#define X(NAME, name, ...) void ft_cpu_##name(const ft_args *args);
#include "kernels/ops.def"
#undef X

/*
 * What an operation needs for a run within `limits`: ft_cpu_linear_workspace() and so on where
 * ops.def says OWN, else rows of floats.
 */
typedef ft_workspace ft_cpu_workspace_fn(const ft_plan *plan, const ft_op *op,
                                         const ft_limits *limits);
#define FT_CPU_WORKSPACE_OWN(name) ft_cpu_##name##_workspace
#define FT_CPU_WORKSPACE_ROWS(name) ft_cpu_rows_workspace
#define X(NAME, name, READS, WRITES, STORAGE, WORK, RUNS, CPU, CUDA)                               \
    ft_cpu_workspace_fn FT_CPU_WORKSPACE_##CPU(name);
#include "kernels/ops.def"
#undef X

/* ATTENTION over float values, and how many threads an attention is worth. */
void ft_cpu_attention_f32(const ft_args *args);
size_t ft_cpu_attention_f32_scratch(size_t head_size, const ft_limits *limits);
int ft_cpu_attention_team(const ft_args *args, size_t chunks, int macs);

/* A work item of attention over packed sequences: queries of one head of one sequence. */
enum { FT_QUERY_BLOCK = 64 };

typedef struct ft_query_block {
    size_t first, length; /* rows of the sequence */
    size_t query, rows;   /* first query, relative to `first`; queries, at most FT_QUERY_BLOCK */
    size_t col, head_size;
} ft_query_block;

/*
 * The number of blocks of a batch, and block `index`. All sequences have as many blocks as the
 * longest, so that a block may be empty: it has no rows.
 */
size_t ft_cpu_query_blocks(const ft_args *args);
ft_query_block ft_cpu_query_block(const ft_args *args, size_t index);

/* Scratch of one thread: an equal, 64-byte aligned slice. */
static inline void *ft_thread_scratch(const ft_args *args, int thread)
{
    size_t slice = args->scratch_bytes / (size_t) args->threads / 64 * 64;
    return (char *) args->scratch + slice * (size_t) thread;
}

/* Parallel loop over independent rows; `task` receives `args` as its job. */
static inline void ft_parallel_rows(const ft_args *args, size_t rows, size_t cols, ft_task *task)
{
    int team = ft_team_size(args->threads, rows, (double) rows * (double) cols);
    ft_parallel_for(team, rows, task, args);
}

/*
 * ---- Rows of any dtype: operations off the hot path compute in float32 only -------------------
 */

enum { FT_ROW_BUFFERS = 2 };

/* A buffer of one row of floats; each thread has FT_ROW_BUFFERS of them. */
float *ft_row_buffer(const ft_args *args, int thread, int buffer);

/* The values of a row as floats, dequantized if necessary: in place, or converted into `copy`. */
const float *ft_row_as_float(const ft_args *args, const ft_view *view, size_t row, float *buffer);

/*
 * y = x + the dequantized row of `residual`, rounded once. y may alias x; `copy` must alias
 * neither.
 */
void ft_row_add_residual(const ft_args *args, float *y, const float *x, const ft_view *residual,
                         size_t row, float *buffer);

/*
 * Where the float result of a row is computed: in place if the value is F32, else in `copy`, which
 * ft_row_flush() then converts to the dtype of the value.
 */
float *ft_row_output(const ft_view *view, size_t row, float *buffer);
void ft_row_flush(const ft_args *args, const ft_view *view, size_t row, const float *x);

/* Converts a row of floats to the dtype of the value and stores it; x may be anywhere. */
void ft_row_store(const ft_args *args, const ft_view *view, size_t row, const float *x);

/* x multiplied by the smoothing of the operation, in `buffer`; x if the operation does not smooth.
 */
const float *ft_row_smooth(const ft_args *args, const float *x, float *buffer);

/* Quantizes a row, and stores its scale if quantization is dynamic. */
void ft_row_quantize(const ft_args *args, const ft_view *quantized, size_t row, const float *x);

/* Position of a batch row within its sequence, and the page table of that sequence. */
static inline size_t ft_row_position(const ft_batch *batch, size_t row)
{
    int32_t seq_id = batch->seq_id[row];
    return (size_t) (batch->n_past[seq_id] - batch->start[seq_id]) + row;
}

static inline const int32_t *ft_row_pages(const ft_batch *batch, size_t row)
{
    return batch->pages + (size_t) batch->seq_id[row] * batch->max_pages;
}

/* Page table of the cross-attention KV of that sequence. */
static inline const int32_t *ft_row_cross_kv_pages(const ft_batch *batch, size_t row)
{
    return batch->cross_kv_pages + (size_t) batch->seq_id[row] * batch->max_cross_kv_pages;
}

/* The scale of a quantized row; 0 if the value is not quantized. */
static inline float ft_row_scale(const ft_view *view, size_t row)
{
    return view->scales != NULL ? view->scales[row] : view->scale;
}

/* Address of a row. */
static inline float *ft_row_f32(const ft_view *view, size_t row)
{
    return (float *) view->data + row * view->cols;
}

static inline int8_t *ft_row_i8(const ft_view *view, size_t row)
{
    return (int8_t *) view->data + row * view->cols;
}

#endif
