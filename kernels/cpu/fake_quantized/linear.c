/*
 * linear.c - y = act(x . w^T + b) on fake-quantized values.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cpu/fake_quantized/fake_quantized.h"

#include "kernels/linalg.h"
#include "kernels/quant.h"
#include "runtime/mem.h"

#include <string.h>

enum { BLOCK_ROWS = 192, INT_COLS = 256 };

/* A block of rows: its sums, [rows, n]. */
typedef struct linear_block {
    const ft_args *args;
    size_t row, rows;
    double *sums;
} linear_block;

size_t ft_fake_quantized_linear_scratch(const ft_weight *weight, size_t rows)
{
    return ft_min_size(rows, BLOCK_ROWS) * weight->rows * sizeof(double);
}

static void compute_sums(const linear_block *b)
{
    const ft_args *args = b->args;
    const ft_weight *weight = args->weight[0];
    const ft_linalg linalg = { .isa = (int) args->isa, .threads = args->threads };
    memset(b->sums, 0, b->rows * weight->rows * sizeof *b->sums);
    ft_linalg_dgemm(
        &linalg,
        &(ft_dgemm){ .m = b->rows,
                     .n = weight->rows,
                     .k = weight->cols,
                     .a = { .f32 = ft_row_f32(&args->in[0], b->row),
                            .row_stride = args->in[0].cols,
                            .col_stride = 1 },
                     .b = { .f32 = weight->data, .row_stride = 1, .col_stride = weight->cols },
                     .c = b->sums,
                     .c_stride = weight->rows });
}

/* The epilogue of `n` columns of one row, from column `col` on. */
static void store_columns(const linear_block *b, size_t i, size_t col, size_t n)
{
    const ft_args *args = b->args;
    const ft_row_kernels *rows = args->rows;
    const ft_weight *weight = args->weight[0], *bias = args->weight[1];
    bool quantize_out = args->quantized.data != NULL;
    const ft_view *y = quantize_out ? &args->quantized : &args->out;
    size_t row = b->row + i, at = row * y->cols + col;
    void *to = (char *) y->data + at * ft_dtype_size(y->dtype);
    int32_t acc[INT_COLS];
    float out[INT_COLS];
    for (size_t j = 0; j < n; j++)
        acc[j] = (int32_t) b->sums[i * weight->rows + col + j];
    rows->dequantize_acc(out, acc, ft_row_scale(&args->in[0], row), weight->scale + col,
                         bias == NULL ? NULL : (const float *) bias->data + col, n);
    rows->activate(out, out, args->op->attr.activation, n);
    if (quantize_out)
        rows->quantize_f32(to, out, ft_inverse_scale(args->quantized.scale), n);
    else
        rows->from_float(to, out, y->dtype, n);
}

static void store_rows(const void *job, int thread, size_t first, size_t end)
{
    const linear_block *b = job;
    size_t n = b->args->weight[0]->rows;
    (void) thread;
    for (size_t i = first; i < end; i++)
        for (size_t col = 0; col < n; col += INT_COLS)
            store_columns(b, i, col, ft_min_size(INT_COLS, n - col));
}

void ft_fake_quantized_linear(const ft_args *args)
{
    size_t rows = args->in[0].rows, n = args->weight[0]->rows;
    for (size_t row = 0; row < rows; row += BLOCK_ROWS) {
        linear_block b = { args, row, ft_min_size(BLOCK_ROWS, rows - row), args->scratch };
        compute_sums(&b);
        ft_parallel_for(ft_team_size(args->threads, b.rows, (double) b.rows * (double) n), b.rows,
                        store_rows, &b);
    }
}
