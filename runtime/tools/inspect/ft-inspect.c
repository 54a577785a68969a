/*
 * ft-inspect.c - list, verify and compare artifacts.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/error.h"
#include "runtime/mem.h"
#include "runtime/families/family.h"
#include "runtime/model/folded.h"
#include "runtime/tensor.h"
#include "runtime/cli/table.h"
#include "runtime/tools/inspect/inspect.h"
#include "runtime/cli/json_stream.h"
#include "runtime/cli/options.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

static ft_status print_manifest(const ft_artifact *artifact, ft_error *err)
{
    if (json_dumpf(ft_artifact_manifest(artifact), stdout, JSON_INDENT(1)) != 0)
        return ferror(stdout) ? ft_fail_errno(err, "standard output")
                              : ft_fail(err, FT_ENOMEM, "no memory to print the manifest");
    putchar('\n');
    return FT_OK;
}

/* ---- List --------------------------------------------------------------------------------- */

static const char *tool_version(const ft_artifact *a)
{
    const json_t *tool = json_object_get(ft_artifact_manifest(a), "tool");
    const char *version = json_string_value(json_object_get(tool, "version"));
    return version != NULL ? version : "of unknown version";
}

/* "32", "row,zeros", "128,int8": group size, zero points, int8 activations. */
static void format_groupwise(ft_listing_cell *cell, const ft_artifact_tensor *t)
{
    char group[16] = "row";
    if (t->groupwise.group > 0)
        snprintf(group, sizeof group, "%d", t->groupwise.group);
    ft_listing_cell_format(cell, "%s%s%s", group, t->has_zero_points ? ",zeros" : "",
                           t->groupwise.int8_activations ? ",int8" : "");
}

/* ---- Table of tensors --------------------------------------------------------------------- */

static const ft_listing_column columns[] = {
    { .title = "name", .shrinks = true },
    { .title = "role" },
    { .title = "dtype" },
    { .title = "shape" },
    { .title = "layout" },
    { .title = "group" },
    { .title = "bytes", .is_number = true },
    { .title = "offset", .is_number = true },
};

static void fill_tensor(ft_listing_cell *cell, const void *source, size_t row)
{
    const ft_artifact_tensor *t = ft_artifact_at(source, row);
    cell[0].text = t->name;
    cell[1].text = t->role;
    cell[2].text = ft_dtype_name(t->dtype);
    cell[3].text = ft_shape_text(cell[3].buffer, t->ndim, t->dim);
    cell[4].text = ft_layout_name(t->layout);
    if (t->layout == FT_PANEL32)
        format_groupwise(&cell[5], t);
    ft_listing_cell_format(&cell[6], "%zu", t->bytes);
    ft_listing_cell_format(&cell[7], "%zu", t->offset);
}

static void print_tensors(const ft_artifact *a)
{
    const ft_listing list = { .column = columns,
                              .columns = FT_COUNT(columns),
                              .rows = ft_artifact_count(a),
                              .fill = fill_tensor,
                              .source = a };
    ft_listing_print(&list, stdout);
}

/* ------------------------------------------------------------------------------------------- */

static void print_files(const ft_artifact *a)
{
    size_t scales = 0, zeros = 0, folded = ft_folded_count(a);
    for (size_t i = 0; i < ft_artifact_file_count(a); i++) {
        const ft_artifact_entry *f = ft_artifact_file_at(a, i);
        if (strncmp(f->name, "s/", 2) == 0)
            scales++;
        else if (strncmp(f->name, "z/", 2) == 0)
            zeros++;
        else
            printf("%s, %zu bytes\n", f->name, f->bytes);
    }
    if (scales > 0)
        printf("s/...: scales of %zu tensors\n", scales);
    if (zeros > 0)
        printf("z/...: zero points of %zu tensors\n", zeros);
    if (folded > 0)
        printf("w/..." FT_FOLDED_SUFFIX ": factors of %zu values, folded into weights\n", folded);
}

/* The configuration as text; an invalid one does not prevent the list. */
static void print_config(const ft_inspection *inspection)
{
    const ft_artifact_header *head = ft_artifact_get_header(inspection->artifact[0]);
    const ft_family *family = ft_family_find(head->family);
    ft_config config;
    ft_error why;
    if (family == NULL)
        ft_fail(&why, FT_EUNSUPPORTED, "%s: family %s is unknown to this version",
                inspection->path[0], head->family);
    if (family != NULL && ft_config_from_json(&config, head->config, family->kind,
                                              inspection->path[0], &why) == FT_OK)
        ft_config_write(&config, stdout);
    else
        ft_tool_print_escaped(why.text, 0);
    putchar('\n');
}

static ft_status list_contents(ft_inspection *inspection, ft_error *err)
{
    const ft_artifact *a = inspection->artifact[0];
    const ft_artifact_header *head = ft_artifact_get_header(a);
    if (inspection->json)
        return print_manifest(a, err);
    printf("%s: %s, %s, written by %s ", inspection->path[0], head->family,
           ft_artifact_state_name(head->state), head->tool);
    ft_tool_print_escaped(tool_version(a), 0);
    putchar('\n');
    print_config(inspection);
    ft_inspect_provenance(a);
    putchar('\n');
    print_tensors(a);
    putchar('\n');
    print_files(a);
    size_t bytes = 0;
    for (size_t i = 0; i < ft_artifact_count(a); i++)
        bytes += ft_artifact_at(a, i)->bytes;
    printf("\n%zu tensors of %.2f MB, file of %.2f MB\n", ft_artifact_count(a),
           (double) bytes / 1e6, (double) ft_artifact_bytes(a) / 1e6);
    return FT_OK;
}

/* ---- Verify ------------------------------------------------------------------------------- */

static const char *const levels[] = {
    [FT_VERIFY_STRUCTURE] = "structure",
    [FT_VERIFY_CRC] = "crc",
    [FT_VERIFY_SHA256] = "sha256",
};

typedef struct {
    ft_json_stream *json; /* NULL: print text */
    size_t count, bad;
} verification;

/* `problem` may be NULL. */
static void put_problem(ft_json_stream *json, const char *problem)
{
    if (problem != NULL)
        ft_json_stream_string(json, "error", problem);
    else
        ft_json_stream_null(json, "error");
    ft_json_stream_end(json, '{');
}

static void put_entry(ft_json_stream *json, const char *entry, size_t bytes, const char *problem)
{
    ft_json_stream_begin(json, NULL, '{');
    ft_json_stream_string(json, "entry", entry);
    ft_json_stream_int(json, "bytes", (int64_t) bytes);
    put_problem(json, problem);
}

static bool report(void *user, const char *entry, size_t bytes, const char *problem)
{
    verification *v = user;
    v->count++;
    v->bad += problem != NULL;
    if (v->json != NULL)
        put_entry(v->json, entry, bytes, problem);
    else if (problem != NULL)
        printf("FAILED  %s\n", problem);
    else
        printf("ok      %s\n", entry);
    return true;
}

/* Intact bytes may still describe an invalid model, so build the plan like ft_model_open(). */
static ft_status check_plan(const ft_inspection *inspection, ft_error *err)
{
    ft_model *model;
    ft_status rc = ft_model_open(&model, inspection->path[0], NULL, err);
    ft_model_close(model);
    return rc;
}

static void print_verification(const ft_inspection *inspection, const verification *v,
                               const char *plan_error)
{
    if (plan_error != NULL)
        printf("FAILED  %s\n", plan_error);
    else
        printf("ok      plan\n");
    printf("%zu entries checked by %s, %zu failed; %s\n", v->count, levels[inspection->level],
           v->bad, plan_error != NULL ? "the model cannot be planned" : "the model can be planned");
}

static void begin_verification(ft_json_stream *json, const ft_inspection *inspection)
{
    ft_json_stream_begin(json, NULL, '{');
    ft_json_stream_string(json, "level", levels[inspection->level]);
    ft_json_stream_begin(json, "entries", '[');
}

static void end_verification(ft_json_stream *json, bool fine, const char *plan_error)
{
    ft_json_stream_end(json, '[');
    ft_json_stream_bool(json, "ok", fine);
    ft_json_stream_begin(json, "plan", '{');
    put_problem(json, plan_error);
    ft_json_stream_end(json, '{');
}

static ft_status verify(ft_inspection *inspection, ft_error *err)
{
    ft_json_stream json = { .file = stdout, .digits = 17 };
    verification v = { .json = inspection->json ? &json : NULL };
    ft_error why;
    if (inspection->json)
        begin_verification(&json, inspection);
    ft_status rc = ft_artifact_verify(inspection->artifact[0], inspection->level, report, &v, err);
    ft_status planned = check_plan(inspection, &why);
    const char *problem = planned != FT_OK ? why.text : NULL;
    if (rc == FT_OK && planned != FT_OK)
        rc = ft_fail(err, planned, "%s", why.text);
    if (inspection->json)
        end_verification(&json, rc == FT_OK, problem);
    else
        print_verification(inspection, &v, problem);
    return rc;
}

/* ---- Command line ------------------------------------------------------------------------- */

enum { DEFAULT_SAMPLES = 16 };

enum { VERIFY = FT_LONG_ONLY, DIFF, SAMPLES, HTML, AMAX, AMAX_LIST, PLAN, SELFTEST, TOKENS };

static const ft_option options[] = {
    { 'i', "input", "FILE", "the artifact; -i may be omitted" },
    { FT_OPTION_JSON, "json", NULL, "print JSON" },
    { VERIFY, "verify", "[structure|crc|sha256]",
      "verify all entries (default sha256), and that the model\n"
      "can be planned" },
    { DIFF, "diff", NULL, "compare two artifacts; status 1 if they differ" },
    { 'd', "data", "FILE",
      "with --diff: run both on these samples, compare their\n"
      "values, and name the scales that lose most" },
    { SAMPLES, "samples", "N", "with -d: the first N samples; default 16" },
    { HTML, "html", "FILE", "with -d: also write the comparison as a page" },
    { 'f', "force", NULL, "with --html: replace an existing file" },
    { PLAN, "plan", NULL,
      "print the plan and the kernels selected for its int8\n"
      "GEMMs" },
    { SELFTEST, "selftest", NULL,
      "compute the stored samples again; status 1 if this\n"
      "machine has other outputs than the builder's" },
    { FT_OPTION_DEVICE, "device", "cpu|cuda[:N]", "with --plan and --selftest; default cpu" },
    { TOKENS, "tokens", "N,...", "with --plan: batch sizes; default 1,16,128,1024,4096" },
    { AMAX, "amax", NULL, "print the calibrated range of every quantized value" },
    { AMAX_LIST, "amax-list", "LAYER", "print FasterTransformer v3.0's amaxList of a layer" },
    { 0, NULL, NULL, NULL },
};

static const ft_tool tool = {
    .name = "ft-inspect",
    .usage = "[OPTION]... FILE\n"
             "--plan [--device NAME] [--tokens N,...] FILE\n"
             "--selftest [--device NAME] [--json] FILE\n"
             "--diff [-d FILE [--html FILE]] [--json] FILE FILE",
    .about = "Inspect an artifact (.ft); without options, list its tensors and files.",
    .option = options,
};

/* Only one view at a time. */
static void set_view(ft_inspect_fn *view, ft_inspect_fn new_view)
{
    if (*view != NULL && *view != new_view)
        ft_tool_usage_error(&tool,
                            "--verify, --diff, --plan, --selftest, --amax and --amax-list exclude "
                            "each other");
    *view = new_view;
}

/* Batch sizes, ascending. */
static void set_tokens(ft_inspection *inspection, const char *text)
{
    size_t *tokens = inspection->tokens;
    inspection->ntokens = ft_tool_list(&tool, TOKENS, text, 1 << 20, tokens, FT_INSPECT_RUNS);
    for (size_t i = 1; i < inspection->ntokens; i++)
        if (tokens[i] <= tokens[i - 1])
            ft_tool_usage_error(&tool, "--tokens: \"%s\": the numbers do not ascend", text);
}

static ft_inspect_fn parse_options(int argc, char **argv, ft_inspection *inspection)
{
    ft_inspect_fn view = NULL;
    int paths = 0;
    const char *value;
    for (int id; (id = ft_options_next(&tool, argc, argv, &value)) != -1;)
        switch (id) {
        case 'i':
            inspection->path[paths++] = value;
            break;
        case FT_OPTION_JSON:
            inspection->json = true;
            break;
        case VERIFY:
            set_view(&view, verify);
            inspection->level =
                value == NULL ? FT_VERIFY_SHA256 : ft_tool_verify(&tool, VERIFY, value);
            break;
        case DIFF:
            set_view(&view, ft_inspect_diff);
            break;
        case 'd':
            inspection->samples_path = value;
            break;
        case SAMPLES:
            inspection->samples = (size_t) ft_tool_int(&tool, id, value, 1);
            break;
        case HTML:
            inspection->page_path = value;
            break;
        case 'f':
            inspection->force = true;
            break;
        case PLAN:
            set_view(&view, ft_inspect_plan);
            break;
        case SELFTEST:
            set_view(&view, ft_inspect_selftest);
            break;
        case FT_OPTION_DEVICE:
            inspection->device = ft_tool_device(&tool, id, value);
            break;
        case TOKENS:
            set_tokens(inspection, value);
            break;
        case AMAX:
            set_view(&view, ft_inspect_amax);
            break;
        case AMAX_LIST:
            set_view(&view, ft_inspect_amax_list);
            inspection->layer = value;
            break;
        }
    if (view != ft_inspect_plan && inspection->ntokens > 0)
        ft_tool_usage_error(&tool, "--tokens requires --plan");
    if (view != ft_inspect_plan && view != ft_inspect_selftest && inspection->device != NULL)
        ft_tool_usage_error(&tool, "--device requires --plan or --selftest");
    if (view != ft_inspect_diff && inspection->samples_path != NULL)
        ft_tool_usage_error(&tool, "-d requires --diff");
    if (inspection->samples_path == NULL &&
        (inspection->samples > 0 || inspection->page_path != NULL))
        ft_tool_usage_error(&tool, "--samples and --html require --diff and -d FILE");
    if (inspection->force && inspection->page_path == NULL)
        ft_tool_usage_error(&tool, "--force requires --html FILE");
    if (inspection->samples == 0)
        inspection->samples = DEFAULT_SAMPLES;
    int wanted = view == ft_inspect_diff ? 2 : 1;
    for (; optind < argc && paths < wanted; optind++)
        inspection->path[paths++] = argv[optind];
    if (paths < wanted || optind < argc)
        ft_tool_usage_error(&tool, wanted == 2 ? "--diff takes two files" : "one file is expected");
    if (inspection->samples_path != NULL)
        return ft_inspect_divergence;
    return view != NULL ? view : list_contents;
}

int main(int argc, char **argv)
{
    ft_inspection inspection = { 0 };
    ft_error err;
    ft_inspect_fn view = parse_options(argc, argv, &inspection);
    ft_status rc = FT_OK;
    for (int i = 0; i < 2 && inspection.path[i] != NULL && rc == FT_OK; i++)
        rc = ft_artifact_open(&inspection.artifact[i], inspection.path[i], FT_VERIFY_STRUCTURE,
                              &err);
    if (rc == FT_OK)
        rc = view(&inspection, &err);
    int status = rc != FT_OK ? ft_tool_error(&tool, err.text) : inspection.different;
    ft_artifact_close(inspection.artifact[0]);
    ft_artifact_close(inspection.artifact[1]);
    return ft_tool_exit_status(&tool, status);
}
