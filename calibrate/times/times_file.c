/*
 * times_file.c - read the times of a model in all schemes.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/times/times_file.h"

#include "runtime/base/json_reader.h"
#include "runtime/error.h"
#include "runtime/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The format that is read, the longest file, and more than any pass takes: a thousand seconds. */
enum { FORMAT = 1, MAX_BYTES = 32 * 1024 * 1024 };
static const double max_us = 1e9;

static const char command[] = "write the file with ft-bench -i FILE --ops --json";

static const char *const names[FT_TIMED_SCHEMES] = { "float",      "int8",  "w8a8-dynamic",
                                                     "w8a8-block", "w8a16", "w4a16" };

const char *ft_timed_scheme_name(ft_timed_scheme scheme)
{
    return names[scheme];
}

/* ---- Members ------------------------------------------------------------------------------ */

static ft_status read_scheme(const ft_json_reader *in, ft_timed_scheme *out)
{
    const char *text;
    FT_TRY(ft_json_read_string(in, "scheme", &text));
    for (int i = 0; i < FT_TIMED_SCHEMES; i++)
        if (strcmp(text, names[i]) == 0) {
            *out = (ft_timed_scheme) i;
            return FT_OK;
        }
    return ft_json_fail_member(in, "scheme",
                               "float, int8, w8a8-dynamic, w8a8-block, w8a16 or w4a16");
}

/* A median in microseconds, of at least one run. */
static ft_status read_median(const ft_json_reader *in, double *us)
{
    int64_t count;
    FT_TRY(ft_json_to_number(in, "us", ft_json_get(in, "us"), 0.0, max_us, us));
    return ft_json_read_integer(in, "count", 1, INT32_MAX, &count);
}

/* ---- Passes ------------------------------------------------------------------------------- */

static ft_status fail_shape(const ft_json_reader *in)
{
    return ft_json_fail(in, FT_EARG,
                        "%sfound passes of several shapes, expected one of each scheme: choose "
                        "the shape of a pass with -b N and -l N or --decode N of ft-bench",
                        in->path);
}

static ft_status read_shape(ft_measured_times *t, const ft_json_reader *in, bool is_first)
{
    const char *pass;
    int64_t sequences, length;
    FT_TRY(ft_json_read_string(in, "pass", &pass));
    FT_TRY(ft_json_read_integer(in, "sequences", 1, INT32_MAX, &sequences));
    FT_TRY(ft_json_read_integer(in, "length", 1, INT32_MAX, &length));
    if (is_first) {
        t->pass = pass;
        t->sequences = sequences;
        t->length = length;
    }
    return strcmp(t->pass, pass) == 0 && t->sequences == sequences && t->length == length
               ? FT_OK
               : fail_shape(in);
}

static ft_status read_pass(ft_measured_times *t, const ft_json_reader *in, bool is_first)
{
    ft_timed_scheme scheme;
    double us;
    FT_TRY(read_scheme(in, &scheme));
    FT_TRY(read_shape(t, in, is_first));
    FT_TRY(read_median(in, &us));
    if (us <= 0.0)
        return ft_json_fail_member(in, "us", "a time above 0");
    if (t->pass_us[scheme] > 0.0)
        return fail_shape(in);
    t->pass_us[scheme] = us;
    return FT_OK;
}

static ft_status read_passes(ft_measured_times *t, const ft_json_reader *in)
{
    json_t *passes;
    FT_TRY(ft_json_read_array(in, "passes", &passes));
    for (size_t i = 0; i < json_array_size(passes); i++) {
        ft_json_reader pass = ft_json_read_element(in, "passes", i);
        FT_TRY(read_pass(t, &pass, i == 0));
    }
    return t->pass != NULL
               ? FT_OK
               : ft_json_fail(in, FT_EFORMAT, "%spasses: found none, expected one of each scheme",
                              in->path);
}

/* ---- Operations --------------------------------------------------------------------------- */

static ft_status read_op(const ft_measured_times *t, ft_op_time *out, const ft_json_reader *in)
{
    FT_TRY(read_scheme(in, &out->scheme));
    FT_TRY(ft_json_read_string(in, "kind", &out->kind));
    FT_TRY(ft_json_read_string(in, "name", &out->name));
    FT_TRY(read_median(in, &out->us));
    if (t->pass_us[out->scheme] <= 0.0)
        return ft_json_fail_member(in, "scheme", "a scheme that passes have");
    if (strcmp(out->kind, "linear") != 0)
        return FT_OK;
    FT_TRY(ft_json_read_integer(in, "rows", 1, INT32_MAX, &out->rows));
    return ft_json_read_integer(in, "cols", 1, INT32_MAX, &out->cols);
}

static ft_status read_ops(ft_measured_times *t, const ft_json_reader *in)
{
    json_t *ops;
    FT_TRY(ft_json_read_array(in, "ops", &ops));
    t->ops = json_array_size(ops);
    t->op = ft_calloc(t->ops + 1, sizeof *t->op);
    if (t->op == NULL)
        return ft_json_fail_no_memory(in);
    for (size_t i = 0; i < t->ops; i++) {
        ft_json_reader op = ft_json_read_element(in, "ops", i);
        FT_TRY(read_op(t, &t->op[i], &op));
    }
    return FT_OK;
}

/* The operations of each scheme add up to its pass. */
static ft_status scale_ops(ft_measured_times *t, const ft_json_reader *in)
{
    double sum[FT_TIMED_SCHEMES] = { 0.0 };
    for (size_t i = 0; i < t->ops; i++)
        sum[t->op[i].scheme] += t->op[i].us;
    for (int i = 0; i < FT_TIMED_SCHEMES; i++)
        if (t->pass_us[i] > 0.0 && sum[i] <= 0.0)
            return ft_json_fail(in, FT_EFORMAT,
                                "%sops: found no times of scheme %s, expected one for each "
                                "operation: %s",
                                in->path, names[i], command);
    for (size_t i = 0; i < t->ops; i++)
        if (t->op[i].us > 0.0)
            t->op[i].us = t->op[i].us / sum[t->op[i].scheme] * t->pass_us[t->op[i].scheme];
    return FT_OK;
}

/* ---- Files -------------------------------------------------------------------------------- */

static ft_status read_device(ft_measured_times *t, const ft_json_reader *in)
{
    ft_json_reader device;
    FT_TRY(ft_json_read_object(in, "device", &device));
    FT_TRY(ft_json_read_string(&device, "name", &t->device));
    FT_TRY(ft_json_read_string(&device, "detail", &t->detail));
    return ft_json_get(in, "threads") == NULL
               ? FT_OK
               : ft_json_read_integer(in, "threads", 1, INT32_MAX, &t->threads);
}

static ft_status read_times(ft_measured_times *t, const ft_json_reader *root)
{
    ft_json_reader in;
    int64_t format;
    if (ft_json_get(root, "scheme_times") == NULL)
        return ft_json_fail(root, FT_EFORMAT,
                            "found no scheme_times, expected the times of a float artifact in all "
                            "schemes: %s",
                            command);
    FT_TRY(ft_json_read_object(root, "scheme_times", &in));
    FT_TRY(ft_json_read_integer(&in, "format", 0, INT64_MAX, &format));
    if (format != FORMAT)
        return ft_json_fail(&in, FT_EUNSUPPORTED,
                            "scheme_times.format: found %lld, expected %d: %s of this version",
                            (long long) format, FORMAT, command);
    FT_TRY(ft_json_read_integer(&in, "group", 0, INT32_MAX, &t->group));
    FT_TRY(read_passes(t, &in));
    FT_TRY(read_ops(t, &in));
    FT_TRY(scale_ops(t, &in));
    return read_device(t, root);
}

ft_status ft_measured_times_parse(ft_measured_times *t, const char *path, const void *text,
                                  size_t bytes, ft_error *err)
{
    ft_json_reader in = { .file = path, .err = err };
    *t = (ft_measured_times){ .path = path, .bytes = bytes };
    FT_TRY(ft_json_load(&in, JSON_OBJECT, text, bytes, MAX_BYTES));
    t->json = in.json;
    if (!ft_sha256_digest(text, bytes, t->sha256))
        return ft_json_fail_no_memory(&in);
    return read_times(t, &in);
}

/* All bytes of a file or pipe, and at most one more than may be parsed. */
static ft_status read_bytes(char *out, size_t *bytes, const char *path, ft_error *err)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        return ft_fail_errno(err, "%s: cannot open", path);
    *bytes = fread(out, 1, MAX_BYTES + 1, file);
    ft_status status = ferror(file) ? ft_fail_errno(err, "%s: cannot read", path) : FT_OK;
    fclose(file);
    return status;
}

ft_status ft_measured_times_read(ft_measured_times *t, const char *path, ft_error *err)
{
    size_t bytes = 0;
    char *text = malloc(MAX_BYTES + 1);
    *t = (ft_measured_times){ .path = path };
    if (text == NULL)
        return ft_fail(err, FT_ENOMEM, "%s: no memory to read it", path);
    ft_status status = read_bytes(text, &bytes, path, err);
    if (status == FT_OK)
        status = ft_measured_times_parse(t, path, text, bytes, err);
    free(text);
    return status;
}

void ft_measured_times_fini(ft_measured_times *t)
{
    free(t->op);
    json_decref(t->json);
    *t = (ft_measured_times){ .path = NULL };
}
