/*
 * options.h - the command line of ft-bench.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_TOOLS_BENCH_OPTIONS_H
#define FT_RUNTIME_TOOLS_BENCH_OPTIONS_H

#include "runtime/tools/bench/bench.h"
#include "runtime/cli/options.h"
#include "runtime/tools/synthetic/synthetic.h"

enum { FT_BENCH_MAX_VALUES = 32 };

/* The values of a list option; count 0: not given. */
typedef struct ft_bench_list {
    size_t item[FT_BENCH_MAX_VALUES];
    size_t count;
} ft_bench_list;

typedef struct ft_bench_rates {
    double item[FT_BENCH_MAX_VALUES];
    size_t count;
} ft_bench_rates;

/* Tokens of prompts and of answers. */
typedef struct ft_bench_lengths_list {
    size_t length[FT_BENCH_MAX_VALUES], new_tokens[FT_BENCH_MAX_VALUES];
    size_t count;
} ft_bench_lengths_list;

typedef struct ft_bench_request {
    const char *input, *shape; /* input or shape */
    ft_config config;          /* of the shape */
    ft_model_options model;
    ft_synthetic_scheme scheme;
    int32_t group; /* group size of group-wise quantization */
    bool has_scheme, has_group, quiet;
    ft_bench_list sequences, lengths, decode, beams;
    ft_bench_rates rates; /* of requests; count 0: no load */
    double duration;      /* of a load, in seconds */
    ft_bench_lengths_list throughput;     /* count 0: not given */
    size_t requests, cache_tokens, chunk; /* of its engine; 0: not given */
    ft_table_format format;
} ft_bench_request;

extern const ft_tool ft_bench_tool;

/* Parse the command line; exits on errors. */
void ft_bench_parse(ft_bench_request *request, ft_bench *bench, int argc, char **argv);

#endif
