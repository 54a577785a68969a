/*
 * provenance.c - the provenance of a quantized artifact.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/describe.h"

#include "calibrate/check_budget.h"
#include "calibrate/ranges/observe.h"
#include "runtime/base/json_build.h"
#include "runtime/container/provenance.h"
#include "runtime/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

/* ---- Options -------------------------------------------------------------------------------- */

/* A file option: its base name, if it was given. */
static void set_name(json_t **json, const char *key, const char *path)
{
    if (path != NULL)
        ft_json_set(json, key, ft_provenance_name(path));
}

static json_t *names_json(const char *const *path, size_t count)
{
    json_t *names = json_array();
    for (size_t i = 0; i < count; i++)
        ft_json_append(&names, ft_provenance_name(path[i]));
    return names;
}

/* What the recipe does not say: files, and the calibration method. */
static json_t *options_json(const ft_calibration_job *j)
{
    const ft_calibration_options *o = j->options;
    json_t *json = ft_provenance_tool("ft-calibrate");
    set_name(&json, "input", o->input);
    if (o->images.count > 0)
        ft_json_set(&json, "images", names_json(o->images.path, o->images.count));
    else
        set_name(&json, o->texts.path != NULL ? "text" : "data", o->data);
    set_name(&json, "eval", o->eval);
    if (o->n_merge > 0)
        ft_json_set(&json, "merge", names_json(o->merge, o->n_merge));
    set_name(&json, "amax", o->amax);
    if (j->needs_ranges && o->amax == NULL)
        ft_json_set(&json, "method", json_string(ft_method_name(o->method)));
    if (o->budget.bits > 0.0)
        ft_json_set(&json, "budget_bits", json_real(o->budget.bits));
    if (o->budget.ms > 0.0)
        ft_json_set(&json, "budget_ms", json_real(o->budget.ms));
    if (ft_accuracy_target_is_set(&o->target)) {
        char key[32];
        snprintf(key, sizeof key, "target_%s", ft_accuracy_target_name(&o->target));
        ft_json_set(&json, key, json_real(o->target.value));
    }
    if (o->percentile > 0.0)
        ft_json_set(&json, "percentile", json_real(o->percentile));
    return json;
}

/* ---- Files and samples ---------------------------------------------------------------------- */

static ft_status hash_stream(FILE *file, const char *path, ft_sha256 *hash, json_t **out,
                             ft_error *err)
{
    static unsigned char block[1 << 16];
    uint8_t digest[FT_SHA256_BYTES];
    uint64_t bytes = 0;
    ft_sha256_init(hash);
    for (size_t got; (got = fread(block, 1, sizeof block, file)) > 0; bytes += got)
        ft_sha256_update(hash, block, got);
    if (ferror(file))
        return ft_fail_errno(err, "%s: cannot read", path);
    json_t *name = ft_provenance_name(path);
    *out = ft_sha256_final(hash, digest) && name != NULL
               ? ft_provenance_file(json_string_value(name), bytes, digest)
               : NULL;
    json_decref(name);
    return *out != NULL ? FT_OK : ft_fail(err, FT_ENOMEM, "%s: no memory to hash it", path);
}

/* The file of given ranges; a pipe cannot be read again, and *out stays NULL. */
static ft_status hash_file(const char *path, json_t **out, ft_error *err)
{
    struct stat about;
    if (stat(path, &about) == 0 && !S_ISREG(about.st_mode))
        return FT_OK;
    FILE *file = fopen(path, "rb");
    ft_sha256 *hash = ft_sha256_new();
    ft_status status = file == NULL   ? ft_fail_errno(err, "%s: cannot open", path)
                       : hash == NULL ? ft_fail(err, FT_ENOMEM, "%s: no memory to hash it", path)
                                      : hash_stream(file, path, hash, out, err);
    ft_sha256_free(hash);
    if (file != NULL)
        fclose(file);
    return status;
}

/* The times by which precisions were chosen, as they were read. */
static json_t *times_json(const ft_measured_times *times)
{
    json_t *name = ft_provenance_name(times->path);
    json_t *json = ft_provenance_file(json_string_value(name), times->bytes, times->sha256);
    json_decref(name);
    return json;
}

static json_t *range_json(const ft_sample_range *range)
{
    char hex[FT_SHA256_HEX_SIZE];
    return json_pack("{ss, sI, sI}", "sha256", ft_sha256_to_hex(hex, range->data), "first",
                     (json_int_t) range->first, "end", (json_int_t) range->last);
}

/* The samples that were observed, or else those that data-driven quantization has read. */
static ft_status samples_json(json_t **out, const ft_calibration_job *j, ft_error *err)
{
    const ft_calibration_options *o = j->options;
    *out = json_array();
    for (size_t i = 0; j->set != NULL && i < j->set->range_count; i++)
        ft_json_append(out, range_json(&j->set->range[i]));
    if (j->set == NULL && j->report->samples > 0) {
        ft_sample_range range = { .first = o->first };
        range.last = range.first + j->report->samples;
        FT_TRY(ft_data_fingerprint(&j->data, range.data, err));
        ft_json_append(out, range_json(&range));
    }
    return FT_OK;
}

/* ---- All ------------------------------------------------------------------------------------ */

/* Source and conversion of the float artifact, which shares the values. */
static json_t *inherited_json(const ft_calibration_job *j)
{
    json_t *json = json_object(), *value;
    const char *key;
    json_object_foreach(ft_artifact_get_header(j->model->artifact)->provenance, key, value)
    {
        ft_json_set(&json, key, json_incref(value));
    }
    return json;
}

ft_status ft_calibration_provenance(json_t **out, const ft_calibration_job *job, ft_error *err)
{
    json_t *json = inherited_json(job), *samples = NULL, *given = NULL;
    *out = NULL;
    ft_json_set(&json, "calibration", options_json(job));
    ft_status status = samples_json(&samples, job, err);
    if (status == FT_OK && job->options->amax != NULL)
        status = hash_file(job->options->amax, &given, err);
    if (job->times.path != NULL)
        ft_json_set(&json, "times", times_json(&job->times));
    if (given != NULL)
        ft_json_set(&json, "ranges", given);
    if (status == FT_OK && json_array_size(samples) > 0)
        ft_json_set(&json, "samples", json_incref(samples));
    if (job->report->evaluation.samples > 0)
        ft_json_set(&json, "evaluation", ft_report_evaluation_json(job->report));
    if (status == FT_OK && (json == NULL || samples == NULL))
        status = ft_fail(err, FT_ENOMEM, "no memory for the provenance");
    json_decref(samples);
    if (status != FT_OK)
        json_decref(json);
    else
        *out = json;
    return status;
}
