/*
 * run_shard.h - calibration in shards: each process runs a part of the samples, and one of them
 * makes the artifact of what all have counted and summed up.
 *
 * What depends on all samples is done in stages, in this order: SmoothQuant's statistics of the
 * model, the ranges of the model that it rewrites, the statistics of imatrix, AWQ and GPTQ. Most
 * calibrations have one stage; only w8a8 with SmoothQuant has two.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CALIBRATE_RUN_SHARD_H
#define FT_CALIBRATE_RUN_SHARD_H

#include "calibrate/job.h"

/*
 * Opens the merged files, and refuses what has no exact sums: GPTAQ, budgets and targets of w4a16,
 * ranges next to statistics, given ranges, GPUs. FT_EARG, FT_EUNSUPPORTED, and the errors of
 * ft_merged_shards_open(). Does nothing in a calibration without shards.
 */
FT_MUST_USE ft_status ft_calibration_open_shards(ft_calibration_job *j, ft_error *err);

/*
 * Runs the shard's samples for the first stage that the merged files lack, and commits the file;
 * with --resume, does nothing if it is there. FT_EARG if no stage is left, or if the file is one of
 * another shard, model or data.
 */
FT_MUST_USE ft_status ft_calibration_run_shard(ft_calibration_job *j, ft_error *err);

#endif
