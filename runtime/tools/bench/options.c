/*
 * options.c - the command line of ft-bench.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/tools/bench/options.h"

#include "kernels/beam_search.h"
#include "runtime/mem.h"

#include <getopt.h>
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
    KV,
    ROOFLINE,
    DEVICE,
    OPS,
    GEMM,
    JSON,
    CSV
};

static const ft_option options[] = {
    { 'i', "input", "FILE", "benchmark this artifact" },
    { SHAPE, "shape", "NAME",
      "benchmark random weights: bert-base, bert-large,\nminilm, vit-base, llama-2-7b, "
      "llama-3-8b, llama-1b,\nft-decoding or nllb-600m; equal in every run, but\nnot on CPU and "
      "GPU" },
    { SCHEME, "scheme", "NAME",
      "with --shape: float, f16, int8 (default), int8-residual\n"
      "(encoders), w8a8-dynamic (decoders), or group-wise:\n"
      "w4a16, w8a16 or w8a8-block" },
    { GROUP, "group", "N", "group size: 32 (default), 64, 128, or 0 for one group\nper row" },
    { 'b', "batch", "N,...", "batch sizes; default 1,8,32" },
    { 'l', "length", "N,...", "tokens of the longest sequence; default 128,\nencoder-decoders 32" },
    { FILL, "fill", "F", "mean length as a fraction of --length; default 1" },
    { DECODE, "decode", "N,...",
      "decoders: time decode steps with N tokens in the\n"
      "KV cache; encoder-decoders: new tokens per text,\n"
      "default 32" },
    { BEAMS, "beams", "K,...", "beam search with K beams; default 4\n(encoder-decoders)" },
    { TOP_P, "top-p", "P", "nucleus sampling in decode steps; default greedy" },
    { KV, "kv", "NAME", "dtype of the KV cache: auto (default), f16 or int8" },
    { ROOFLINE, "roofline", "T,F,C,R",
      "rates of the device from an earlier --json: int8\n"
      "TOPS, float TFLOPS, GB/s copied and read; default:\nmeasured" },
    { 'r', "runs", "N", "timed runs per case; default 30" },
    { OPS, "ops", NULL, "also time every operation of the plan" },
    { GEMM, "gemm", NULL, "time every GEMM shape with all its kernels" },
    { JSON, "json", NULL, "print one JSON object" },
    { CSV, "csv", NULL, "print CSV" },
    { 't', "threads", "N", "threads; default all processors" },
    { DEVICE, "device", "NAME", "cpu (default) or cuda[:N]" },
    { 'q', "quiet", NULL, "show no progress" },
    { 'v', "verbose", NULL, "print plan and int8 GEMM kernels to standard error" },
    { 0, NULL, NULL, NULL },
};

const ft_tool ft_bench_tool = {
    .name = "ft-bench",
    .usage = "-i FILE [OPTION]...\n--shape NAME [--scheme NAME] [OPTION]...",
    .about = "Measure the speed of a model, and compare it with the roofline of the device.",
    .option = options,
};

/* ---- Values ------------------------------------------------------------------------------- */

enum { MAX_VALUE = 1 << 20 };

static size_t parse_positive(const char *option, const char *text, size_t length, long max)
{
    char *end;
    long number = strtol(text, &end, 10);
    if (length == 0 || end != text + length || number < 1 || number > max)
        ft_tool_usage_error(&ft_bench_tool, "--%s: \"%.*s\" is not a number from 1 to %ld", option,
                            (int) length, text, max);
    return (size_t) number;
}

static ft_bench_list parse_list(const char *option, const char *text, long max)
{
    ft_bench_list out = { .count = 0 };
    for (const char *end;; text = end + 1) {
        end = text + strcspn(text, ",");
        if (out.count == FT_BENCH_MAX_VALUES)
            ft_tool_usage_error(&ft_bench_tool, "--%s: more than %d numbers", option,
                                FT_BENCH_MAX_VALUES);
        out.item[out.count++] = parse_positive(option, text, (size_t) (end - text), max);
        if (*end == '\0')
            return out;
    }
}

static double parse_fraction(const char *option, const char *text)
{
    char *end;
    double number = strtod(text, &end);
    if (end == text || *end != '\0' || !(number > 0.0 && number <= 1.0))
        ft_tool_usage_error(&ft_bench_tool, "--%s: \"%s\" is not a number above 0 and up to 1",
                            option, text);
    return number;
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

static void set_group(ft_bench_request *r, const char *text)
{
    static const char *const known[] = { "32", "64", "128", "0" };
    for (size_t i = 0; i < FT_COUNT(known); i++)
        if (strcmp(known[i], text) == 0) {
            r->group = atoi(text);
            r->has_group = true;
            return;
        }
    ft_tool_usage_error(&ft_bench_tool, "--group: \"%s\" is neither 32, 64, 128 nor 0", text);
}

static void set_view(ft_bench *bench, ft_bench_view view)
{
    if (bench->view != FT_BENCH_RUNS && bench->view != view)
        ft_tool_usage_error(&ft_bench_tool, "--ops and --gemm exclude each other");
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
        set_group(r, value);
        break;
    case 'b':
        r->sequences = parse_list("batch", value, MAX_VALUE);
        break;
    case 'l':
        r->lengths = parse_list("length", value, MAX_VALUE);
        break;
    case FILL:
        bench->fill = parse_fraction("fill", value);
        break;
    case DECODE:
        r->decode = parse_list("decode", value, MAX_VALUE);
        break;
    case BEAMS:
        r->beams = parse_list("beams", value, FT_MAX_BEAMS);
        break;
    case TOP_P:
        bench->top_p = parse_fraction("top-p", value);
        break;
    case KV:
        r->kv = ft_tool_kv_dtype(&ft_bench_tool, option, value);
        break;
    case ROOFLINE:
        bench->roofline = rates(value);
        break;
    case 'r':
        bench->runs = (int) parse_positive("runs", value, strlen(value), MAX_VALUE);
        break;
    case OPS:
        set_view(bench, FT_BENCH_OPS);
        break;
    case GEMM:
        set_view(bench, FT_BENCH_GEMM);
        break;
    case JSON:
        set_format(r, FT_TABLE_JSON);
        break;
    case CSV:
        set_format(r, FT_TABLE_CSV);
        break;
    case 't':
        bench->threads = ft_tool_threads(&ft_bench_tool, option, value);
        break;
    case DEVICE:
        r->device = ft_tool_device(&ft_bench_tool, option, value);
        break;
    case 'q':
        r->quiet = true;
        break;
    case 'v':
        bench->verbose = true;
        break;
    }
}

void ft_bench_parse(ft_bench_request *r, ft_bench *bench, int argc, char **argv)
{
    const char *value;
    for (int option; (option = ft_options_next(&ft_bench_tool, argc, argv, &value)) != -1;)
        set_option(r, bench, option, value);
    if (optind < argc)
        ft_tool_usage_error(&ft_bench_tool, "unexpected argument %s", argv[optind]);
    if ((r->input != NULL) + (r->shape != NULL) != 1)
        ft_tool_usage_error(&ft_bench_tool, "give either -i FILE or --shape NAME");
    if (r->input != NULL && r->has_scheme)
        ft_tool_usage_error(&ft_bench_tool,
                            "--scheme requires --shape: an artifact has its own scheme");
    if (r->has_group && (r->input != NULL || !ft_synthetic_scheme_is_groupwise(r->scheme)))
        ft_tool_usage_error(&ft_bench_tool, "--group requires --shape and a group-wise --scheme");
    if (r->quiet && bench->verbose)
        ft_tool_usage_error(&ft_bench_tool, "-q and -v exclude each other");
}
