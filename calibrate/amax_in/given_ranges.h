/*
 * given_ranges.h - the ranges that a file gives for the calibration points of a model.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CALIBRATE_AMAX_IN_GIVEN_RANGES_H
#define FT_CALIBRATE_AMAX_IN_GIVEN_RANGES_H

#include "calibrate/amax_in/amax_in.h"

typedef struct ft_given_range {
    bool given;
    float smallest;      /* of all ranges of this point; entry.amax is the largest */
    ft_amax_entry entry; /* without a name */
} ft_given_range;

typedef struct ft_given_ranges {
    const char *path; /* of the file, for messages */
    const ft_amax_input *input;
    ft_given_range *range; /* [values of the graph], owned */
} ft_given_ranges;

/* FT_ENOMEM. fini also accepts a failed or zeroed one. */
FT_MUST_USE ft_status ft_given_ranges_init(ft_given_ranges *ranges, const char *path,
                                           const ft_amax_input *input, ft_error *err);
void ft_given_ranges_fini(ft_given_ranges *ranges);

/* The calibration point of that name as an index of the graph's values; -1: there is none. */
int ft_given_ranges_find(const ft_given_ranges *ranges, const char *point);

/*
 * Adds a range of a calibration point; of several the largest is kept. `source` is the name of the
 * range in the file; FT_EFORMAT with it unless amax is positive and finite and has a scale.
 */
FT_MUST_USE ft_status ft_given_ranges_add(ft_given_ranges *ranges, int value,
                                          const ft_amax_entry *entry, const char *source,
                                          ft_error *err);

/* The same with nothing known but amax; `method` says where it comes from. */
FT_MUST_USE ft_status ft_given_ranges_add_amax(ft_given_ranges *ranges, int value, float amax,
                                               const char *method, const char *source,
                                               ft_error *err);

/*
 * Makes the table of all points. FT_EFORMAT with the names of missing points. Adds a note if the
 * ranges of a point differ by more than 1 %.
 */
FT_MUST_USE ft_status ft_given_ranges_finish(const ft_given_ranges *ranges, ft_amax_table **out,
                                             ft_error *err);

/*
 * Sets the scales of an int8 matrix from the amax of each row. A row whose scale would be zero or
 * subnormal gets the scale of its own weights instead. FT_EFORMAT for an amax that is negative or
 * not finite.
 */
FT_MUST_USE ft_status ft_given_row_ranges(ft_quantized_weight *quantized, const float *amax,
                                          const char *path, const char *source, ft_error *err);

#endif
