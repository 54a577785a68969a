/*
 * philox-t.c - ft_philox_words() gives the words of cuRAND's Philox4x32-10.
 *
 * The oracle is cuRAND's host API, whose host generator needs no GPU.  It lays the subsequences of
 * one counter side by side: output word i of counter c and subsequence s is element
 * 4 * (c * SUBSEQUENCES + s) + i.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "tests/tap/tap.h"

#ifdef HAVE_CUDA

#include "kernels/philox.h"

#include <curand.h>
#include <stdlib.h>

enum { SUBSEQUENCES = 65536, COUNTERS = 5 };

/* The first words of all subsequences, for the counters 0 .. COUNTERS - 1. */
static bool generate(uint32_t *out, uint64_t seed)
{
    curandGenerator_t generator;
    if (curandCreateGeneratorHost(&generator, CURAND_RNG_PSEUDO_PHILOX4_32_10) !=
        CURAND_STATUS_SUCCESS)
        return false;
    bool fine = curandSetPseudoRandomGeneratorSeed(generator, seed) == CURAND_STATUS_SUCCESS &&
                curandGenerate(generator, out, (size_t) COUNTERS * SUBSEQUENCES * 4) ==
                    CURAND_STATUS_SUCCESS;
    return curandDestroyGenerator(generator) == CURAND_STATUS_SUCCESS && fine;
}

static size_t count_different(const uint32_t *expected, uint64_t seed)
{
    size_t different = 0;
    for (uint32_t c = 0; c < COUNTERS; c++)
        for (uint32_t s = 0; s < SUBSEQUENCES; s++) {
            ft_philox words = ft_philox_words(seed, (ft_philox){ { c, 0, s, 0 } });
            for (size_t i = 0; i < 4; i++)
                different += words.word[i] != expected[((size_t) c * SUBSEQUENCES + s) * 4 + i];
        }
    return different;
}

int main(void)
{
    static const uint64_t seeds[] = { 0,         1, 42, 0xffffffff, 0x100000000, 0x123456789abcdef0,
                                      UINT64_MAX };
    uint32_t *expected = malloc((size_t) COUNTERS * SUBSEQUENCES * 4 * sizeof *expected);
    if (expected == NULL)
        bail_out("no memory");
    for (size_t i = 0; i < sizeof seeds / sizeof *seeds; i++) {
        uint64_t seed = seeds[i];
        if (!generate(expected, seed))
            bail_out("cuRAND's host generator failed for seed %#llx", (unsigned long long) seed);
        is_int((long) count_different(expected, seed), 0,
               "all words of 5 counters and 65,536 subsequences equal cuRAND's for seed %#llx",
               (unsigned long long) seed);
        ok(ft_philox_draw(seed, 3) == ((uint64_t) expected[3 * SUBSEQUENCES * 4] << 32 |
                                       expected[3 * SUBSEQUENCES * 4 + 1]),
           "ft_philox_draw() returns cuRAND's first two words of counter 3 for seed %#llx",
           (unsigned long long) seed);
    }
    free(expected);
    return done_testing();
}

#else

int main(void)
{
    skip_all("this build has no CUDA, and so no cuRAND");
}

#endif
