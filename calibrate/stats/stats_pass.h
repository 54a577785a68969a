/*
 * stats_pass.h - one pass over the samples that adds up statistics of some inputs.
 *
 * With a prefix, a second model of the same graph whose earlier matrices are quantized already, the
 * statistics are those of its inputs xq. Next to them stand the products (x - xq)[i] * xq[j], where
 * x is the input of the original model: what rounding needs to make up for the errors of the
 * prefix.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CALIBRATE_STATS_STATS_PASS_H
#define FT_CALIBRATE_STATS_STATS_PASS_H

#include "calibrate/stats/activation_stats.h"
#include "runtime/model/activation_checkpoint.h"

typedef struct ft_stats_pass {
    const ft_activation_stats_options *options;
    const ft_model *prefix; /* NULL: none. It has the values of options->model under their names */
    ft_input_stats *input;  /* [count] */
    size_t count;
    size_t longest; /* tokens of the longest sample */

    /* The samples to run; the sums of these alone go to the sink, and the inputs keep none. */
    ft_shard shard;
    const ft_stats_sink *sink; /* NULL: the inputs get the sums */

    /* Where samples resume, of each model; [last - first + 1], the last one for row 0; or NULL. */
    ft_activation_checkpoint *checkpoint, *prefix_checkpoint;
} ft_stats_pass;

/*
 * Sets the statistics of the inputs, from forward passes or from the source of the options, of
 * moments and of `cross` only what is needed. Those of the original model are not rescaled; inputs
 * behind a prefix are expected to be divided by their factor already. Errors: those of
 * ft_activation_stats_collect().
 */
FT_MUST_USE ft_status ft_stats_pass_run(const ft_stats_pass *pass, ft_error *err);

#endif
