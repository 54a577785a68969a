/*
 * cpu.h - inside the CPU backend: prototypes of its operations, and work for its threads.
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

/* A value while an operation runs; rows lie one after the other, cols elements apart. */
typedef struct ft_view {
    void *data; /* NULL: not there */
    size_t rows, cols;
    ft_dtype dtype;
    float scale;
    float *scales; /* of dynamic codes: [rows]; else NULL */
} ft_view;

/* What a kernel gets.  Shapes and dtypes have passed ft_op_check(): kernels do not check again. */
typedef struct ft_args {
    ft_isa isa;
    const ft_rows_isa *rows;
    const ft_op *op;
    ft_view in[FT_MAX_IN], out, codes, second;
    ft_view state[FT_MAX_STATES];            /* with all the rows that there are */
    const ft_weight *weight[FT_MAX_WEIGHTS]; /* NULL: not there */
    const ft_batch *batch;
    const ft_limits *limits;
    ft_counts *counts; /* of the observed point (OBSERVE, or the operation's inner one); NULL: not
                          observing */
    void *scratch;
    size_t scratch_bytes;
    int threads;
    bool steady; /* ft_plan */
} ft_args;

/* Every operation: void ft_cpu_norm(const ft_args *). */
#define X(NAME, name) void ft_cpu_##name(const ft_args *args);
#include "kernels/ops.def"
#undef X

/* Scratch bytes that an operation needs for a run within `limits`. */
size_t ft_cpu_linear_scratch(const ft_plan *plan, const ft_op *op, const ft_limits *limits);
size_t ft_cpu_attention_scratch(const ft_plan *plan, const ft_op *op, const ft_limits *limits);
bool ft_cpu_linear_needs_blas(const ft_plan *plan, const ft_op *op);
bool ft_cpu_attention_needs_blas(const ft_plan *plan, const ft_op *op);
size_t ft_cpu_patches_scratch(const ft_op *op, const ft_limits *limits);
size_t ft_cpu_store_scratch(const ft_plan *plan, const ft_op *op, const ft_limits *limits);
size_t ft_cpu_attend_scratch(const ft_plan *plan, const ft_op *op, const ft_limits *limits);
size_t ft_cpu_choose_op_scratch(const ft_plan *plan, const ft_op *op, const ft_limits *limits);
size_t ft_cpu_beam_scratch(const ft_plan *plan, const ft_op *op, const ft_limits *limits);
size_t ft_cpu_conv_scratch(const ft_plan *plan, const ft_op *op, const ft_limits *limits);
size_t ft_cpu_rows_scratch(const ft_plan *plan, const ft_op *op, const ft_limits *limits);

/* The forms that go through the float library; operations choose by dtype. */
void ft_cpu_linear_f32(const ft_args *args);
void ft_cpu_attention_f32(const ft_args *args);
int ft_cpu_attention_team(const ft_args *args, size_t pieces, int products);
size_t ft_cpu_linear_f32_scratch(const ft_weight *weight, const ft_limits *limits, size_t rows);
size_t ft_cpu_attention_f32_scratch(size_t dim, const ft_limits *limits);

/* Scratch of one thread: an equal, 64-byte aligned part. */
static inline void *ft_thread_scratch(const ft_args *args, int thread)
{
    size_t part = args->scratch_bytes / (size_t) args->threads / 64 * 64;
    return (char *) args->scratch + part * (size_t) thread;
}

/* An operation whose rows are alike: `task` gets the arguments as its job. */
static inline void ft_share_rows(const ft_args *args, size_t rows, size_t cols, ft_task *task)
{
    int team = ft_team_size(args->threads, rows, (double) rows * (double) cols);
    ft_team_share(team, rows, task, args);
}

/* ---- Rows of any dtype: operations that are not hot compute on floats, and know no other ---- */

enum { FT_ROW_COPIES = 2 };

/* Room for a row of floats, number `copy` of FT_ROW_COPIES that each thread has. */
float *ft_row_copy(const ft_args *args, int thread, int copy);

/* Real values of a row, or those that its codes stand for: where they lie, or made in `copy`. */
const float *ft_row_real(const ft_args *args, const ft_view *view, size_t row, float *copy);

/* y = x + what a row of `residual` stands for, rounded once; y may be x, `copy` neither. */
void ft_row_add(const ft_args *args, float *y, const float *x, const ft_view *residual, size_t row,
                float *copy);

/* Where a row of real results is to be computed: where it will lie, or `copy`; then round it. */
float *ft_row_begin(const ft_view *view, size_t row, float *copy);
void ft_row_end(const ft_args *args, const ft_view *view, size_t row, const float *x);

/* Write a row of real values that lies anywhere. */
void ft_row_write(const ft_args *args, const ft_view *view, size_t row, const float *x);

/* Write a row of codes, and its scale if they are dynamic. */
void ft_row_quantize(const ft_args *args, const ft_view *codes, size_t row, const float *x);

/* Where row `row` of a run stands in its sequence, and the list of that sequence's pages. */
static inline size_t ft_row_position(const ft_batch *batch, size_t row)
{
    int32_t owner = batch->owner[row];
    return (size_t) (batch->past[owner] - batch->start[owner]) + row;
}

static inline const int32_t *ft_row_pages(const ft_batch *batch, size_t row)
{
    return batch->pages + (size_t) batch->owner[row] * batch->most_pages;
}

/* The same of what its sequence's source left in the memory. */
static inline const int32_t *ft_row_memory_pages(const ft_batch *batch, size_t row)
{
    return batch->memory_pages + (size_t) batch->owner[row] * batch->most_memory_pages;
}

/* What the codes of a row are multiplied by; 0 where there are none. */
static inline float ft_row_scale(const ft_view *view, size_t row)
{
    return view->scales != NULL ? view->scales[row] : view->scale;
}

/* The address of row `row` of a value. */
static inline float *ft_row_f32(const ft_view *view, size_t row)
{
    return (float *) view->data + row * view->cols;
}

static inline int8_t *ft_row_i8(const ft_view *view, size_t row)
{
    return (int8_t *) view->data + row * view->cols;
}

#endif
