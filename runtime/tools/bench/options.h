/*
 * options.h - what the command line of ft-bench asks for.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_TOOLS_BENCH_OPTIONS_H
#define FT_RUNTIME_TOOLS_BENCH_OPTIONS_H

#include "runtime/tools/bench/bench.h"
#include "runtime/cli/options.h"
#include "runtime/tools/synthetic/synthetic.h"

enum { FT_BENCH_LIST = 32 };

/* Numbers that an option was given; none: it was not. */
typedef struct ft_bench_list {
    size_t item[FT_BENCH_LIST];
    size_t count;
} ft_bench_list;

typedef struct ft_bench_request {
    const char *input, *shape, *device; /* input or shape */
    ft_config config;                   /* of the shape */
    ft_synthetic_scheme scheme;
    int32_t group; /* of blocks */
    bool has_scheme, has_group, quiet;
    ft_kv kv;
    ft_bench_list sequences, lengths, decode, beams;
    ft_format format;
} ft_bench_request;

extern const ft_tool ft_bench_tool;

/* Fill in what was given, or end the program. */
void ft_bench_parse(ft_bench_request *request, ft_bench *bench, int argc, char **argv);

#endif
