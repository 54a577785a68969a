/*
 * norm.c - time of a layer norm on the GPU, against its memory traffic.
 *
 *     tests/bench/cuda/norm [COLUMNS [ROWS]]
 *
 * Every case is a graph of launches; the time is the median of 30 replays, for one launch.  "warm"
 * repeats one set of operands; "cold" rotates through sets that together exceed the L2 cache.
 * Launches overlap as those of a plan do; times without overlap are in parentheses.  "traffic" is
 * the time to read and write all operands at 4.1 TB/s, the copy bandwidth of an H200.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "tests/bench/cuda/operands.h"

#include <stdio.h>

static const double bandwidth = 4.1e12, cold_bytes = 120e6;

/* The dtypes of operands and results; FT_BF16: none. */
typedef struct form {
    ft_dtype x, residual, out, quantized;
} form;

static const form forms[] = {
    { FT_F16, FT_F16, FT_F16, FT_I8 },   { FT_F16, FT_I8, FT_BF16, FT_I8 },
    { FT_F16, FT_F16, FT_F16, FT_BF16 }, { FT_F16, FT_BF16, FT_F16, FT_I8 },
    { FT_F32, FT_F32, FT_F32, FT_I8 },   { FT_F32, FT_I8, FT_BF16, FT_I8 },
};

static ft_weight weights[2];
static const ft_op op = { .kind = FT_OP_NORM, .attr.eps = 1e-12f };

static ft_cuda_args operands_of(const form *f, size_t rows, size_t cols)
{
    return (ft_cuda_args){ .op = &op,
                           .in = { operand_view(rows, cols, f->x),
                                   operand_view(rows, cols, f->residual) },
                           .out = operand_view(rows, cols, f->out),
                           .quantized = operand_view(rows, cols, f->quantized),
                           .weight = { &weights[0], &weights[1] } };
}

/* ---- Measuring ------------------------------------------------------------------------------ */

/* Microseconds of one launch, with overlap and without. */
static void print_times(const char *words, operand_sets *sets, size_t count)
{
    bool has_pdl = sets->props.has_pdl;
    double together = operand_sets_time(sets, count);
    sets->props.has_pdl = false;
    printf("%s %6.2f (%6.2f)", words, together, operand_sets_time(sets, count));
    sets->props.has_pdl = has_pdl;
}

static const char *name_of(ft_dtype dtype)
{
    return dtype == FT_F32 ? "f32" : dtype == FT_F16 ? "f16" : dtype == FT_I8 ? "i8" : "-";
}

static void report(const ft_cuda_device_props *props, const form *f, size_t rows, size_t cols)
{
    double bytes = (double) (rows * cols *
                             (operand_bytes(f->x) + operand_bytes(f->residual) +
                              operand_bytes(f->out) + operand_bytes(f->quantized)));
    operand_sets sets;
    operand_sets_init(&sets, props, ft_cuda_norm, bytes, cold_bytes);
    for (size_t i = 0; i < sets.count; i++)
        sets.set[i] = operands_of(f, rows, cols);
    printf("%5zu x %4zu, %s + %-3s to %-3s and %-2s: traffic %6.2f us;", rows, cols, name_of(f->x),
           name_of(f->residual), name_of(f->out), name_of(f->quantized), bytes / bandwidth * 1e6);
    print_times(" warm", &sets, 1);
    if (sets.is_cold)
        print_times(", cold", &sets, sets.count);
    printf("\n");
    fflush(stdout);
    operand_sets_fini(&sets);
}

int main(int argc, char **argv)
{
    static const size_t all_rows[] = { 128, 1024, 4096, 16384 };
    size_t cols = argument(argc, argv, 1, 768), one = argument(argc, argv, 2, 0);
    ft_cuda_device_props props = open_gpu();
    for (int i = 0; i < 2; i++)
        weights[i] = (ft_weight){
            .rows = 1, .cols = cols, .dtype = FT_F32, .data = random_operand(cols, FT_F32)
        };
    for (size_t f = 0; f < sizeof forms / sizeof forms[0]; f++)
        for (size_t r = 0; r < (one > 0 ? 1 : sizeof all_rows / sizeof all_rows[0]); r++)
            report(&props, &forms[f], one > 0 ? one : all_rows[r], cols);
    return 0;
}
