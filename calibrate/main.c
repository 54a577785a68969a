/*
 * main.c - ft-calibrate: a float artifact and sample data become an int8 artifact.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/calibrate.h"
#include "runtime/mem.h"
#include "runtime/tools/options.h"
#include "runtime/tools/progress.h"

#include <inttypes.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    PERCENTILE = FT_LONG_ONLY,
    RESIDUAL,
    SCHEME,
    HEAD,
    SAMPLES,
    EVAL,
    DEVICE,
    SAVE,
    MERGE,
    REPORT,
    JSON,
    MAX_MERGE = 4096
};

#define FT_METHOD(NAME, name, help) #name ": " help "\n"
static const char method_help[] =
#include "calibrate/methods.def"
    "default percentile";
#undef FT_METHOD

static const ft_option options[] = {
    { 'i', "input", "FILE", "the float artifact" },
    { 'o', "output", "FILE", "the int8 artifact to write" },
    { 'd', "data", "FILE",
      "samples: safetensors with input_ids [N, S] and\n"
      "optionally attention_mask, token_type_ids, labels" },
    { 'm', "method", "NAME", method_help },
    { PERCENTILE, "percentile", "P", "for the percentile method; default 99.99" },
    { RESIDUAL, "residual", "float|int8",
      "what residual streams are stored as; default float\n"
      "(FasterTransformer's int8_mode 1 and 2)" },
    { SCHEME, "scheme", "NAME",
      "w8a8 (default): activations by calibrated ranges;\n"
      "w8a8-dynamic: each token's by its own, without data\n"
      "(decoders)" },
    { HEAD, "head", "float|int8",
      "what the matrix that makes logits is stored as;\n"
      "default float, as the artifact has it (decoders)" },
    { SAMPLES, "samples", "N|FIRST:END",
      "observe the first N samples, or FIRST to END - 1;\n"
      "default all" },
    { EVAL, "eval", "FILE",
      "held-out samples to compare float and int8 on;\n"
      "default those of -d that were not observed, or else\n"
      "some that were" },
    { 't', "threads", "N", "threads; default all processors" },
    { DEVICE, "device", "NAME", "cpu (default) or cuda[:N]" },
    { SAVE, "save-counters", "FILE", "write what was counted, to be merged later" },
    { MERGE, "merge", "FILE",
      "use these counters instead of observing; may be\n"
      "repeated, and operands are counters files too" },
    { REPORT, "report", "FILE", "write the report as JSON" },
    { JSON, "json", NULL, "print the report as JSON" },
    { 'f', "force", NULL, "replace files that exist" },
    { 'n', "dry-run", NULL, "observe and report, but write no artifact" },
    { 'q', "quiet", NULL, "print warnings and errors only" },
    { 0, NULL, NULL, NULL },
};

static const ft_tool tool = {
    .name = "ft-calibrate",
    .usage = "-i FILE -o FILE -d FILE [OPTION]...\n"
             "-i FILE -d FILE --save-counters FILE [OPTION]...\n"
             "-i FILE -o FILE --merge FILE... [OPTION]...\n"
             "-i FILE -o FILE --scheme w8a8-dynamic [OPTION]...",
    .about = "Find the range of every value that int8 quantizes, and pack the int8 artifact.",
    .option = options,
};

typedef struct request {
    ft_calibration_options job;
    const char *merge[MAX_MERGE];
    bool json, quiet;
} request;

/* ---- Command line ------------------------------------------------------------------------- */

static double percentile(const char *text)
{
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end != '\0' || !(value > 0.0 && value <= 100.0))
        ft_tool_usage(&tool, "--percentile: \"%s\" is not in 0 < P <= 100", text);
    return value;
}

static int thread_count(const char *text)
{
    char *end;
    long value = strtol(text, &end, 10);
    if (end == text || *end != '\0' || value < 1 || value > 4096)
        ft_tool_usage(&tool, "--threads: \"%s\" is not a number from 1 to 4096", text);
    return (int) value;
}

/* "N" or "FIRST:END". */
static void take_samples(ft_calibration_options *job, const char *text)
{
    char *end;
    job->first = 0;
    job->last = strtoull(text, &end, 10);
    bool fine = end != text && text[0] != '-';
    if (fine && *end == ':') {
        const char *second = end + 1;
        job->first = job->last;
        job->last = strtoull(second, &end, 10);
        fine = end != second && *second != '-';
    }
    if (!fine || *end != '\0' || job->first >= job->last)
        ft_tool_usage(&tool, "--samples: \"%s\" is neither a count nor FIRST:END", text);
}

/* Whether `text` is the second of the two words that an option takes. */
static bool is_second(const char *option, const char *text, const char *first, const char *second)
{
    if (strcmp(text, first) != 0 && strcmp(text, second) != 0)
        ft_tool_usage(&tool, "--%s: \"%s\" is neither %s nor %s", option, text, first, second);
    return strcmp(text, second) == 0;
}

static void take_merge(request *r, const char *file)
{
    if (r->job.nmerge == MAX_MERGE)
        ft_tool_usage(&tool, "--merge: at most %d files", MAX_MERGE);
    r->merge[r->job.nmerge++] = file;
}

static void take_option(request *r, int option, const char *value)
{
    ft_calibration_options *job = &r->job;
    switch (option) {
    case 'i':
        job->input = value;
        break;
    case 'o':
        job->output = value;
        break;
    case 'd':
        job->data = value;
        break;
    case 'f':
        job->force = true;
        break;
    case 'n':
        job->dry_run = true;
        break;
    case 'q':
        r->quiet = true;
        break;
    case 't':
        job->threads = thread_count(value);
        break;
    case DEVICE:
        job->device = value;
        break;
    case 'm':
        if (!ft_method_parse(value, &job->method))
            ft_tool_usage(&tool, "--method: \"%s\" is no method", value);
        break;
    case PERCENTILE:
        job->percentile = percentile(value);
        break;
    case RESIDUAL:
        job->int8_residual = is_second("residual", value, "float", "int8");
        break;
    case SCHEME:
        job->dynamic = is_second("scheme", value, "w8a8", "w8a8-dynamic");
        break;
    case HEAD:
        job->int8_head = is_second("head", value, "float", "int8");
        break;
    case SAMPLES:
        take_samples(job, value);
        break;
    case EVAL:
        job->eval = value;
        break;
    case SAVE:
        job->save = value;
        break;
    case MERGE:
        take_merge(r, value);
        break;
    case REPORT:
        job->report = value;
        break;
    case JSON:
        r->json = true;
        break;
    }
}

static void parse(request *r, int argc, char **argv)
{
    const char *value;
    r->job.method = FT_METHOD_PERCENTILE;
    r->job.threads = omp_get_num_procs();
    for (int option; (option = ft_options_next(&tool, argc, argv, &value)) != -1;)
        take_option(r, option, value);
    if (optind < argc && r->job.nmerge == 0)
        ft_tool_usage(&tool, "\"%s\": operands are counters files, after --merge", argv[optind]);
    while (optind < argc)
        take_merge(r, argv[optind++]);
    r->job.merge = r->merge;
    if (r->job.input == NULL)
        ft_tool_usage(&tool, "no float artifact given: use -i FILE");
    if (r->job.dynamic && (r->job.nmerge > 0 || r->job.save != NULL))
        ft_tool_usage(&tool, "--scheme w8a8-dynamic counts nothing: there are no counters");
    if (r->job.data == NULL && r->job.nmerge == 0 && !r->job.dynamic)
        ft_tool_usage(&tool, "no sample data given: use -d FILE");
    if (r->job.output == NULL && r->job.save == NULL && !r->job.dry_run)
        ft_tool_usage(&tool, "nothing to do: give -o FILE, --save-counters FILE or -n");
    if (r->job.output == NULL && r->json)
        r->job.dry_run = true; /* there is a report to print */
    if (r->job.nmerge > 0 && r->job.last > 0)
        ft_tool_usage(&tool, "--samples and --merge exclude each other");
}

/* ---- Output ------------------------------------------------------------------------------- */

typedef struct screen {
    ft_progress_line line;
    bool quiet;
} screen;

static void begin_stage(void *user, const char *what, const char *unit)
{
    screen *s = user;
    ft_progress_end(&s->line);
    ft_progress_begin(&s->line, what, unit, s->quiet);
}

static void step(void *user, uint64_t done, uint64_t total)
{
    screen *s = user;
    ft_progress_step(&s->line, done, total);
}

int main(int argc, char **argv)
{
    static request r;
    parse(&r, argc, argv);
    screen s = { .quiet = r.quiet };
    ft_report report;
    ft_error err;
    ft_status done = ft_calibrate(
        &r.job, &(ft_calibration_view){ .stage = begin_stage, .progress = step, .user = &s },
        &report, &err);
    ft_progress_end(&s.line);
    int status = done == FT_OK ? 0 : ft_tool_fail(&tool, err.text);
    if (status == 0 && report.weights > 0) {
        if (!r.quiet && !r.json)
            ft_report_print(&report, stdout, stderr);
        if (r.json && ft_report_write(&report, stdout, "standard output", &err) != FT_OK)
            status = ft_tool_fail(&tool, err.text);
    }
    ft_report_fini(&report);
    return ft_tool_end(&tool, status);
}
