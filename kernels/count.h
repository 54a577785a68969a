/*
 * count.h - what calibration remembers of a stream of values: how often each magnitude came.
 *
 * Counting is integer addition, so the order of the values and the number of threads, shards or
 * devices never change a bit; histograms and scales are derived afterwards, from all values at
 * once.  A magnitude |x| is remembered in one of two places:
 *
 *   the tail  the FT_COUNT_TAIL largest magnitudes, each exactly (their float bits);
 *   the body  all others, by key: the exponent and the top twelve bits of the mantissa.
 *
 * The reference histogram has 2048 bins on [0, amax], so near amax a bin is about as wide as ten
 * bits of mantissa: a body alone would have to keep every bit to put each value into its bin, and
 * a bin that should be empty but is not changes what the methods choose.  But only in the tail do
 * bins hold few values.  With the tail exact, up to 65536 values give exactly the reference's
 * histogram, and so does f16 and bf16 data of any size, whose mantissas fit a key (above 2^-40).
 *
 * For more f32 values, a key is at most half a bin.  tests/bench/counters measured, on 75 sets of
 * 2^16 to 2^24 values of five shapes: at most 1.2 % of the values move to the neighbouring bin; all
 * percentiles from 99 to 99.999 are the reference's; mse's amax differs by at most 1.3 %, its SQNR
 * by 0.01 dB; entropy, which has many minima of almost the same depth, takes another one in 20
 * sets.  Fourteen bits would halve these figures and quadruple the memory.  Ten bits and no tail
 * moved up to 5 % and missed percentiles.
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
    FT_COUNT_BASE = (FT_COUNT_EXPONENT << FT_COUNT_MANTISSA) - 1, /* what key 0 would be uncut */
    FT_COUNT_KEYS = (FT_COUNT_BINADES << FT_COUNT_MANTISSA) + 1,
    FT_COUNT_TAIL = 1 << 16,
    FT_COUNT_TAIL_CAPACITY = 2 * FT_COUNT_TAIL,
};

/* Bits of |x|, which order like the magnitudes; from here on, infinity and NaN. */
#define FT_COUNT_SIGN 0x80000000u
#define FT_COUNT_INFINITY 0x7f800000u

/* The key of a finite magnitude, given as its float bits. */
FT_HOST_DEVICE uint32_t ft_count_key(uint32_t magnitude)
{
    uint32_t key = magnitude >> (23 - FT_COUNT_MANTISSA);
    key = key > FT_COUNT_BASE ? key - FT_COUNT_BASE : 0;
    return key < FT_COUNT_KEYS ? key : FT_COUNT_KEYS - 1;
}

/* The magnitude that stands for a key, as float bits: the smallest one that has it. */
FT_HOST_DEVICE uint32_t ft_count_magnitude(uint32_t key)
{
    return key == 0 ? 0 : (key + FT_COUNT_BASE) << (23 - FT_COUNT_MANTISSA);
}

/* The counters of one calibration point: 2.5 MB, of which the system provides what is touched. */
typedef struct ft_counts {
    uint64_t *key;  /* [FT_COUNT_KEYS] the body; zeros are part of key 0 */
    uint32_t *tail; /* [FT_COUNT_TAIL_CAPACITY] at least the FT_COUNT_TAIL largest magnitudes, any
                       order */
    size_t tail_used;
    uint32_t threshold; /* magnitudes up to this one belong to the body, greater ones to the tail */
    uint64_t zeros, nans, infinities; /* NaN and infinity are in neither place */
} ft_counts;

/* False when there is no memory.  fini takes a failed or zeroed one too. */
bool ft_counts_init(ft_counts *counts);
void ft_counts_fini(ft_counts *counts);

/* Make room: keep the FT_COUNT_TAIL largest magnitudes of the tail, move the rest to the body. */
void ft_counts_trim_tail(ft_counts *counts);

/*
 * Bring counters to the one form that depends only on the values counted: a tail of at most
 * FT_COUNT_TAIL magnitudes in ascending order.
 */
void ft_counts_finalize(ft_counts *counts);

/* Count `times` values of one magnitude, given as its float bits: anything, also NaN. */
void ft_counts_add_value(ft_counts *counts, uint32_t magnitude, uint64_t times);

/* Add the counts of `from`, which is settled. */
void ft_counts_merge(ft_counts *counts, const ft_counts *from);

/* All finite values counted. */
uint64_t ft_counts_total(const ft_counts *counts);

#pragma GCC visibility pop

#endif
