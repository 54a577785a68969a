/*
 * main.c - ft-convert: the command line.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "convert/convert.h"
#include "convert/report.h"
#include "convert/protect_checkpoint.h"
#include "runtime/error.h"
#include "runtime/base/clock.h"
#include "runtime/base/json_build.h"
#include "runtime/mem.h"
#include "runtime/cli/options.h"
#include "runtime/cli/progress.h"
#include "runtime/cli/signals.h"

#include <stdlib.h>
#include <string.h>

enum { DTYPE = FT_LONG_ONLY, ROTATE, IGNORE_KEY, NO_TOKENIZER };

static const ft_option options[] = {
    { 'i', "input", "PATH",
      "checkpoint: a folder, an index, or a safetensors\nfile; repeat it for several files" },
    { 'o', "output", "FILE", "the artifact (.ft)" },
    { DTYPE, "dtype", "keep|f32|f16|bf16", "of matrices; default keep; vectors are always f32" },
    { ROTATE, "rotate", NULL,
      "Llama and its kin: rotate the weights, which\nspreads outlier channels before ft-calibrate\n"
      "quantizes" },
    { 'f', "force", NULL, "overwrite an existing artifact" },
    { 'n', "dry-run", NULL, "check everything, show what would be written,\nwrite nothing" },
    FT_REPORT_JSON_OPTION,
    { IGNORE_KEY, "ignore-key", "NAME", "accept an unknown key of config.json; may be\nrepeated" },
    { NO_TOKENIZER, "no-tokenizer", NULL,
      "leave the tokenizer out: the artifact takes\ntoken ids" },
    { 'q', "quiet", NULL, "print errors only" },
    { 'v', "verbose", NULL, "list every unused tensor" },
    { 0, NULL, NULL, NULL },
};

static const ft_tool tool = {
    .name = "ft-convert",
    .usage = "-i PATH -o FILE [OPTION]...\n-i PATH -n [OPTION]...",
    .about = "Convert a Hugging Face checkpoint (safetensors) to a float artifact.",
    .option = options,
};

typedef struct {
    const char **input, **ignored; /* capacity: argc */
    size_t n_inputs, n_ignored;
    const char *output;
    ft_convert_options convert;
    bool force, dry_run, json, quiet, verbose;
} arguments;

/* ---- Arguments ------------------------------------------------------------------------------ */

static void parse_dtype(ft_convert_options *convert, const char *value)
{
    static const char *const words[] = { "keep", "f32", "f16", "bf16", NULL };
    static const ft_dtype dtypes[] = { FT_F32, FT_F32, FT_F16, FT_BF16 };
    int index = ft_tool_word(&tool, DTYPE, value, words);
    convert->cast = index > 0;
    convert->dtype = dtypes[index];
}

static void set_option(arguments *args, int id, const char *value)
{
    switch (id) {
    case 'i':
        args->input[args->n_inputs++] = value;
        break;
    case 'o':
        args->output = value;
        break;
    case DTYPE:
        parse_dtype(&args->convert, value);
        break;
    case ROTATE:
        args->convert.rotate = true;
        break;
    case IGNORE_KEY:
        args->ignored[args->n_ignored++] = value;
        break;
    case NO_TOKENIZER:
        args->convert.no_tokenizer = true;
        break;
    case 'f':
        args->force = true;
        break;
    case 'n':
        args->dry_run = true;
        break;
    case FT_OPTION_JSON:
        args->json = true;
        break;
    case 'q':
        args->quiet = true;
        break;
    default:
        args->verbose = true;
    }
}

static void parse(arguments *args, int argc, char **argv)
{
    const char *value;
    for (int id; (id = ft_options_next(&tool, argc, argv, &value)) != -1;)
        set_option(args, id, value);
    ft_tool_check_no_operands(&tool, argc, argv);
    if (args->n_inputs == 0)
        ft_tool_usage_error(&tool, "no -i");
    if (args->output == NULL && !args->dry_run)
        ft_tool_usage_error(&tool, "neither -o nor -n");
    ft_tool_check_verbosity(&tool, args->quiet, args->verbose);
    args->convert.ignored_keys = args->ignored;
    ft_error err;
    if (!args->dry_run &&
        ft_checkpoint_check_output(args->input, args->n_inputs, args->output, &err) != FT_OK)
        ft_tool_usage_error(&tool, "%s", err.text);
}

/* ---- Messages ------------------------------------------------------------------------------- */

/* A note with an error code is about something that will not work. */
static void print_messages(const ft_messages *messages, const char *kind)
{
    size_t shown = ft_min_size(messages->count, FT_MAX_MESSAGES);
    for (size_t i = 0; i < shown; i++) {
        bool warns = kind[0] != '\0' && messages->message[i].code != FT_OK;
        fprintf(stderr, "ft-convert: %s%s\n", warns ? "warning: " : kind,
                messages->message[i].text);
    }
    if (shown < messages->count)
        fprintf(stderr, "ft-convert: %sand %zu more like these\n", kind, messages->count - shown);
}

/* Names come from the checkpoint: ft_fail() escapes control characters in them. */
static void print_unused(const ft_conversion *conversion, bool all)
{
    enum { MAX_SHOWN = 5 };
    size_t shown = all ? conversion->n_unused : ft_min_size(conversion->n_unused, MAX_SHOWN);
    ft_error text;
    for (size_t i = 0; i < shown; i++) {
        ft_fail(&text, FT_OK, "unused: %s", conversion->unused[i]);
        fprintf(stderr, "ft-convert: %s\n", text.text);
    }
    if (shown < conversion->n_unused)
        fprintf(stderr, "ft-convert: unused: and %zu more (-v lists them)\n",
                conversion->n_unused - shown);
}

/* Format a report and release the JSON; the caller frees *text. */
static ft_status format_report(char **text, json_t *json, ft_error *err)
{
    *text = ft_json_dump(json, JSON_INDENT(1), NULL);
    json_decref(json);
    return *text != NULL ? FT_OK : ft_fail(err, FT_ENOMEM, "no memory for the report");
}

static void print_failure(const ft_messages *problems)
{
    char *text;
    ft_error err;
    if (format_report(&text, ft_report_failure(problems), &err) == FT_OK)
        puts(text);
    else
        fprintf(stderr, "ft-convert: %s\n", err.text);
    free(text);
}

/* ---- Conversion ------------------------------------------------------------------------------ */

/* The artifact is renamed to its final name last: a failure before that leaves no file. */
static ft_status write_artifact(const arguments *args, const ft_conversion *conversion,
                                ft_artifact_writer *writer, ft_error *err)
{
    char *report = NULL;
    ft_progress_line line;
    ft_progress_begin(&line, "writing", NULL, args->quiet);
    ft_artifact_set_progress(writer, ft_progress_update, &line);
    ft_status status = ft_conversion_write(conversion, writer, err);
    if (status == FT_OK && args->json)
        status = format_report(&report, ft_report_json(conversion, args->output), err);
    if (status == FT_OK)
        status = ft_artifact_commit(writer, err);
    double seconds = ft_monotonic_seconds() - line.start;
    ft_progress_end(&line);
    if (status == FT_OK && !args->quiet)
        fprintf(stderr, "ft-convert: %s: %zu tensors of %.2f MB in %.2f s\n", args->output,
                conversion->n_weights, (double) conversion->bytes * 1e-6, seconds);
    if (status == FT_OK && args->json)
        puts(report);
    free(report);
    return status;
}

static ft_status check_values(const arguments *args, const ft_conversion *conversion, ft_error *err)
{
    ft_progress_line line;
    ft_progress_begin(&line, "checking", NULL, args->quiet);
    ft_status status = ft_conversion_check(conversion, ft_progress_update, &line, err);
    ft_progress_end(&line);
    return status;
}

/* Print what would be written. */
static ft_status print_dry_run(const arguments *args, const ft_conversion *conversion,
                               ft_error *err)
{
    char *report = NULL;
    FT_TRY(check_values(args, conversion, err));
    if (!args->json) {
        ft_report_table(conversion, stdout);
        return FT_OK;
    }
    FT_TRY(format_report(&report, ft_report_json(conversion, NULL), err));
    puts(report);
    free(report);
    return FT_OK;
}

/* `writer` is NULL in a dry run. */
static ft_status convert(const arguments *args, ft_conversion *conversion,
                         ft_artifact_writer *writer, ft_error *err)
{
    if (!args->quiet) {
        print_messages(&conversion->notes, "note: ");
        print_unused(conversion, args->verbose);
    }
    return writer == NULL ? print_dry_run(args, conversion, err)
                          : write_artifact(args, conversion, writer, err);
}

/* Open the output first: if it is not writable, fail before the conversion starts. */
static ft_status open_and_convert(const arguments *args, ft_messages *problems)
{
    ft_artifact_writer *writer = NULL;
    ft_conversion *conversion = NULL;
    ft_error err;
    if (!args->dry_run && ft_artifact_create(&writer, args->output, args->force, &err) != FT_OK)
        return ft_messages_add_error(problems, &err);
    ft_status status =
        ft_conversion_open(&conversion, args->input, args->n_inputs, &args->convert, problems);
    if (status == FT_OK) {
        status = convert(args, conversion, writer, &err);
        if (status != FT_OK)
            ft_messages_add_error(problems, &err);
    }
    ft_conversion_close(conversion);
    ft_artifact_discard(writer);
    return status;
}

static int convert_and_report(const arguments *args, ft_messages *problems)
{
    ft_status status = open_and_convert(args, problems);
    print_messages(problems, "");
    if (status != FT_OK && args->json)
        print_failure(problems);
    return status == FT_OK ? EXIT_SUCCESS : FT_EXIT_FAILURE;
}

int main(int argc, char **argv)
{
    arguments args = {
        .input = ft_calloc((size_t) argc, sizeof *args.input),
        .ignored = ft_calloc((size_t) argc, sizeof *args.ignored),
    };
    ft_messages *problems = ft_calloc(1, sizeof *problems);
    int status;
    if (args.input == NULL || args.ignored == NULL || problems == NULL) {
        status = ft_tool_error(&tool, "no memory");
    } else {
        ft_tool_cleanup_on_signals();
        parse(&args, argc, argv);
        status = convert_and_report(&args, problems);
    }
    free(problems);
    free(args.input);
    free(args.ignored);
    return ft_tool_exit_status(&tool, status);
}
