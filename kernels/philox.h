/*
 * philox.h - Philox4x32-10, a counter-based random number generator.
 *
 * The generator has no state: the number for step 7 of seed 42 is a function of 7 and 42, on any
 * device and in any batch.  Counter (step, 0, 0, 0) corresponds to the Philox generator of cuRAND
 * after curand_init(seed, 0, 4 * step), which then returns the four words in order.
 *
 * Source: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", 2011.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_PHILOX_H
#define FT_KERNELS_PHILOX_H

#include "kernels/layout.h"

typedef struct ft_philox {
    uint32_t word[4];
} ft_philox;

/* One round: multiply two words by constants, and XOR high halves with the other words and the key.
 */
FT_HOST_DEVICE ft_philox ft_philox_round(ft_philox c, uint32_t key0, uint32_t key1)
{
    uint64_t a = (uint64_t) 0xd2511f53u * c.word[0];
    uint64_t b = (uint64_t) 0xcd9e8d57u * c.word[2];
    ft_philox out = { { (uint32_t) (b >> 32) ^ c.word[1] ^ key0, (uint32_t) b,
                        (uint32_t) (a >> 32) ^ c.word[3] ^ key1, (uint32_t) a } };
    return out;
}

FT_HOST_DEVICE ft_philox ft_philox_words(uint64_t key, ft_philox counter)
{
    uint32_t key0 = (uint32_t) key, key1 = (uint32_t) (key >> 32);
    for (int i = 0; i < 10; i++) {
        counter = ft_philox_round(counter, key0, key1);
        key0 += 0x9e3779b9u;
        key1 += 0xbb67ae85u;
    }
    return counter;
}

/* 64 random bits for one step of a seed; the first word is the high half. */
FT_HOST_DEVICE uint64_t ft_philox_draw(uint64_t seed, uint32_t step)
{
    ft_philox counter = { { step, 0, 0, 0 } };
    ft_philox words = ft_philox_words(seed, counter);
    return (uint64_t) words.word[0] << 32 | words.word[1];
}

#endif
