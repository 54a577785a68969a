/*
 * merged_shards.h - the files of all shards, as one source of counters and statistics.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CALIBRATE_SHARDS_MERGED_SHARDS_H
#define FT_CALIBRATE_SHARDS_MERGED_SHARDS_H

#include "calibrate/shards/shard_file.h"

/* The files of a stage, in the order of their shards; count 0: the stage is missing. */
typedef struct ft_stage_files {
    const ft_shard_file *file;
    size_t count;
} ft_stage_files;

typedef struct ft_merged_shards {
    ft_shard_file *file;
    size_t count;
    ft_stage_files stage[FT_NUM_STAGES];
    ft_stats_source source[FT_NUM_STAGES]; /* the statistics of a stage */
} ft_merged_shards;

/*
 * Opens the files, in any order, whose paths are borrowed. Those of each stage must be all shards
 * of one split, each once, with the same inputs: FT_EARG otherwise. fini also accepts a zeroed or
 * failed one. The errors of ft_shard_file_open().
 */
FT_MUST_USE ft_status ft_merged_shards_open(ft_merged_shards *merged, const char *const *path,
                                            size_t count, ft_error *err);
void ft_merged_shards_fini(ft_merged_shards *merged);

/*
 * What a file of a stage says of itself, but for the number of inputs, if its statistics have these
 * options. Errors of computing fingerprints.
 */
FT_MUST_USE ft_status ft_shard_describe(ft_shard_header *out, ft_shard_stage stage, ft_shard shard,
                                        const ft_activation_stats_options *options, ft_error *err);

/*
 * FT_EARG, with what was found and expected, unless a file describes what `expected` does, but for
 * its shard and the number of inputs; moments that are not needed do no harm.
 */
FT_MUST_USE ft_status ft_shard_file_check(const ft_shard_file *file,
                                          const ft_shard_header *expected, ft_error *err);

/* Whether there are files of a stage. */
bool ft_merged_shards_have(const ft_merged_shards *merged, ft_shard_stage stage);

/*
 * *out: the sums of a stage over all samples, for options->source; NULL if no files are merged at
 * all. FT_EARG if the files lack the stage, or do not fit the options.
 */
FT_MUST_USE ft_status ft_merged_shards_find(const ft_stats_source **out,
                                            const ft_merged_shards *merged, ft_shard_stage stage,
                                            const ft_activation_stats_options *options,
                                            ft_error *err);

/* Adds the counters of all shards; the model, data and samples are those of the options. */
FT_MUST_USE ft_status ft_merged_shards_count(const ft_merged_shards *merged, ft_counter_set *set,
                                             const ft_activation_stats_options *options,
                                             ft_error *err);

#endif
