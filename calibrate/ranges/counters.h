/*
 * counters.h - the counters of all calibration points of a model, and the samples they cover.
 *
 * Several machines can observe different ranges of the samples; merging their counter sets gives
 * the same bytes as one machine that observed all of them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CALIBRATE_RANGES_COUNTERS_H
#define FT_CALIBRATE_RANGES_COUNTERS_H

#include "kernels/count.h"
#include "runtime/error.h"

enum {
    FT_FINGERPRINT = 32,      /* bytes of a SHA-256 */
    FT_COUNTER_POINTS = 4096, /* maximum points of a set */
    FT_COUNTER_NAME = 255,    /* maximum bytes of a point's name */
    FT_COUNTER_RANGES = 4096, /* maximum ranges of samples */
};

/* The counters of one named point: "layer.3.ffn.gelu". */
typedef struct ft_counters {
    char *name;
    ft_counts counts;
} ft_counters;

/*
 * Samples first .. last - 1 of a data set: shards may be parts of one file, or separate files.
 */
typedef struct ft_sample_range {
    uint8_t data[FT_FINGERPRINT]; /* hash of the entire data set */
    uint64_t first, last;
} ft_sample_range;

typedef struct ft_counter_set {
    uint8_t model[FT_FINGERPRINT]; /* hash of the float artifact's configuration and tensors */
    size_t range_count;
    ft_sample_range *range; /* sorted by data, then by first; disjoint and not adjacent */
    size_t count;
    ft_counters *point; /* [count], in the order of the plan */
} ft_counter_set;

/*
 * Creates an empty set for the named points; names are copied. Errors, which start with `who`:
 * FT_ELIMIT for too many points or too long a name, FT_EARG for an empty or a duplicate one.
 */
ft_status ft_counter_set_new(ft_counter_set **out, const uint8_t model[FT_FINGERPRINT],
                             const char *const *names, size_t count, const char *who,
                             ft_error *err);
void ft_counter_set_free(ft_counter_set *set); /* accepts NULL */

/* The point of that name, or NULL. */
ft_counters *ft_counter_set_find(const ft_counter_set *set, const char *name);

/*
 * Records that samples first .. last - 1 have been counted. FT_EARG if the range is empty or
 * overlaps one that is already counted; `who` (a file, say) is named in the error.
 */
ft_status ft_counter_set_add_range(ft_counter_set *set, ft_sample_range range, const char *who,
                                   ft_error *err);

/* The number of samples counted. */
uint64_t ft_counter_set_samples(const ft_counter_set *set);

/*
 * Adds the counters of `from`, which errors name `who`. FT_EARG, with `set` unchanged, if it was
 * counted with another model, other points, or samples that `set` has already counted.
 */
ft_status ft_counter_set_merge(ft_counter_set *set, ft_counter_set *from, const char *who,
                               ft_error *err);

/* Brings all counters into canonical form, in which equal sets are equal byte for byte. */
void ft_counter_set_finalize(ft_counter_set *set);

#endif
