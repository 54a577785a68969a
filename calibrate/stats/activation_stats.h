/*
 * activation_stats.h - statistics of the inputs of linear layers over calibration data, for
 * SmoothQuant, AWQ, GPTQ and imatrix.
 *
 * Linears that read the same value share its statistics. Each sample is a separate forward pass on
 * one thread, and the contributions of samples are added exactly (exact_sums.h). So neither the
 * order of the samples nor the number of threads or passes changes a bit.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CALIBRATE_STATS_ACTIVATION_STATS_H
#define FT_CALIBRATE_STATS_ACTIVATION_STATS_H

#include "calibrate/stats/exact_sums.h"
#include "calibrate/stats/shard.h"
#include "runtime/container/artifact.h"
#include "runtime/data/dataset.h"
#include "runtime/model/activation_checkpoint.h"

/*
 * Rows and extremes of every second sample: what one half suggests can be judged by the other.
 *
 * Kept rows are evenly spaced. Of one in eight samples, the row with the largest magnitude is one
 * of them: such rows are rare, but clipping them is expensive.
 */
typedef struct ft_half_stats {
    float *x; /* [rows, cols] kept rows; NULL: not in memory */
    size_t rows, max_rows;
    float *amax;    /* [cols] maxima of |x| over all rows */
    double *square; /* [cols] sums of x * x */
    ft_exact_sums sums; /* from which `square` comes */
} ft_half_stats;

/* Statistics of the input x of one or more linears, one row per token. */
typedef struct ft_input_stats {
    const char *name; /* name of the value; borrowed from the model */
    int value;        /* index in the model's plan */
    size_t cols;
    uint64_t rows;         /* rows accumulated; 0: none yet */
    double *magnitude;     /* [cols] sums of |x| */
    double *square;        /* [cols] sums of x * x */
    double *moments;       /* [cols, cols], symmetric: sums of x[i] * x[j]; NULL: not in memory */
    ft_half_stats half[2]; /* of samples with even and with odd numbers */

    double *cross; /* [cols, cols]: sums of (x' - x)[i] * x[j], x' of the original model; or NULL */

    /*
     * [cols], or NULL. All statistics are those of x / factor: the linears' columns are multiplied
     * by factor.
     */
    float *factor;
} ft_input_stats;

typedef struct ft_activation_stats {
    ft_input_stats *input; /* [count], in the order of the plan */
    size_t count;
    int *input_of_weight; /* [nweight of the model]: index of the input, or -1 */

    /* Private to activation_stats.c. */
    const struct ft_activation_stats_options *options;
    size_t max_tokens; /* tokens of the longest sample */
    ft_activation_checkpoint checkpoint, prefix_checkpoint;
} ft_activation_stats;

/*
 * Where the sums of all samples come from instead of forward passes. `read` fills in the sums,
 * which are 0 and have moments if they are needed, and what the halves of the input, if they are in
 * memory, say of their samples. It fails for an input that it does not know.
 */
typedef struct ft_stats_source {
    ft_status (*read)(void *user, ft_input_stats *input, ft_exact_sums *sums, ft_error *err);
    void *user;
} ft_stats_source;

/* Receives the sums of some of the samples, input by input in the order of the plan. */
typedef struct ft_stats_sink {
    ft_status (*begin)(void *user, const ft_activation_stats *stats, ft_error *err);
    ft_status (*add)(void *user, const ft_input_stats *input, const ft_exact_sums *sums,
                     ft_error *err);
    void *user;
} ft_stats_sink;

/* Borrowed as long as the statistics exist. */
typedef struct ft_activation_stats_options {
    const ft_model *model; /* opened in observe mode */
    const ft_dataset *data;
    uint64_t first, last; /* samples first .. last - 1 */
    const char *device;   /* of the model; NULL: the CPU */
    int threads;          /* parallel sessions; 1 on a GPU */
    int workers;          /* threads for linear algebra and quantization; 0: as many as sessions */
    size_t memory;    /* maximum bytes for statistics, their buffers and checkpoints; 0: no limit */
    bool moments;     /* second moments are needed, not only squares and magnitudes */
    size_t kept_rows; /* rows of each input to keep, at most; 0: no halves */
    const ft_stats_source *source; /* NULL: forward passes */
    void (*stage)(void *user, const char *what, const char *unit);
    ft_progress_callback progress; /* may be NULL, as may `stage` */
    void *user;
} ft_activation_stats_options;

static inline int ft_activation_stats_workers(const ft_activation_stats_options *options)
{
    return options->workers > 0 ? options->workers : options->threads;
}

/*
 * Finds the inputs of the matrices of a model for which `wanted`, [nweight], is true. Errors:
 * FT_ENOMEM.
 */
FT_MUST_USE ft_status ft_activation_stats_init(ft_activation_stats *inputs,
                                               const ft_activation_stats_options *options,
                                               const bool *wanted, ft_error *err);
void ft_activation_stats_fini(
    ft_activation_stats *inputs); /* also accepts a zeroed or failed one */

/*
 * Ensures that the statistics of an input are in memory. If they are not, runs all samples and
 * accumulates as many inputs, starting with this one, as fit into memory; second moments and kept
 * rows of the others are released. So inputs are best requested in their order.
 *
 * Errors: FT_ENOMEM; FT_EFORMAT if an input is NaN, infinite or too large for exact sums; those of
 * the forward pass.
 */
FT_MUST_USE ft_status ft_activation_stats_collect(ft_activation_stats *inputs,
                                                  ft_input_stats *input, ft_error *err);

/*
 * Hands the statistics of all inputs over the samples of a shard to the sink, in as many passes as
 * memory asks for; they do not stay in memory. Without samples all sums are 0. The errors of
 * collect, and those of the sink.
 */
FT_MUST_USE ft_status ft_activation_stats_collect_shard(ft_activation_stats *inputs, ft_shard shard,
                                                        const ft_stats_sink *sink, ft_error *err);

/*
 * The same as collect for one input of a model whose earlier matrices are quantized already, with
 * `cross` (stats_pass.h). Statistics of all other inputs are released. The same errors.
 */
FT_MUST_USE ft_status ft_activation_stats_collect_behind(ft_activation_stats *inputs,
                                                         ft_input_stats *input,
                                                         const ft_model *prefix, ft_error *err);

/*
 * Rescales the sums to those of x / factor, [cols], all positive. Takes ownership of
 * `factor`. At most once.
 */
void ft_input_stats_rescale(ft_input_stats *input, float *factor);

#endif
