/*
 * counters.c - fuzz target: arbitrary bytes read as a counters file.
 *
 * Mutated bytes rarely match their SHA-256, so they are tried a second time with the correct one.
 * An accepted file must equal the output of the writer: it is written and compared with the input.
 * Then it is merged with itself as if it covered other samples.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/ranges/counters_file.h"
#include "calibrate/ranges/method.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/mutate.h"

#include <openssl/sha.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The file written, to memory rather than to a disk, equals the input. */
static void must_be_the_same_again(ft_counter_set *set, const uint8_t *data, size_t size)
{
    char path[64];
    ft_atomic_file *output;
    snprintf(path, sizeof path, "/dev/shm/fuzz-counters.%ld", (long) getpid());
    if (ft_atomic_file_open(&output, path, true, NULL) != FT_OK ||
        ft_counter_set_write(set, output, NULL) != FT_OK)
        abort();
    ft_atomic_file_close(output);
    FILE *file = fopen(path, "rb");
    unsigned char *again = malloc(size + 1);
    if (file == NULL || again == NULL || fread(again, 1, size + 1, file) != size ||
        memcmp(again, data, size) != 0)
        abort();
    fclose(file);
    unlink(path);
    free(again);
}

static void choose_for_all(ft_counter_set *set)
{
    for (size_t i = 0; i < set->count; i++) {
        ft_histogram histogram;
        ft_amax_result choice;
        if (ft_histogram_init(&histogram, &set->point[i], NULL) == FT_OK) {
            ft_compute_amax(&choice, FT_METHOD_PERCENTILE, &histogram, NULL);
            if (!(choice.amax > 0.0f))
                abort();
        }
        ft_histogram_fini(&histogram);
    }
}

/*
 * Shards may be merged in any order: merging a shard of other samples into this one and this one
 * into it gives equal counters or the same error.  Samples already counted are refused.
 */
static void merge(const uint8_t *data, size_t size)
{
    ft_counter_set *a, *b, *ours, *others;
    if (ft_counter_set_parse(&a, data, size, "a", NULL) != FT_OK)
        abort();
    if (ft_counter_set_parse(&ours, data, size, "ours", NULL) != FT_OK ||
        ft_counter_set_parse(&b, data, size, "b", NULL) != FT_OK ||
        ft_counter_set_parse(&others, data, size, "others", NULL) != FT_OK)
        abort();
    uint64_t samples = ft_counter_set_samples(a);
    require(samples == 0 || ft_counter_set_merge(a, ours, "ours", NULL) == FT_EARG);
    require(ft_counter_set_samples(a) == samples);
    for (size_t i = 0; i < b->range_count; i++) {
        b->range[i].data[0] ^= 0x80;
        others->range[i].data[0] ^= 0x80;
    }
    ft_status forth = ft_counter_set_merge(a, b, "b", NULL);
    ft_status back = ft_counter_set_merge(others, ours, "ours", NULL);
    require(forth == back);
    if (forth == FT_OK)
        require(ft_counter_set_samples(a) == ft_counter_set_samples(others) &&
                a->count == others->count);
    for (size_t i = 0; forth == FT_OK && i < a->count; i++)
        require(a->point[i].counts.zeros == others->point[i].counts.zeros);
    ft_counter_set_free(a);
    ft_counter_set_free(b);
    ft_counter_set_free(ours);
    ft_counter_set_free(others);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ft_counter_set *set;
    if (ft_counter_set_parse(&set, data, size, "fuzz", NULL) == FT_OK)
        ft_counter_set_free(set);
    if (size < FT_FINGERPRINT)
        return 0;

    unsigned char *sealed = malloc(size);
    if (sealed == NULL)
        return 0;
    memcpy(sealed, data, size);
    SHA256(sealed, size - FT_FINGERPRINT, sealed + size - FT_FINGERPRINT);
    if (ft_counter_set_parse(&set, sealed, size, "fuzz", NULL) == FT_OK) {
        must_be_the_same_again(set, sealed, size);
        choose_for_all(set);
        merge(sealed, size);
    }
    ft_counter_set_free(set);
    free(sealed);
    return 0;
}

/* Mutates the bytes before the digest, which the target recomputes. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t room, unsigned seed)
{
    uint64_t state = seed;
    return mutate_bytes(data, size, room, &state);
}
