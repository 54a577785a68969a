/*
 * channels.h - the outlier channels of calibration points: columns whose values are much larger
 * than those of the others, for which one range a tensor is a poor fit.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CALIBRATE_RANGES_CHANNELS_H
#define FT_CALIBRATE_RANGES_CHANNELS_H

#include "runtime/data/dataset.h"
#include "runtime/model/model.h"

/* Samples that suffice: outlier channels are the same for nearly all inputs. */
enum { FT_CHANNEL_SAMPLES = 16, FT_CHANNEL_CELLS = 64 };

/* A channel is an outlier if its largest magnitude is at least this multiple of the median's. */
enum { FT_OUTLIER_FACTOR = 4 };

typedef struct ft_channel_summary {
    size_t channels; /* 0: not measured */
    size_t outliers; /* of them */
    float median;    /* of the largest magnitude of each channel */
    int cells;       /* at most FT_CHANNEL_CELLS; each has the same number of channels, */
    float cell[FT_CHANNEL_CELLS]; /* up to rounding: the largest magnitude of its channels */
} ft_channel_summary;

/* Summarize the largest magnitude of each of `channels` channels, which are sorted afterwards. */
void ft_channel_summary_init(ft_channel_summary *out, float *amax, size_t channels);

/*
 * Run a model in observe mode on rows first .. last - 1, one after the other, and summarize the
 * channels of the named values: out[count].  Names that the plan does not store remain unmeasured.
 */
FT_MUST_USE ft_status ft_measure_channels(ft_channel_summary *out, const char *const *name,
                                          size_t count, const ft_model *model,
                                          const ft_dataset *data, size_t first, size_t last,
                                          ft_error *err);

#endif
