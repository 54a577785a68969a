/*
 * write_model.c - writes the quantized model to the output, or to a draft that is evaluated first.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/write_model.h"

#include "calibrate/describe.h"
#include "calibrate/pack.h"
#include "runtime/container/artifact_copy.h"
#include "runtime/error.h"
#include "runtime/selftest/selftest.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- Packing ------------------------------------------------------------------------------ */

/*
 * Group-wise quantized weights are computed while they are written, and evaluated from the
 * artifact, as are int8 weights with given scales. What the manifest says of the evaluation is
 * known after that: so these models go to a draft that is never given a name, and the output is a
 * copy of it. Without an output the draft is only measured.
 */
static bool needs_draft(const ft_calibration_job *j)
{
    bool held_out;
    return j->compares_artifact &&
           (j->writer == NULL || ft_calibration_eval_data(j, &held_out).rows > 0);
}

static ft_status create_draft(ft_calibration_job *j, ft_error *err)
{
    char path[PATH_MAX];
    const char *folder = getenv("TMPDIR"), *output = j->options->output;
    snprintf(path, sizeof path, "%s/ft-calibrate.ft", folder != NULL ? folder : "/tmp");
    return ft_artifact_create(&j->draft, output != NULL ? output : path, true, err);
}

static json_t *recipe_json(const ft_calibration_job *j)
{
    return ft_manifest_recipe(&(ft_manifest_recipe_info){ .options = j->options,
                                                          .recipe = j->recipe,
                                                          .quantized = j->quantized,
                                                          .count = j->n_quantized,
                                                          .amax = j->amax,
                                                          .has_head = ft_model_generates(j->model),
                                                          .smoothed = j->rewritten != NULL,
                                                          .samples = j->report->samples,
                                                          .bits = j->report->weight_plan.bits });
}

static ft_status write_model(ft_calibration_job *j, ft_artifact_writer *writer, json_t *provenance,
                             ft_error *err)
{
    ft_pack_options what = {
        .model = j->model,
        .quantized = j->quantized,
        .count = j->n_quantized,
        .amax = j->amax,
        .smoothing = j->smoothing,
        .n_smoothing = j->n_smoothing,
        .recipe = recipe_json(j),
        .provenance = provenance,
        .selftest = j->selftest,
        .selftest_bytes = j->selftest_bytes,
        .threads = j->options->threads,
        .refining = ft_recipe_needs_data(j->recipe) ? &j->refining : NULL,
    };
    if (what.recipe == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for the recipe");
    ft_calibration_begin_stage(j, "packing", NULL);
    ft_artifact_set_progress(writer, j->callbacks.progress, j->callbacks.user);
    ft_status status = ft_pack(writer, &what, err);
    json_decref(what.recipe);
    return status;
}

ft_status ft_calibration_write_model(ft_calibration_job *j, ft_error *err)
{
    json_t *provenance;
    if (needs_draft(j)) {
        FT_TRY(create_draft(j, err));
        return write_model(j, j->draft, NULL, err);
    }
    if (j->writer == NULL)
        return FT_OK;
    FT_TRY(ft_calibration_provenance(&provenance, j, err));
    ft_status status = write_model(j, j->writer, provenance, err);
    json_decref(provenance);
    return status;
}

static ft_status copy_draft(ft_calibration_job *j, const ft_artifact *draft, ft_error *err)
{
    ft_artifact_header head = *ft_artifact_get_header(draft);
    ft_artifact_copy *copy;
    FT_TRY(ft_artifact_copy_new(&copy, j->writer, draft, err));
    ft_status status = ft_calibration_provenance(&head.provenance, j, err);
    if (status == FT_OK && j->selftest != NULL)
        status = ft_artifact_add_memory(j->writer, FT_SELFTEST_ENTRY, j->selftest,
                                        j->selftest_bytes, err);
    if (status == FT_OK)
        status = ft_artifact_write(j->writer, &head, err);
    json_decref(head.provenance);
    ft_artifact_copy_free(copy);
    return status;
}

ft_status ft_calibration_finish_draft(ft_calibration_job *j, ft_error *err)
{
    if (j->draft == NULL || j->writer == NULL)
        return FT_OK;
    ft_artifact *draft = NULL;
    char *path = ft_artifact_temp_path(j->draft);
    ft_status status = path != NULL ? ft_artifact_open(&draft, path, FT_VERIFY_STRUCTURE, err)
                                    : ft_fail(err, FT_ENOMEM, "no memory for a path");
    if (status == FT_OK)
        status = copy_draft(j, draft, err);
    ft_artifact_close(draft);
    free(path);
    return status;
}
