/*
 * options.c - the command line of ft-bench.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/tools/bench/options.h"

#include "kernels/beam_search.h"
#include "runtime/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SHAPE = FT_LONG_ONLY,
    SCHEME,
    GROUP,
    FILL,
    DECODE,
    BEAMS,
    TOP_P,
    RATE,
    DURATION,
    THROUGHPUT,
    REQUESTS,
    CACHE_TOKENS,
    CHUNK,
    ROOFLINE,
    OPS,
    GEMM,
    TUNE,
    CSV
};

static const ft_option options[] = {
    { 'i', "input", "FILE", "benchmark this artifact" },
    { SHAPE, "shape", "NAME",
      "benchmark random weights: bert-base, bert-large,\nminilm, vit-base, llama-2-7b, "
      "llama-3-8b, llama-1b,\nllama-3.2-1b, ft-decoding or nllb-600m; equal in every\nrun, but "
      "not on CPU and GPU" },
    { SCHEME, "scheme", "float|f16|bf16|int8|int8-residual|w8a8-dynamic|w4a16|w8a16|w8a8-block",
      "with --shape; default int8; int8-residual: encoders;\n"
      "the last three are group-wise" },
    { GROUP, "group", "32|64|128|0", "group size; default 32; 0: one group per row" },
    { 'b', "batch", "N,...", "batch sizes; default 1,8,32" },
    { 'l', "length", "N,...", "tokens of the longest sequence; default 128,\nencoder-decoders 32" },
    { FILL, "fill", "F", "mean length as a fraction of --length; default 1" },
    { DECODE, "decode", "N,...",
      "decoders: time decode steps with N tokens in the\n"
      "KV cache; encoder-decoders: new tokens per text,\n"
      "default 32" },
    { BEAMS, "beams", "K,...", "beam search with K beams; default 4\n(encoder-decoders)" },
    { TOP_P, "top-p", "P", "nucleus sampling in decode steps; default greedy" },
    { RATE, "request-rate", "R,...",
      "decoders: requests of --length and --decode tokens\n"
      "that arrive R times a second, at most --batch at\na time; default 64" },
    { DURATION, "duration", "S", "seconds of arrivals; default 30" },
    { THROUGHPUT, "throughput", "IN/OUT,...",
      "decoders: output tokens per second for requests of IN\n"
      "prompt tokens and OUT new ones, as many at a time as\n"
      "fit into the KV cache, or at most --batch" },
    { REQUESTS, "requests", "N", "of --throughput; default as many as run at a time" },
    { CACHE_TOKENS, "cache-tokens", "N",
      "of the KV cache of --throughput; default what fits into\nthe memory of the device" },
    { CHUNK, "chunk", "N", "tokens of a pass of --throughput; default 8192, CPU 512" },
    FT_KV_OPTION,
    FT_TUNING_OPTION,
    { ROOFLINE, "roofline", "T,F,C,R",
      "rates of the device from an earlier --json: int8\n"
      "TOPS, float TFLOPS, GB/s copied and read; default:\nmeasured" },
    { 'r', "runs", "N", "timed runs per case; default 30" },
    { OPS, "ops", NULL,
      "also time every operation of the plan; with --json, a\n"
      "float artifact in all schemes, for ft-calibrate --times" },
    { GEMM, "gemm", NULL, "time every GEMM shape with all its kernels" },
    { TUNE, "tune", NULL,
      "find the fastest kernels for the GEMMs on this GPU\nand write them to --tuning" },
    FT_JSON_OPTION,
    { CSV, "csv", NULL, "print CSV" },
    FT_THREADS_OPTION,
    FT_DEVICE_OPTION,
    { 'q', "quiet", NULL, "show no progress" },
    FT_VERBOSE_OPTION,
    { 0, NULL, NULL, NULL },
};

const ft_tool ft_bench_tool = {
    .name = "ft-bench",
    .usage = "-i FILE [OPTION]...\n--shape NAME [--scheme NAME] [OPTION]...",
    .about = "Measure the speed of a model, and compare it with the roofline of the device.",
    .option = options,
};

/* ---- Values ------------------------------------------------------------------------------- */

enum { MAX_VALUE = 1 << 20, MAX_RATE = 10000, MAX_SECONDS = 86400 };

static ft_bench_list parse_list(int option, const char *text, long high)
{
    ft_bench_list out;
    out.count = ft_tool_list(&ft_bench_tool, option, text, high, out.item, FT_BENCH_MAX_VALUES);
    return out;
}

static ft_bench_rates parse_rates(int option, const char *text)
{
    ft_bench_rates out;
    out.count = ft_tool_positive_list(&ft_bench_tool, option, text, MAX_RATE, out.item,
                                      FT_BENCH_MAX_VALUES);
    return out;
}

/* "128/2048,1000/1000" */
static ft_bench_lengths_list parse_lengths(const char *text)
{
    ft_bench_lengths_list out = { .count = 0 };
    for (const char *at = text; out.count < FT_BENCH_MAX_VALUES; at++) {
        unsigned length, new_tokens;
        int end = 0;
        if (sscanf(at, "%7u/%7u%n", &length, &new_tokens, &end) != 2 || length < 1 ||
            length > MAX_VALUE || new_tokens < 1 || new_tokens > MAX_VALUE)
            break;
        out.length[out.count] = length;
        out.new_tokens[out.count++] = new_tokens;
        at += end;
        if (*at == '\0')
            return out;
        if (*at != ',')
            break;
    }
    ft_tool_usage_error(&ft_bench_tool,
                        "--throughput: \"%s\" is not a list of up to %d IN/OUT, numbers of tokens "
                        "from 1 to %d",
                        text, FT_BENCH_MAX_VALUES, MAX_VALUE);
}

/* Four rates, each above 0, in the units that people read them in. */
static ft_roofline rates(const char *text)
{
    double rate[4];
    int last = 0;
    int found = sscanf(text, "%lf,%lf,%lf,%lf%n", &rate[0], &rate[1], &rate[2], &rate[3], &last);
    for (int i = 0; i < 4; i++)
        if (found != 4 || text[last] != '\0' || !(rate[i] > 0.0 && rate[i] <= 1e9))
            ft_tool_usage_error(&ft_bench_tool,
                                "--roofline: \"%s\" is not four numbers above 0 and up to 1e9",
                                text);
    return (ft_roofline){ .int8_ops = 1e12 * rate[0],
                          .float_flops = 1e12 * rate[1],
                          .copy = 1e9 * rate[2],
                          .read = 1e9 * rate[3] };
}

/* Add a word to a list of them. */
static void append_name(char *list, size_t bytes, const char *word)
{
    size_t used = strlen(list);
    snprintf(list + used, bytes - used, "%s%s", used > 0 ? ", " : "", word);
}

static void set_shape(ft_bench_request *r, const char *name)
{
    char known[512] = "";
    for (size_t i = 0; ft_shape_name(i) != NULL; i++)
        append_name(known, sizeof known, ft_shape_name(i));
    if (!ft_shape_parse(name, &r->config))
        ft_tool_usage_error(&ft_bench_tool, "--shape: \"%s\" is none of %s", name, known);
    r->shape = name;
}

static void set_scheme(ft_bench_request *r, const char *name)
{
    char known[512] = "";
    for (int i = 0; i < FT_NUM_SYNTHETIC_SCHEMES; i++)
        append_name(known, sizeof known, ft_synthetic_scheme_name((ft_synthetic_scheme) i));
    if (!ft_synthetic_scheme_parse(name, &r->scheme))
        ft_tool_usage_error(&ft_bench_tool, "--scheme: \"%s\" is none of %s", name, known);
    r->has_scheme = true;
}

static void set_view(ft_bench *bench, ft_bench_view view)
{
    if (bench->view != FT_BENCH_RUNS && bench->view != view)
        ft_tool_usage_error(&ft_bench_tool, "--ops, --gemm and --tune exclude each other");
    bench->view = view;
}

static void set_format(ft_bench_request *r, ft_table_format format)
{
    if (r->format != FT_TABLE_TEXT && r->format != format)
        ft_tool_usage_error(&ft_bench_tool, "--json and --csv exclude each other");
    r->format = format;
}

/* ---- Command line ------------------------------------------------------------------------- */

static void set_option(ft_bench_request *r, ft_bench *bench, int option, const char *value)
{
    switch (option) {
    case 'i':
        r->input = value;
        break;
    case SHAPE:
        set_shape(r, value);
        break;
    case SCHEME:
        set_scheme(r, value);
        break;
    case GROUP:
        r->group = ft_tool_group(&ft_bench_tool, option, value);
        r->has_group = true;
        break;
    case 'b':
        r->sequences = parse_list(option, value, MAX_VALUE);
        break;
    case 'l':
        r->lengths = parse_list(option, value, MAX_VALUE);
        break;
    case FILL:
        bench->fill = ft_tool_positive(&ft_bench_tool, option, value, 1.0);
        break;
    case DECODE:
        r->decode = parse_list(option, value, MAX_VALUE);
        break;
    case BEAMS:
        r->beams = parse_list(option, value, FT_MAX_BEAMS);
        break;
    case TOP_P:
        bench->top_p = ft_tool_positive(&ft_bench_tool, option, value, 1.0);
        break;
    case RATE:
        r->rates = parse_rates(option, value);
        break;
    case DURATION:
        r->duration = ft_tool_positive(&ft_bench_tool, option, value, MAX_SECONDS);
        break;
    case THROUGHPUT:
        r->throughput = parse_lengths(value);
        break;
    case REQUESTS:
        r->requests = (size_t) ft_tool_int_range(&ft_bench_tool, option, value, 1, MAX_VALUE);
        break;
    case CACHE_TOKENS:
        r->cache_tokens = (size_t) ft_tool_int_range(&ft_bench_tool, option, value, 1, INT32_MAX);
        break;
    case CHUNK:
        r->chunk = (size_t) ft_tool_int_range(&ft_bench_tool, option, value, 1, MAX_VALUE);
        break;
    case ROOFLINE:
        bench->roofline = rates(value);
        break;
    case 'r':
        bench->runs = ft_tool_int_range(&ft_bench_tool, option, value, 1, MAX_VALUE);
        break;
    case OPS:
        set_view(bench, FT_BENCH_OPS);
        break;
    case GEMM:
        set_view(bench, FT_BENCH_GEMM);
        break;
    case TUNE:
        set_view(bench, FT_BENCH_TUNE);
        break;
    case FT_OPTION_JSON:
        set_format(r, FT_TABLE_JSON);
        break;
    case CSV:
        set_format(r, FT_TABLE_CSV);
        break;
    case 't':
        bench->threads = ft_tool_threads(&ft_bench_tool, option, value);
        break;
    case 'q':
        r->quiet = true;
        break;
    case 'v':
        bench->verbose = true;
        break;
    default:
        ft_tool_model_option(&ft_bench_tool, &r->model, option, value);
    }
}

static void check_engine_options(const ft_bench_request *r, const ft_bench *bench)
{
    bool has_throughput = r->throughput.count > 0;
    if (r->duration > 0.0 && r->rates.count == 0)
        ft_tool_usage_error(&ft_bench_tool, "--duration requires --request-rate");
    if (r->rates.count > 0 && bench->view != FT_BENCH_RUNS)
        ft_tool_usage_error(&ft_bench_tool, "--request-rate excludes --ops, --gemm and --tune");
    if (has_throughput && (r->rates.count > 0 || r->lengths.count > 0 || r->decode.count > 0 ||
                           bench->view != FT_BENCH_RUNS))
        ft_tool_usage_error(&ft_bench_tool, "--throughput excludes --length, --decode, "
                                            "--request-rate, --ops, --gemm and --tune");
    if (!has_throughput && (r->requests > 0 || r->cache_tokens > 0 || r->chunk > 0))
        ft_tool_usage_error(&ft_bench_tool,
                            "--requests, --cache-tokens and --chunk require --throughput");
}

void ft_bench_parse(ft_bench_request *r, ft_bench *bench, int argc, char **argv)
{
    const char *value;
    for (int option; (option = ft_options_next(&ft_bench_tool, argc, argv, &value)) != -1;)
        set_option(r, bench, option, value);
    ft_tool_check_no_operands(&ft_bench_tool, argc, argv);
    if ((r->input != NULL) + (r->shape != NULL) != 1)
        ft_tool_usage_error(&ft_bench_tool, "give either -i FILE or --shape NAME");
    if (r->input != NULL && r->has_scheme)
        ft_tool_usage_error(&ft_bench_tool,
                            "--scheme requires --shape: an artifact has its own scheme");
    bool times_schemes =
        r->input != NULL && bench->view == FT_BENCH_OPS && r->format == FT_TABLE_JSON;
    bool is_groupwise = r->shape != NULL && ft_synthetic_scheme_is_groupwise(r->scheme);
    if (r->has_group && !times_schemes && !is_groupwise)
        ft_tool_usage_error(&ft_bench_tool,
                            "--group requires --shape and a group-wise --scheme, or -i FILE with "
                            "--ops and --json");
    check_engine_options(r, bench);
    ft_tool_check_verbosity(&ft_bench_tool, r->quiet, bench->verbose);
}
