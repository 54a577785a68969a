/*
 * counters.h - the counters of all calibration points of a model, and what they were counted on.
 *
 * Several machines may each observe a range of the samples; their sets merge into one that is
 * the same, byte for byte, as if one had seen them all.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CALIBRATE_RANGES_COUNTERS_H
#define FT_CALIBRATE_RANGES_COUNTERS_H

#include "kernels/count.h"
#include "runtime/error.h"

enum {
    FT_FINGERPRINT = 32,      /* bytes of a SHA-256 */
    FT_COUNTER_POINTS = 4096, /* at most, in a set */
    FT_COUNTER_NAME = 255,    /* bytes of a point's name, at most */
    FT_COUNTER_RANGES = 4096, /* of samples, at most */
};

/* The counters of one named point: "layer.3.ffn.gelu". */
typedef struct ft_counters {
    char *name;
    ft_counts counts;
} ft_counters;

/* Samples first .. last-1 of some data: shards may be parts of one file or files of their own. */
typedef struct ft_sample_range {
    uint8_t data[FT_FINGERPRINT]; /* of the whole sample data */
    uint64_t first, last;
} ft_sample_range;

typedef struct ft_counter_set {
    uint8_t model[FT_FINGERPRINT]; /* of the float artifact's configuration and tensors */
    size_t range_count;
    ft_sample_range *range; /* by data, then ascending; no two overlap or touch */
    size_t count;
    ft_counters *point; /* [count] in the order of the plan */
} ft_counter_set;

/*
 * Make an empty set for the points named; names are copied.  Errors, which name `who`: FT_ELIMIT
 * for too many points or too long a name, FT_EARG for an empty or a repeated one.
 */
ft_status ft_counter_set_new(ft_counter_set **out, const uint8_t model[FT_FINGERPRINT],
                             const char *const *names, size_t count, const char *who,
                             ft_error *err);
void ft_counter_set_free(ft_counter_set *set); /* takes NULL */

/* The point of that name, or NULL. */
ft_counters *ft_counter_set_find(const ft_counter_set *set, const char *name);

/*
 * Note that samples first .. last-1 have been counted.  FT_EARG when the range is empty or some of
 * it had been counted already; `who` (a file, say) is named in the error.
 */
ft_status ft_counter_set_cover(ft_counter_set *set, ft_sample_range range, const char *who,
                               ft_error *err);

/* All samples counted. */
uint64_t ft_counter_set_samples(const ft_counter_set *set);

/*
 * Add the counters of `from`, which `who` names in errors.  FT_EARG, and `set` as it was, when it
 * is of another model, other points, or samples that `set` has already counted.
 */
ft_status ft_counter_set_merge(ft_counter_set *set, ft_counter_set *from, const char *who,
                               ft_error *err);

/* Bring all counters to their one form; then equal sets are equal byte for byte. */
void ft_counter_set_settle(ft_counter_set *set);

#endif
