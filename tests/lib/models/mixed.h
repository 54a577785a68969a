/*
 * mixed.h - the random numbers from which tests/golden/make-llama.py makes weights.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_TESTS_LIB_MODELS_MIXED_H
#define FT_TESTS_LIB_MODELS_MIXED_H

#include <stdint.h>
#include <stdio.h>

/* The seed of a tensor of a variant: FNV-1a. */
static inline uint64_t mixed_hash(const char *variant, const char *name)
{
    char text[160];
    uint64_t h = 0xcbf29ce484222325;
    snprintf(text, sizeof text, "%s/%s", variant, name);
    for (const char *byte = text; *byte != '\0'; byte++)
        h = (h ^ (unsigned char) *byte) * 0x100000001b3;
    return h;
}

/* Element `index`, from -128 to 127: SplitMix64. */
static inline int mixed_number(uint64_t h, uint64_t index)
{
    uint64_t z = h + (index + 1) * 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return (int) ((z ^ (z >> 31)) >> 56) - 128;
}

#endif
