/*
 * count.h - magnitude counters of calibration: how often each magnitude of a stream of values
 * occurs.
 *
 * Counting is integer addition, so the order of the values and the number of threads, shards or
 * devices do not change a bit; histograms and scales are derived afterwards, from all values at
 * once.  A magnitude |x| is counted in one of two places:
 *
 *   the tail  the FT_COUNT_TAIL largest magnitudes, each exactly (their float bits);
 *   the body  all others, by key: the exponent and the top twelve bits of the mantissa.
 *
 * The reference histogram has 2048 bins on [0, amax], so that a bin near amax is about as wide as
 * ten bits of mantissa.  A body alone would need every bit to assign each value to its bin, and one
 * wrong non-empty bin changes the amax that the methods select.  Bins with few values exist in the
 * tail only.  With an exact tail, up to 65536 values give exactly the reference histogram, and so
 * does f16 and bf16 data of any size, whose mantissas fit a key (above 2^-40).
 *
 * For more f32 values, a key is at most half a bin.  Results of tests/bench/counters on 75 sets of
 * 2^16 to 2^24 values from five distributions: at most 1.2 % of the values move to the neighbouring
 * bin; all percentiles from 99 to 99.999 equal the reference; the amax of mse differs by at most
 * 1.3 %, its SQNR by 0.01 dB; entropy, which has many minima of almost the same depth, selects
 * another one in 20 sets.  Fourteen bits would halve these figures and quadruple the memory.  Ten
 * bits without a tail moved up to 5 % and missed percentiles.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_COUNT_H
#define FT_KERNELS_COUNT_H

#include "kernels/layout.h"

#pragma GCC visibility push(default) /* linked by the tools: FT_PRIVATE */

enum {
    FT_COUNT_MANTISSA = 12,       /* bits of the mantissa in a key */
    FT_COUNT_EXPONENT = 127 - 40, /* smaller magnitudes than 2^-40 have key 0 */
    FT_COUNT_BINADES = 64,        /* 2^-40 .. 2^24; larger ones have the last key */
    FT_COUNT_BASE =
        (FT_COUNT_EXPONENT << FT_COUNT_MANTISSA) - 1, /* the key of magnitude 0 before the offset */
    FT_COUNT_KEYS = (FT_COUNT_BINADES << FT_COUNT_MANTISSA) + 1,
    FT_COUNT_TAIL = 1 << 16,
    FT_COUNT_TAIL_CAPACITY = 2 * FT_COUNT_TAIL,
};

/* Sign bit of a float.  Bits of |x| compare like magnitudes; from FT_COUNT_INFINITY on: infinity,
 * NaN. */
#define FT_COUNT_SIGN 0x80000000u
#define FT_COUNT_INFINITY 0x7f800000u

/* The key of a finite magnitude, given as its float bits. */
FT_HOST_DEVICE uint32_t ft_count_key(uint32_t magnitude)
{
    uint32_t key = magnitude >> (23 - FT_COUNT_MANTISSA);
    key = key > FT_COUNT_BASE ? key - FT_COUNT_BASE : 0;
    return key < FT_COUNT_KEYS ? key : FT_COUNT_KEYS - 1;
}

/* The smallest magnitude with this key, as float bits: it represents the key. */
FT_HOST_DEVICE uint32_t ft_count_magnitude(uint32_t key)
{
    return key == 0 ? 0 : (key + FT_COUNT_BASE) << (23 - FT_COUNT_MANTISSA);
}

/* The counters of one calibration point: 2.5 MB, of which only touched pages use memory. */
typedef struct ft_counts {
    uint64_t *key;  /* [FT_COUNT_KEYS] the body; zeros are part of key 0 */
    uint32_t *tail; /* [FT_COUNT_TAIL_CAPACITY] at least the FT_COUNT_TAIL largest magnitudes, any
                       order */
    size_t tail_used;
    uint32_t
        threshold; /* magnitudes up to this one are counted in the body, greater ones in the tail */
    uint64_t zeros, nans, infinities; /* NaN and infinity are in neither tail nor body */
} ft_counts;

/* False if allocation fails.  fini also accepts counters that failed to init or are zeroed. */
bool ft_counts_init(ft_counts *counts);
void ft_counts_fini(ft_counts *counts);

/* Keep the FT_COUNT_TAIL largest magnitudes in the tail, move the others to the body. */
void ft_counts_trim_tail(ft_counts *counts);

/*
 * Bring counters to a canonical form that depends only on the values counted: a tail of at most
 * FT_COUNT_TAIL magnitudes in ascending order.
 */
void ft_counts_finalize(ft_counts *counts);

/* Count `times` values of one magnitude, given as float bits; infinity and NaN are valid. */
void ft_counts_add_value(ft_counts *counts, uint32_t magnitude, uint64_t times);

/* Add the counts of `from`, which has been finalized. */
void ft_counts_merge(ft_counts *counts, const ft_counts *from);

/* Number of finite values counted. */
uint64_t ft_counts_total(const ft_counts *counts);

#pragma GCC visibility pop

#endif
