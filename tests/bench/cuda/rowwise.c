/*
 * rowwise.c - time of a decoder's row operations on the GPU, between GEMMs and attention.
 *
 *     tests/bench/cuda/rowwise [WIDTH [INNER]]
 *
 * Every case is a graph of launches that may overlap, as those of a plan do; the time is the median
 * of 30 replays, for one launch.  "warm" repeats one set of operands; "cold" rotates through sets
 * that together exceed the L2 cache, with the bandwidth of all operands.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "tests/bench/cuda/operands.h"

#include <stdio.h>

static const double cold_bytes = 150e6;

/* The dtypes of operands and results; FT_BF16: none. */
typedef struct form {
    const char *words;
    ft_op_kind kind;
    int (*run)(const ft_cuda_args *);
    bool inner; /* rows have the width of the feed-forward network */
    ft_dtype a, b, second, out, quantized;
    bool dynamic;
} form;

#define NO FT_NO_OPERAND

static const form forms[] = {
    { "norm: f32 + f32 to f32, int8", FT_OP_NORM, ft_cuda_norm, false, FT_F32, FT_F32, FT_F32, NO,
      FT_I8, true },
    { "norm: f32 + f16 to f32, int8", FT_OP_NORM, ft_cuda_norm, false, FT_F32, FT_F16, FT_F32, NO,
      FT_I8, true },
    { "norm: f16 + f16 to f16, int8", FT_OP_NORM, ft_cuda_norm, false, FT_F16, FT_F16, FT_F16, NO,
      FT_I8, true },
    { "norm: f16 + f16 to f16, f16", FT_OP_NORM, ft_cuda_norm, false, FT_F16, FT_F16, FT_F16,
      FT_F16, NO, false },
    { "gate: f32, f32 to int8", FT_OP_GATE, ft_cuda_gate, true, FT_F32, FT_F32, NO, NO, FT_I8,
      true },
    { "gate: f16, f16 to int8", FT_OP_GATE, ft_cuda_gate, true, FT_F16, FT_F16, NO, NO, FT_I8,
      true },
    { "gate: f16, f16 to static int8", FT_OP_GATE, ft_cuda_gate, true, FT_F16, FT_F16, NO, NO,
      FT_I8, false },
    { "gate: f16, f16 to f16", FT_OP_GATE, ft_cuda_gate, true, FT_F16, FT_F16, NO, FT_F16, NO,
      false },
    { "quantize: f16 to int8", FT_OP_QUANTIZE, ft_cuda_quantize, false, FT_F16, NO, NO, NO, FT_I8,
      true },
    { "embed: f16 to f32", FT_OP_EMBED, ft_cuda_embed, false, FT_I32, NO, NO, FT_F32, NO, false },
    { "gather_rows: f32", FT_OP_GATHER_ROWS, ft_cuda_gather_rows, false, FT_F32, NO, NO, FT_F32, NO,
      false },
};

static ft_weight norm_weight, table;
static int32_t *zeros; /* row indices in device memory */

static ft_cuda_args operands_of(const form *f, const ft_op *op, const ft_cuda_batch *batch,
                                size_t rows, size_t cols)
{
    ft_cuda_args args = {
        .op = op,
        .batch = batch,
        .in = { operand_view(rows, f->kind == FT_OP_EMBED ? 1 : cols, f->a),
                operand_view(rows, cols, f->b) },
        .second = operand_view(rows, cols, f->second),
        .out = operand_view(rows, cols, f->out),
        .quantized = operand_view(rows, cols, f->quantized),
        .weight = { f->kind == FT_OP_EMBED ? &table : &norm_weight },
    };
    if (f->dynamic) {
        args.quantized.scale = 0.0f;
        args.quantized.scales = random_operand(rows, FT_F32);
    }
    return args;
}

/* The bytes read and written. */
static double traffic(const form *f, size_t rows, size_t cols)
{
    size_t element = operand_bytes(f->b) + operand_bytes(f->second) + operand_bytes(f->out) +
                     operand_bytes(f->quantized) +
                     operand_bytes(f->kind == FT_OP_EMBED ? FT_F16 : f->a);
    return (double) (rows * cols * element);
}

static void report(const ft_cuda_device_props *props, const form *f, size_t rows, size_t cols)
{
    ft_op op = { .kind = f->kind, .attr = { .eps = 1e-5f, .norm = FT_NORM_RMS } };
    ft_cuda_batch batch = { .selected = rows, .selected_rows = zeros };
    double bytes = traffic(f, rows, cols);
    operand_sets sets;
    op.attr.activation = FT_ACT_SILU;
    operand_sets_init(&sets, props, f->run, bytes, cold_bytes);
    for (size_t i = 0; i < sets.count; i++)
        sets.set[i] = operands_of(f, &op, &batch, rows, cols);
    printf("%5zu x %5zu %-32s warm %7.2f us", rows, cols, f->words, operand_sets_time(&sets, 1));
    if (sets.is_cold) {
        double us = operand_sets_time(&sets, sets.count);
        printf(", cold %7.2f us, %5.0f GB/s", us, bytes / us * 1e-3);
    }
    printf("\n");
    fflush(stdout);
    operand_sets_fini(&sets);
}

int main(int argc, char **argv)
{
    static const size_t all_rows[] = { 1, 8, 64, 256, 2048 };
    size_t cols = argument(argc, argv, 1, 4096), inner = argument(argc, argv, 2, 11008);
    ft_cuda_device_props props = open_gpu();
    norm_weight = (ft_weight){
        .rows = 1, .cols = cols, .dtype = FT_F32, .data = random_operand(cols, FT_F32)
    };
    table = (ft_weight){
        .rows = 1, .cols = cols, .dtype = FT_F16, .data = random_operand(cols, FT_F16)
    };
    zeros = random_operand(all_rows[sizeof all_rows / sizeof all_rows[0] - 1], FT_I32);
    for (size_t f = 0; f < sizeof forms / sizeof forms[0]; f++)
        for (size_t r = 0; r < sizeof all_rows / sizeof all_rows[0]; r++)
            report(&props, &forms[f], all_rows[r], forms[f].inner ? inner : cols);
    return 0;
}
