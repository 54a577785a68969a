/*
 * prepare.c - rewrites the float model, before it is observed, as an equivalent one that quantizes
 * better.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/prepare.h"

#include "runtime/error.h"
#include "runtime/mem.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { MIN_SAMPLES = 32 }; /* fewer say too little about other data: docs/accuracy.md */

/* ---- Whether to smooth -------------------------------------------------------------------- */

static uint64_t n_samples(const ft_calibration_job *j)
{
    return ft_calibration_last(j) - j->options->first;
}

/*
 * Decoders without an encoder: docs/accuracy.md has the other families.  Not with measured times:
 * folding makes F32 of the matrices that stay float, and those of the file are as they were.
 */
static bool is_known_to_help(const ft_calibration_job *j)
{
    return j->times.path == NULL && j->model->has_cache && j->model->graph.encoder_ops == 0 &&
           n_samples(j) >= MIN_SAMPLES;
}

/*
 * Counters belong to one model, but samples of another run would give other factors; given ranges
 * belong to the model as it is.
 */
bool ft_calibration_wants_smoothing(const ft_calibration_job *j)
{
    const ft_calibration_options *o = j->options;
    bool is_int8 = ft_quantized_weights_any(j->quantized, j->n_quantized, FT_SCHEME_W8A8) ||
                   ft_quantized_weights_any(j->quantized, j->n_quantized, FT_SCHEME_W8A8_DYNAMIC);
    if (!is_int8 || o->data == NULL || o->n_merge > 0 || o->save != NULL ||
        o->amax != NULL)
        return false;
    return o->smooth == FT_SMOOTH_AUTO ? is_known_to_help(j) : o->smooth != FT_SMOOTH_NONE;
}

ft_smooth_options ft_calibration_smooth_options(const ft_calibration_job *j)
{
    const ft_calibration_options *o = j->options;
    return (ft_smooth_options){
        .quantized = j->quantized,
        .count = j->n_quantized,
        .alpha = o->smooth == FT_SMOOTH_ALPHA ? o->smooth_alpha : -1.0,
        .stats = ft_calibration_stats_options(j),
    };
}

static ft_status find_factors(ft_calibration_job *j, ft_smoothquant *smoothing, ft_error *err)
{
    const ft_calibration_options *o = j->options;
    ft_smooth_options options = ft_calibration_smooth_options(j);
    const ft_activation_stats_options stats = ft_smooth_stats_options(&options);
    FT_TRY(
        ft_merged_shards_find(&options.stats.source, &j->shards, FT_STAGE_SMOOTHING, &stats, err));
    FT_TRY(ft_smoothquant_init(smoothing, &options, err));
    if (smoothing->inputs == 0 && o->smooth != FT_SMOOTH_AUTO)
        return ft_fail(err, FT_EUNSUPPORTED,
                       "%s: --smooth: no input of an int8 matrix can be scaled by its producer",
                       o->input);
    return FT_OK;
}

/* ---- Rewriting ---------------------------------------------------------------------------- */

/* A hidden file next to the output, where there is space for the quantized model, too. */
static ft_status create_rewritten(ft_calibration_job *j, ft_error *err)
{
    char path[PATH_MAX];
    const char *folder = getenv("TMPDIR"), *output = j->options->output;
    int length = output != NULL ? snprintf(path, sizeof path, "%s.float", output)
                                : snprintf(path, sizeof path, "%s/ft-calibrate.float.ft",
                                           folder != NULL ? folder : "/tmp");
    if (length >= (int) sizeof path)
        return ft_fail(err, FT_EARG, "%s: the path is too long", output != NULL ? output : folder);
    return ft_artifact_create(&j->rewritten, path, true, err);
}

static ft_status write_rewritten(ft_calibration_job *j, const ft_rewrite *rewrite, ft_error *err)
{
    FT_TRY(create_rewritten(j, err));
    FT_TRY(ft_rewrite_artifact(j->rewritten, rewrite, err));
    j->rewritten_path = ft_artifact_temp_path(j->rewritten);
    if (j->rewritten_path == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for a path");
    j->input = j->rewritten_path;
    return FT_OK;
}

static ft_status smooth(ft_calibration_job *j, ft_smoothquant *smoothing, ft_error *err)
{
    FT_TRY(find_factors(j, smoothing, err));
    j->report->scalable_inputs = smoothing->inputs;
    j->report->scaled_inputs = smoothing->scaled_inputs;
    j->report->smooth_error_ratio = smoothing->error_ratio;
    if (smoothing->scaled_inputs == 0)
        return FT_OK;
    ft_rewrite rewrite = ft_smoothquant_rewrite(smoothing);
    return write_rewritten(j, &rewrite, err);
}

ft_status ft_calibration_prepare(ft_calibration_job *j, ft_error *err)
{
    ft_smoothquant smoothing = { 0 };
    if (!ft_calibration_wants_smoothing(j))
        return FT_OK;
    ft_status status = smooth(j, &smoothing, err);
    ft_smoothquant_fini(&smoothing);
    return status == FT_OK && j->rewritten != NULL ? ft_calibration_reopen(j, err) : status;
}
