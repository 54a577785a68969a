/*
 * selftest.c - compute the self-test of an artifact on a device of this machine.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/tools/inspect/inspect.h"

#include "runtime/cli/json_stream.h"
#include "runtime/error.h"
#include "runtime/selftest/selftest.h"

static void print_json(const ft_selftest_result *r)
{
    ft_json_stream json = { .file = stdout, .digits = 17 };
    ft_json_stream_begin(&json, NULL, '{');
    ft_json_stream_bool(&json, "passed", r->passed);
    ft_json_stream_bool(&json, "same_bits", r->same_bits);
    ft_json_stream_string(&json, "output", r->output);
    ft_json_stream_int(&json, "samples", (int64_t) r->samples);
    ft_json_stream_double(&json, "difference", r->difference);
    ft_json_stream_double(&json, "tolerance", r->tolerance);
    ft_json_stream_double(&json, "quantization", r->quantization);
    ft_json_stream_int(&json, "row", (int64_t) r->row);
    ft_json_stream_int(&json, "column", (int64_t) r->column);
    ft_json_stream_double(&json, "found", (double) r->found);
    ft_json_stream_double(&json, "expected", (double) r->expected);
    ft_json_stream_end(&json, '{');
}

static void print_text(const char *path, const ft_selftest_result *r)
{
    char text[FT_SELFTEST_TEXT];
    printf("%s: %s\n", path, ft_selftest_describe(text, r));
    printf("%s: quantization changes these outputs by %.2g of their norm\n", path, r->quantization);
}

ft_status ft_inspect_selftest(ft_inspection *inspection, ft_error *err)
{
    ft_model *model;
    ft_selftest_result result;
    FT_TRY(ft_model_open(&model, inspection->path[0],
                         &(ft_model_options){ .device = inspection->device }, err));
    ft_status status = ft_selftest_run(&result, model, err);
    ft_model_close(model);
    FT_TRY(status);
    if (inspection->json)
        print_json(&result);
    else
        print_text(inspection->path[0], &result);
    inspection->different = !result.passed;
    return FT_OK;
}
