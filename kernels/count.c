/*
 * count.c - magnitude counters: trimming the tail, finalizing, merging.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/count.h"

#include "runtime/mem.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* Magnitudes have 31 bits; radix selection and radix sort use three digits of 11 bits. */
enum { DIGIT = 11, RADIX = 1 << DIGIT };

static uint32_t digit(uint32_t magnitude, int shift)
{
    return magnitude >> shift & (RADIX - 1);
}

bool ft_counts_init(ft_counts *counts)
{
    *counts = (ft_counts){ .key = calloc(FT_COUNT_KEYS, sizeof *counts->key),
                           .tail = malloc(FT_COUNT_TAIL_CAPACITY * sizeof *counts->tail) };
    if (counts->key != NULL && counts->tail != NULL)
        return true;
    ft_counts_fini(counts);
    return false;
}

void ft_counts_fini(ft_counts *counts)
{
    free(counts->key);
    free(counts->tail);
    *counts = (ft_counts){ 0 };
}

/* The magnitude of the given rank (0 = largest), found digit by digit from the top. */
static uint32_t select_rank(const uint32_t *magnitude, size_t n, size_t rank)
{
    uint32_t found = 0;
    for (int shift = 2 * DIGIT; shift >= 0; shift -= DIGIT) {
        uint32_t count[RADIX] = { 0 };
        uint32_t known = ~0u << shift << DIGIT;
        for (size_t i = 0; i < n; i++)
            if ((magnitude[i] & known) == found)
                count[digit(magnitude[i], shift)]++;
        uint32_t d = RADIX - 1;
        while (rank >= count[d])
            rank -= count[d--];
        found |= d << shift;
    }
    return found;
}

void ft_counts_trim_tail(ft_counts *counts)
{
    if (counts->tail_used <= FT_COUNT_TAIL)
        return;
    uint32_t smallest = select_rank(counts->tail, counts->tail_used, FT_COUNT_TAIL - 1);
    size_t greater = 0, kept = 0;
    for (size_t i = 0; i < counts->tail_used; i++)
        greater += counts->tail[i] > smallest;
    size_t equal_left = FT_COUNT_TAIL - greater; /* how many of those equal to the smallest stay */
    for (size_t i = 0; i < counts->tail_used; i++) {
        uint32_t magnitude = counts->tail[i];
        bool keep = magnitude > smallest;
        if (magnitude == smallest && equal_left > 0) {
            keep = true;
            equal_left--;
        }
        if (keep)
            counts->tail[kept++] = magnitude;
        else
            counts->key[ft_count_key(magnitude)]++;
    }
    counts->tail_used = kept;
    counts->threshold = smallest;
}

/* Ascending; `buffer` has n elements. */
static void sort(uint32_t *magnitude, uint32_t *buffer, size_t n)
{
    uint32_t *from = magnitude, *to = buffer;
    for (int shift = 0; shift <= 2 * DIGIT; shift += DIGIT) {
        size_t offset[RADIX + 1] = { 0 };
        for (size_t i = 0; i < n; i++)
            offset[digit(from[i], shift) + 1]++;
        for (int d = 0; d < RADIX; d++)
            offset[d + 1] += offset[d];
        for (size_t i = 0; i < n; i++)
            to[offset[digit(from[i], shift)]++] = from[i];
        uint32_t *swap = from;
        from = to;
        to = swap;
    }
    memcpy(magnitude, buffer, n * sizeof *magnitude); /* three digits: the result is there */
}

void ft_counts_finalize(ft_counts *counts)
{
    ft_counts_trim_tail(counts);
    sort(counts->tail, counts->tail + FT_COUNT_TAIL, counts->tail_used);
}

void ft_counts_add_value(ft_counts *counts, uint32_t magnitude, uint64_t times)
{
    if (magnitude > FT_COUNT_INFINITY)
        counts->nans += times;
    else if (magnitude == FT_COUNT_INFINITY)
        counts->infinities += times;
    else if (magnitude == 0)
        counts->zeros += times;
    if (magnitude >= FT_COUNT_INFINITY)
        return;

    while (times > 0 && magnitude > counts->threshold) {
        if (counts->tail_used == FT_COUNT_TAIL_CAPACITY)
            ft_counts_trim_tail(counts);
        else {
            counts->tail[counts->tail_used++] = magnitude;
            times--;
        }
    }
    counts->key[ft_count_key(magnitude)] += times;
}

void ft_counts_merge(ft_counts *counts, const ft_counts *from)
{
    assert(from->tail_used <= FT_COUNT_TAIL);
    for (size_t key = 0; key < FT_COUNT_KEYS; key++)
        counts->key[key] += from->key[key];
    for (size_t i = 0; i < from->tail_used; i++)
        ft_counts_add_value(counts, from->tail[i], 1);
    counts->zeros += from->zeros;
    counts->nans += from->nans;
    counts->infinities += from->infinities;
}

uint64_t ft_counts_total(const ft_counts *counts)
{
    uint64_t total = counts->tail_used;
    for (size_t key = 0; key < FT_COUNT_KEYS; key++)
        total += counts->key[key];
    return total;
}
