/*
 * ft-bench.c - how fast a model, or a shape of models, runs on this machine.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/error.h"
#include "runtime/mem.h"
#include "runtime/tools/bench.h"
#include "runtime/tools/options.h"
#include "runtime/tools/progress.h"
#include "runtime/tools/synthetic.h"

#include <getopt.h>
#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

enum { SHAPE = FT_LONG_ONLY, SCHEME, FILL, DECODE, TOP_P, KV, DEVICE, OPS, GEMM, JSON, CSV };

static const ft_option options[] = {
    { 'i', "input", "FILE", "time this artifact" },
    { SHAPE, "shape", "NAME",
      "time random weights instead: bert-base, bert-large,\nminilm, llama-2-7b, llama-3-8b or "
      "llama-1b" },
    { SCHEME, "scheme", "NAME",
      "of a shape: float, f16, int8 (default), int8-residual\n"
      "(encoders), or w8a8-dynamic (decoders)" },
    { 'b', "batch", "N,...", "sequences of a run; default 1,8,32" },
    { 'l', "length", "N,...", "tokens of the longest sequence; default 128" },
    { FILL, "fill", "F", "mean length as a fraction of --length; default 1" },
    { DECODE, "decode", "N,...",
      "time steps of one token for each sequence, with N\n"
      "tokens of it in the cache (decoders)" },
    { TOP_P, "top-p", "P",
      "decoding draws from so much probability; default\n"
      "the most likely token" },
    { KV, "kv", "NAME", "what keys and values are cached in: auto (default),\nf16 or int8" },
    { 'r', "runs", "N", "timed runs of each case; default 30" },
    { OPS, "ops", NULL, "time every operation of the plan" },
    { GEMM, "gemm", NULL, "time every shape of product, and other ways for it" },
    { JSON, "json", NULL, "print one JSON object" },
    { CSV, "csv", NULL, "print CSV" },
    { 't', "threads", "N", "threads; default all processors" },
    { DEVICE, "device", "NAME", "cpu (default) or cuda[:N]" },
    { 'q', "quiet", NULL, "show no progress" },
    { 'v', "verbose", NULL, "print the plan to standard error" },
    { 0, NULL, NULL, NULL },
};

static const ft_tool tool = {
    .name = "ft-bench",
    .usage = "-i FILE [OPTION]...\n--shape NAME [--scheme NAME] [OPTION]...",
    .about = "Measure how fast a model runs, and how much of what the device can do that is.",
    .option = options,
};

enum { MAX_CASES = 32 };

typedef struct list {
    size_t item[MAX_CASES];
    size_t count;
} list;

typedef struct request {
    const char *input, *shape, *device;
    ft_config config;
    ft_scheme scheme;
    bool has_scheme, quiet;
    ft_kv kv;
    list sequences, lengths, contexts;
    ft_format format;
} request;

/* ---- Command line ------------------------------------------------------------------------- */

static size_t positive(const char *option, const char *text, size_t length)
{
    char *end;
    long number = strtol(text, &end, 10);
    if (length == 0 || end != text + length || number < 1 || number > 1 << 20)
        ft_tool_usage(&tool, "--%s: \"%.*s\" is not a number from 1 to %d", option, (int) length,
                      text, 1 << 20);
    return (size_t) number;
}

static list numbers(const char *option, const char *text)
{
    list out = { .count = 0 };
    for (const char *end;; text = end + 1) {
        end = text + strcspn(text, ",");
        if (out.count == MAX_CASES)
            ft_tool_usage(&tool, "--%s: more than %d numbers", option, MAX_CASES);
        out.item[out.count++] = positive(option, text, (size_t) (end - text));
        if (*end == '\0')
            return out;
    }
}

static double fraction(const char *option, const char *text)
{
    char *end;
    double number = strtod(text, &end);
    if (end == text || *end != '\0' || !(number > 0.0 && number <= 1.0))
        ft_tool_usage(&tool, "--%s: \"%s\" is not a number above 0 and up to 1", option, text);
    return number;
}

static void take_shape(request *r, const char *name)
{
    char known[128] = "";
    for (size_t i = 0; ft_shape_name(i) != NULL; i++)
        snprintf(known + strlen(known), sizeof known - strlen(known), "%s%s", i > 0 ? ", " : "",
                 ft_shape_name(i));
    if (!ft_shape_parse(name, &r->config))
        ft_tool_usage(&tool, "--shape: \"%s\" is none of %s", name, known);
    r->shape = name;
}

static void take_scheme(request *r, const char *name)
{
    char known[128] = "";
    for (int i = 0; i < FT_SCHEMES; i++)
        snprintf(known + strlen(known), sizeof known - strlen(known), "%s%s", i > 0 ? ", " : "",
                 ft_scheme_name((ft_scheme) i));
    if (!ft_scheme_parse(name, &r->scheme))
        ft_tool_usage(&tool, "--scheme: \"%s\" is none of %s", name, known);
    r->has_scheme = true;
}

static void take_view(ft_bench *bench, ft_bench_view view)
{
    if (bench->view != FT_BENCH_RUNS && bench->view != view)
        ft_tool_usage(&tool, "--ops and --gemm exclude each other");
    bench->view = view;
}

static void take_format(request *r, ft_format format)
{
    if (r->format != FT_FORMAT_TEXT && r->format != format)
        ft_tool_usage(&tool, "--json and --csv exclude each other");
    r->format = format;
}

static void take_option(request *r, ft_bench *bench, int option, const char *value)
{
    switch (option) {
    case 'i':
        r->input = value;
        break;
    case SHAPE:
        take_shape(r, value);
        break;
    case SCHEME:
        take_scheme(r, value);
        break;
    case 'b':
        r->sequences = numbers("batch", value);
        break;
    case 'l':
        r->lengths = numbers("length", value);
        break;
    case FILL:
        bench->fill = fraction("fill", value);
        break;
    case DECODE:
        r->contexts = numbers("decode", value);
        break;
    case TOP_P:
        bench->top_p = fraction("top-p", value);
        break;
    case KV:
        r->kv = ft_tool_kv(&tool, option, value);
        break;
    case 'r':
        bench->runs = (int) positive("runs", value, strlen(value));
        break;
    case OPS:
        take_view(bench, FT_BENCH_OPS);
        break;
    case GEMM:
        take_view(bench, FT_BENCH_GEMM);
        break;
    case JSON:
        take_format(r, FT_FORMAT_JSON);
        break;
    case CSV:
        take_format(r, FT_FORMAT_CSV);
        break;
    case 't':
        bench->threads = (int) positive("threads", value, strlen(value));
        break;
    case DEVICE:
        r->device = value;
        break;
    case 'q':
        r->quiet = true;
        break;
    case 'v':
        bench->verbose = true;
        break;
    }
}

static void parse(request *r, ft_bench *bench, int argc, char **argv)
{
    const char *value;
    for (int option; (option = ft_options_next(&tool, argc, argv, &value)) != -1;)
        take_option(r, bench, option, value);
    if (optind < argc)
        ft_tool_usage(&tool, "unexpected argument %s", argv[optind]);
    if ((r->input != NULL) + (r->shape != NULL) != 1)
        ft_tool_usage(&tool, "give either -i FILE or --shape NAME");
    if (r->input != NULL && r->has_scheme)
        ft_tool_usage(&tool, "--scheme goes with --shape: an artifact has its own");
    if (r->quiet && bench->verbose)
        ft_tool_usage(&tool, "-q and -v at once");
    if (bench->threads > FT_MAX_THREADS)
        ft_tool_usage(&tool, "--threads: at most %d", FT_MAX_THREADS);
}

/* ---- Work --------------------------------------------------------------------------------- */

typedef struct job {
    request *request;
    ft_bench *bench;
    ft_synthetic made;
    ft_model *model;
    ft_device_info device;
} job;

/* A shape has as many positions as the longest sequence wants. */
static void fit_positions(request *r)
{
    for (size_t i = 0; i < r->lengths.count; i++)
        if ((size_t) r->config.positions < r->lengths.item[i])
            r->config.positions = (int32_t) r->lengths.item[i];
    for (size_t i = 0; i < r->contexts.count; i++)
        if ((size_t) r->config.positions <= r->contexts.item[i])
            r->config.positions = (int32_t) r->contexts.item[i] + 1;
}

static ft_status open_model(job *j, ft_error *err)
{
    request *r = j->request;
    const ft_model_options how = { .device = r->device, .kv = r->kv };
    if (r->input != NULL)
        return ft_model_open(&j->model, r->input, &how, err);
    fit_positions(r);
    /* A GPU gets a copy of its own of every layer: they may be alike where they come from. */
    bool alike = strncmp(r->device, "cpu", 3) != 0;
    FT_TRY(ft_synthetic_make(&j->made, &r->config, r->scheme, alike, j->bench->threads, err));
    return ft_synthetic_open(&j->model, &j->made, r->shape, &how, err);
}

/* The entry of the open device: "cuda" is "cuda:0". */
static ft_device_info describe_device(const char *name)
{
    ft_device_info info[64];
    size_t count = ft_devices(info, FT_COUNT(info));
    for (size_t i = 0; i < count && i < FT_COUNT(info); i++)
        if (strncmp(info[i].name, name, strlen(name)) == 0)
            return info[i];
    return (ft_device_info){ "", "", false };
}

static const char *scheme_of(const job *j)
{
    if (j->request->shape != NULL)
        return ft_scheme_name(j->request->scheme);
    if (j->model->purpose.mode != FT_MODE_INT8)
        return ft_scheme_name(FT_SCHEME_FLOAT);
    if (j->model->purpose.dynamic)
        return ft_scheme_name(FT_SCHEME_DYNAMIC);
    return ft_scheme_name(j->model->purpose.int8_residual ? FT_SCHEME_INT8_RESIDUAL
                                                          : FT_SCHEME_INT8);
}

static ft_status prepare(job *j, ft_error *err)
{
    ft_bench *bench = j->bench;
    const char *device = j->request->device;
    FT_TRY(open_model(j, err));
    if (bench->verbose)
        FT_TRY(ft_model_write_plan(j->model, stderr, err));
    j->device = describe_device(device);
    bench->model = j->model;
    bench->name = j->request->shape != NULL ? j->request->shape : j->request->input;
    bench->scheme = scheme_of(j);
    bench->device = j->device.name;
    return ft_ceilings_measure(&bench->ceilings, &j->model->plan, device, bench->threads, err);
}

static ft_status run_cases(job *j, ft_error *err)
{
    const request *r = j->request;
    bool decodes = r->contexts.count > 0;
    const list *sequences = &r->sequences, *lengths = decodes ? &r->contexts : &r->lengths;
    size_t total = sequences->count * lengths->count;
    bool shares_terminal = j->request->format != FT_FORMAT_JSON;
    ft_progress_line line;
    ft_progress_begin(&line, "timing", "cases", j->request->quiet || shares_terminal);
    ft_status status = FT_OK;
    for (size_t i = 0; i < total && status == FT_OK; i++) {
        size_t count = sequences->item[i % sequences->count];
        size_t length = lengths->item[i / sequences->count];
        status = decodes ? ft_bench_decode(j->bench, count, length, err)
                         : ft_bench_case(j->bench, count, length, err);
        ft_progress_step(&line, i + 1, total);
    }
    ft_progress_end(&line);
    return status;
}

/* ---- Reporting ---------------------------------------------------------------------------- */

static bool on_cpu(const job *j)
{
    return strcmp(j->model->backend->name, "cpu") == 0;
}

static void print_heading(const job *j)
{
    const ft_bench *b = j->bench;
    printf("%s, %s, %.1f MB of weights\n%s: %s", b->name, b->scheme,
           (double) ft_model_get_info(j->model).weight_bytes / 1e6, b->device, j->device.detail);
    if (on_cpu(j))
        printf("; %d thread%s", b->threads, b->threads > 1 ? "s" : "");
    printf("\nceilings: ");
    if (b->ceilings.int8 > 0.0)
        printf("%.3f TOPS of int8 products, ", 1e-12 * b->ceilings.int8);
    if (b->ceilings.real > 0.0)
        printf("%.3f TFLOPS of float products, ", 1e-12 * b->ceilings.real);
    printf("%.1f GB/s copied, %.1f GB/s read\n\n", 1e-9 * b->ceilings.copy,
           1e-9 * b->ceilings.read);
    fflush(stdout);
}

static json_t *json_of_model(const job *j)
{
    const ft_config *c = &j->model->config;
    return json_pack("{ss, ss, si, si, si, si, sI}", "name", j->bench->name, "scheme",
                     j->bench->scheme, "layers", c->layers, "hidden", c->hidden, "heads", c->heads,
                     "ffn", c->ffn, "weight_bytes",
                     (json_int_t) ft_model_get_info(j->model).weight_bytes);
}

static json_t *json_of_ceilings(const ft_ceilings *c)
{
    json_t *object = json_object();
    if (c->int8 > 0.0)
        json_object_set_new(object, "int8_tops", json_real(1e-12 * c->int8));
    if (c->real > 0.0)
        json_object_set_new(object, "float_tflops", json_real(1e-12 * c->real));
    json_object_set_new(object, "copy_gb_per_s", json_real(1e-9 * c->copy));
    json_object_set_new(object, "read_gb_per_s", json_real(1e-9 * c->read));
    return object;
}

static void add_table(json_t *root, const char *name, const ft_table *table)
{
    if (json_array_size(table->rows) > 0)
        json_object_set(root, name, table->rows);
}

static void print_json(const job *j)
{
    ft_bench *b = j->bench;
    json_t *root = json_pack("{ss, ss, so, s{ss, ss}, si, sf, so}", "tool", tool.name, "version",
                             ft_version(), "model", json_of_model(j), "device", "name", b->device,
                             "detail", j->device.detail, "runs", b->runs, "fill", b->fill,
                             "ceilings", json_of_ceilings(&b->ceilings));
    if (on_cpu(j))
        json_object_set_new(root, "threads", json_integer(b->threads));
    add_table(root, "cases", &b->cases);
    add_table(root, "ops", &b->ops);
    add_table(root, "kinds", &b->kinds);
    add_table(root, "products", &b->products);
    json_dumpf(root, stdout, JSON_INDENT(1) | JSON_REAL_PRECISION(9));
    putchar('\n');
    json_decref(root);
}

/* ------------------------------------------------------------------------------------------- */

static ft_status run(job *j, ft_error *err)
{
    FT_TRY(prepare(j, err));
    if (j->request->format == FT_FORMAT_TEXT)
        print_heading(j);
    FT_TRY(run_cases(j, err));
    if (j->request->format == FT_FORMAT_JSON)
        print_json(j);
    return FT_OK;
}

int main(int argc, char **argv)
{
    request r = { .device = "cpu",
                  .scheme = FT_SCHEME_INT8,
                  .sequences = { { 1, 8, 32 }, 3 },
                  .lengths = { { 128 }, 1 } };
    ft_bench bench = { .threads = omp_get_num_procs(), .runs = 30, .fill = 1.0 };
    parse(&r, &bench, argc, argv);
    ft_table *const tables[] = { &bench.cases, &bench.ops, &bench.kinds, &bench.products };
    for (size_t i = 0; i < FT_COUNT(tables); i++)
        ft_table_init(tables[i], r.format);
    job j = { .request = &r, .bench = &bench };
    ft_error err;
    int status = run(&j, &err) == FT_OK ? 0 : ft_tool_fail(&tool, err.text);
    for (size_t i = 0; i < FT_COUNT(tables); i++)
        ft_table_fini(tables[i]);
    ft_model_close(j.model);
    ft_synthetic_fini(&j.made);
    return ft_tool_end(&tool, status);
}
