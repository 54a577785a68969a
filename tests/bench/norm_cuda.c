/*
 * norm_cuda.c - how long a layer norm takes on the GPU, and what that is of its traffic.
 *
 *     norm_cuda [COLUMNS [ROWS]]
 *
 * Every case is a graph of launches; the figure is the median of 30 replays, for one launch.
 * "warm" repeats one set of operands; "cold" goes through sets that together exceed the second
 * cache.  Launches may overlap as those of a plan do, and do not in brackets.
 * "traffic" is the time that all operands need at 4.1 TB/s, what an H200 copies.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "tests/bench/operands.h"
#include "tests/bench/replay.h"

#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>

static const double bandwidth = 4.1e12, cold_bytes = 120e6;

/* What is read and written; FT_BF16: nothing. */
typedef struct form {
    ft_dtype x, residual, out, codes;
} form;

static const form forms[] = {
    { FT_F16, FT_F16, FT_F16, FT_I8 },   { FT_F16, FT_I8, FT_BF16, FT_I8 },
    { FT_F16, FT_F16, FT_F16, FT_BF16 }, { FT_F16, FT_BF16, FT_F16, FT_I8 },
    { FT_F32, FT_F32, FT_F32, FT_I8 },   { FT_F32, FT_I8, FT_BF16, FT_I8 },
};

static ft_weight weights[2];
static const ft_op op = { .kind = FT_OP_NORM, .attr.eps = 1e-12f };

static ft_cuda_args operands_of(const ft_cuda_chip *chip, const form *f, size_t rows, size_t cols)
{
    return (ft_cuda_args){ .chip = chip,
                           .op = &op,
                           .in = { operand_view(rows, cols, f->x),
                                   operand_view(rows, cols, f->residual) },
                           .out = operand_view(rows, cols, f->out),
                           .codes = operand_view(rows, cols, f->codes),
                           .weight = { &weights[0], &weights[1] } };
}

/* ---- Measuring ------------------------------------------------------------------------------ */

/* Sets of operands that take turns. */
typedef struct field {
    const ft_cuda_chip *chip;
    const ft_cuda_args *sets;
    size_t count;
} field;

static int launch_norm(cudaStream_t stream, size_t i, void *data)
{
    const field *f = data;
    ft_cuda_args args = f->sets[i % f->count];
    args.chip = f->chip;
    args.stream = stream;
    return ft_cuda_norm(&args);
}

/* Microseconds of one launch. */
static double measure(const ft_cuda_chip *chip, const ft_cuda_args *sets, size_t count)
{
    return replay(launch_norm, &(field){ chip, sets, count });
}

static const char *name_of(ft_dtype dtype)
{
    return dtype == FT_F32 ? "f32" : dtype == FT_F16 ? "f16" : dtype == FT_I8 ? "i8" : "-";
}

static void report(const ft_cuda_chip *chip, const form *f, size_t rows, size_t cols)
{
    double bytes = (double) (rows * cols *
                             (operand_bytes(f->x) + operand_bytes(f->residual) +
                              operand_bytes(f->out) + operand_bytes(f->codes)));
    size_t count = (size_t) (cold_bytes / bytes) + 2;
    count = count < LAUNCHES ? count : LAUNCHES;
    ft_cuda_args sets[LAUNCHES];
    ft_cuda_chip alone = *chip;
    alone.overlaps = false;
    for (size_t i = 0; i < count; i++)
        sets[i] = operands_of(chip, f, rows, cols);
    printf("%5zu x %4zu, %s + %-3s to %-3s and %-2s: traffic %6.2f us; warm %6.2f (%6.2f)", rows,
           cols, name_of(f->x), name_of(f->residual), name_of(f->out), name_of(f->codes),
           bytes / bandwidth * 1e6, measure(chip, sets, 1), measure(&alone, sets, 1));
    if ((double) count * bytes >= cold_bytes)
        printf(", cold %6.2f (%6.2f)", measure(chip, sets, count), measure(&alone, sets, count));
    printf("\n");
    fflush(stdout);
    for (size_t i = 0; i < count; i++)
        free_operands(&sets[i]);
}

int main(int argc, char **argv)
{
    static const size_t all_rows[] = { 128, 1024, 4096, 16384 };
    size_t cols = argc > 1 ? strtoul(argv[1], NULL, 10) : 768;
    size_t one = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;
    struct cudaDeviceProp properties;
    must(cudaGetDeviceProperties(&properties, 0), "no CUDA device");
    ft_cuda_chip chip = { .capability = properties.major * 10 + properties.minor,
                          .multiprocessors = properties.multiProcessorCount,
                          .overlaps = properties.major >= 9 };
    printf("%s, capability %d\n", properties.name, chip.capability);
    for (int i = 0; i < 2; i++)
        weights[i] = (ft_weight){
            .rows = 1, .cols = cols, .dtype = FT_F32, .data = random_operand(cols, FT_F32)
        };
    for (size_t f = 0; f < sizeof forms / sizeof forms[0]; f++)
        for (size_t r = 0; r < (one > 0 ? 1 : sizeof all_rows / sizeof all_rows[0]); r++)
            report(&chip, &forms[f], one > 0 ? one : all_rows[r], cols);
    return 0;
}
