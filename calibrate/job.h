/*
 * job.h - the resources of a calibration, and how they are opened.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CALIBRATE_JOB_H
#define FT_CALIBRATE_JOB_H

#include "calibrate/calibrate.h"
#include "calibrate/shards/merged_shards.h"
#include "calibrate/smooth/smooth.h"
#include "calibrate/times/times_file.h"
#include "calibrate/weights/quantized.h"
#include "calibrate/weights/refine.h"
#include "runtime/data/dataset.h"
#include "runtime/data/image_files/image_list.h"
#include "runtime/model/model.h"
#include "runtime/base/atomic_file.h"

/* Everything that is open; ft_calibrate() closes it. */
typedef struct ft_calibration_job {
    const ft_calibration_options *options;
    ft_calibration_callbacks callbacks;
    ft_report *report;
    const char
        *input; /* the float artifact that is calibrated: the options', or the rewritten one */
    ft_model *model;
    ft_image_list images, eval_images; /* the files of data and eval, if they are images */
    ft_dataset data, eval;
    ft_artifact_writer *writer, *draft; /* the output; what is evaluated before it, or NULL */
    ft_artifact_writer *rewritten; /* a temporary float artifact, or NULL; and its path */
    char *rewritten_path;
    ft_atomic_file *counters, *report_file;
    ft_atomic_file *stats;   /* the file of a shard; NULL: none, or it is finished already */
    ft_merged_shards shards; /* the files of shards that are merged */
    ft_counter_set *set;
    ft_amax_table *amax;
    const ft_recipe *recipe;
    ft_measured_times times; /* of the target machine; path NULL: none */
    ft_quantized_weight *quantized;
    size_t n_quantized;
    ft_smoothquant kept; /* factors that are not folded into the model, and the points in use */
    ft_smoothing *smoothing;
    size_t n_smoothing;
    ft_refinement refining;
    char *selftest; /* the entry of the artifact, or NULL */
    size_t selftest_bytes;
    bool is_groupwise, needs_ranges; /* whether any matrix is group-wise, or needs ranges */
    bool compares_artifact; /* evaluate the written artifact, not weights quantized in memory */
} ft_calibration_job;

/*
 * Opens what the options name and rejects everything that can be wrong with it: outputs that cannot
 * be written, a model that does not support the recipe, missing samples.
 */
FT_MUST_USE ft_status ft_calibration_open(ft_calibration_job *j, ft_error *err);

/*
 * The samples for evaluation, a view: those of --eval, else those of the data that were not
 * observed, else observed ones, and then *held_out is false.  No rows: there are none.
 */
ft_dataset ft_calibration_eval_data(const ft_calibration_job *j, bool *held_out);

/* One more than the last sample that is observed, of options->first and following; a view of them.
 */
uint64_t ft_calibration_last(const ft_calibration_job *j);
ft_dataset ft_calibration_observed_data(const ft_calibration_job *j);

/*
 * Whether the precisions of an int8 plan can be chosen by their loss: that needs samples, and
 * ranges that are not given.
 */
bool ft_calibration_can_mix(const ft_calibration_job *j);

/* Closes the model and the samples, and opens them again with j->input as the model. */
FT_MUST_USE ft_status ft_calibration_reopen(ft_calibration_job *j, ft_error *err);

/* The quantization configuration for opening the float artifact. */
ft_quant_config ft_calibration_quant_config(const ft_calibration_job *j, ft_mode mode);

/* Reports that a stage starts. */
void ft_calibration_begin_stage(const ft_calibration_job *j, const char *what, const char *unit);

/*
 * Parallel sessions. A GPU counts by keys, so which magnitudes are exact would depend on the
 * session that counted them: one session only.
 */
int ft_calibration_sessions(const ft_calibration_job *j);

/* How statistics of inputs are collected from the samples that are observed. */
ft_activation_stats_options ft_calibration_stats_options(const ft_calibration_job *j);

#endif
