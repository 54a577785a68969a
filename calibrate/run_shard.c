/*
 * run_shard.c - calibration in shards.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/run_shard.h"

#include "calibrate/check_budget.h"
#include "calibrate/prepare.h"
#include "calibrate/ranges/observe.h"
#include "runtime/error.h"

#include <inttypes.h>
#include <string.h>

/* ---- What shards can do ------------------------------------------------------------------- */

static ft_status check_options(const ft_calibration_job *j, ft_error *err)
{
    const ft_calibration_options *o = j->options;
    if (o->data == NULL)
        return ft_fail(err, FT_EARG,
                       "%s: shards need the samples of all of them: use -d FILE, --text FILE or "
                       "--image FILE",
                       o->input);
    if (o->amax != NULL)
        return ft_fail(err, FT_EARG, "%s: --amax gives the ranges, so there is nothing to shard",
                       o->amax);
    if (o->device != NULL && strncmp(o->device, "cpu", 3) != 0)
        return ft_fail(err, FT_EUNSUPPORTED,
                       "--device %s: sums of a GPU depend on how samples are split: run shards on "
                       "the CPU",
                       o->device);
    return FT_OK;
}

static ft_status check_recipe(const ft_calibration_job *j, ft_error *err)
{
    const char *input = j->options->input;
    if (j->recipe->round == FT_ROUND_GPTAQ)
        return ft_fail(err, FT_EUNSUPPORTED,
                       "%s: --round gptaq runs the samples anew after every matrix, which shards "
                       "cannot: use --round gptq, or one process",
                       input);
    if (ft_calibration_plans_weights(j))
        return ft_fail(err, FT_EUNSUPPORTED,
                       "%s: --budget and --target of w4a16 compare plans before the statistics of "
                       "shards are known: choose in one process, and give shards its rules as "
                       "--tensor",
                       input);
    if (j->needs_ranges && ft_recipe_needs_data(j->recipe))
        return ft_fail(err, FT_EUNSUPPORTED,
                       "%s: shards either count ranges of int8 matrices or add up statistics for "
                       "imatrix, AWQ and GPTQ: use one of them, or one process",
                       input);
    return FT_OK;
}

ft_status ft_calibration_open_shards(ft_calibration_job *j, ft_error *err)
{
    const ft_calibration_options *o = j->options;
    if (o->shard.count == 0 && o->n_stats == 0)
        return FT_OK;
    FT_TRY(check_options(j, err));
    FT_TRY(check_recipe(j, err));
    return o->n_stats > 0 ? ft_merged_shards_open(&j->shards, o->stats, o->n_stats, err) : FT_OK;
}

/* ---- Running a stage ---------------------------------------------------------------------- */

/* The file that a shard writes. */
typedef struct shard_output {
    ft_calibration_job *job;
    ft_shard_header header;
    ft_shard_writer writer;
} shard_output;

static ft_status begin_inputs(void *user, const ft_activation_stats *stats, ft_error *err)
{
    shard_output *s = user;
    s->header.inputs = stats->count;
    return ft_shard_writer_begin(&s->writer, s->job->stats, &s->header, err);
}

static ft_status add_input(void *user, const ft_input_stats *input, const ft_exact_sums *sums,
                           ft_error *err)
{
    return ft_shard_writer_add(&((shard_output *) user)->writer, input, sums, err);
}

static ft_status collect_inputs(shard_output *s, const ft_activation_stats_options *options,
                                ft_error *err)
{
    ft_calibration_job *j = s->job;
    const ft_stats_sink sink = { .begin = begin_inputs, .add = add_input, .user = s };
    if (s->header.stage == FT_STAGE_SMOOTHING) {
        const ft_smooth_options smooth = ft_calibration_smooth_options(j);
        return ft_smoothquant_collect_shard(&smooth, j->options->shard, &sink, err);
    }
    return ft_refinement_collect_shard(options, j->recipe, j->quantized, j->n_quantized,
                                       j->options->shard, &sink, err);
}

static ft_status count_ranges(shard_output *s, ft_error *err)
{
    ft_calibration_job *j = s->job;
    uint64_t first = s->header.first, last = s->header.last;
    ft_shard_samples(j->options->shard, &first, &last);
    FT_TRY(ft_observe_new(&j->set, j->model, err));
    ft_calibration_begin_stage(j, "observing", "samples");
    FT_TRY(ft_observe(j->set, j->model, &j->data, first, last, ft_calibration_sessions(j),
                      j->callbacks.progress, j->callbacks.user, err));
    FT_TRY(ft_shard_writer_begin(&s->writer, j->stats, &s->header, err));
    return ft_shard_writer_add_counters(&s->writer, j->set, err);
}

/* The file that is there already must be what this shard would write. */
static ft_status check_existing(const shard_output *s, ft_error *err)
{
    const ft_calibration_options *o = s->job->options;
    ft_shard_file file;
    ft_status status = ft_shard_file_open(&file, o->save_stats, err);
    const ft_shard_header *found = &file.header, *expected = &s->header;
    if (status == FT_OK &&
        (found->stage != expected->stage || found->shard.index != expected->shard.index ||
         found->shard.count != expected->shard.count))
        status = ft_fail(err, FT_EARG,
                         "%s: exists already, and is shard %" PRIu32 "/%" PRIu32
                         " of stage \"%s\", expected %" PRIu32 "/%" PRIu32
                         " of \"%s\": delete it, or replace it with --force",
                         o->save_stats, found->shard.index + 1, found->shard.count,
                         ft_shard_stage_name(found->stage), expected->shard.index + 1,
                         expected->shard.count, ft_shard_stage_name(expected->stage));
    if (status == FT_OK)
        status = ft_shard_file_check(&file, expected, err);
    ft_shard_file_fini(&file);
    if (status == FT_OK)
        (void) ft_messages_add(&s->job->report->notes, FT_OK,
                               "%s: exists already, so nothing is to do", o->save_stats);
    return status;
}

static ft_status write_stage(shard_output *s, const ft_activation_stats_options *options,
                             ft_error *err)
{
    FT_TRY(s->header.stage == FT_STAGE_RANGES ? count_ranges(s, err)
                                              : collect_inputs(s, options, err));
    return ft_shard_writer_commit(&s->writer, err);
}

static ft_status run_stage(ft_calibration_job *j, ft_shard_stage stage,
                           const ft_activation_stats_options *options, ft_error *err)
{
    shard_output s = { .job = j };
    FT_TRY(ft_shard_describe(&s.header, stage, j->options->shard, options, err));
    if (j->stats == NULL)
        return check_existing(&s, err);
    ft_status status = write_stage(&s, options, err);
    ft_shard_writer_fini(&s.writer);
    return status;
}

/* ---- Choosing the stage ------------------------------------------------------------------- */

static ft_status fail_complete(const ft_calibration_job *j, ft_error *err)
{
    return j->options->n_stats > 0
               ? ft_fail(err, FT_EARG,
                         "%s: the merged files have all stages: make the artifact of them, with -o "
                         "instead of --shard",
                         j->options->stats[0])
               : ft_fail(err, FT_EARG,
                         "%s: nothing depends on samples, so there is nothing to shard",
                         j->options->input);
}

static ft_status run_after_smoothing(ft_calibration_job *j, ft_error *err)
{
    ft_activation_stats_options options = ft_calibration_stats_options(j);
    if (j->needs_ranges && !ft_merged_shards_have(&j->shards, FT_STAGE_RANGES))
        return run_stage(j, FT_STAGE_RANGES, &options, err);
    if (!ft_recipe_needs_data(j->recipe) || ft_merged_shards_have(&j->shards, FT_STAGE_INPUTS))
        return fail_complete(j, err);
    options.moments = ft_refinement_needs_moments(j->recipe);
    return run_stage(j, FT_STAGE_INPUTS, &options, err);
}

ft_status ft_calibration_run_shard(ft_calibration_job *j, ft_error *err)
{
    if (ft_calibration_wants_smoothing(j) &&
        !ft_merged_shards_have(&j->shards, FT_STAGE_SMOOTHING)) {
        const ft_smooth_options smooth = ft_calibration_smooth_options(j);
        const ft_activation_stats_options options = ft_smooth_stats_options(&smooth);
        return run_stage(j, FT_STAGE_SMOOTHING, &options, err);
    }
    FT_TRY(ft_calibration_prepare(j, err));
    return run_after_smoothing(j, err);
}
