/*
 * counter_download.c - calibration counters in device memory, and their download to the host.
 *
 * The device counts by key only.  On the host the largest keys become the exact tail, where each
 * magnitude is the smallest one of its key (a relative error of at most 2^-12).  The largest
 * magnitude of all is exact.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cuda/host/exec.h"
#include "runtime/error.h"
#include "runtime/mem.h"

#include <stdlib.h>

enum { SPECIAL_COUNTERS = 3 };

/* 8-byte words of one calibration point: keys; zeros, NaNs, infinities; the largest magnitude. */
static const size_t point_words = FT_COUNT_KEYS + SPECIAL_COUNTERS + 1;

ft_status ft_cuda_counts_open(ft_exec *exec, ft_counts *const *counts, ft_error *err)
{
    const ft_plan *plan = exec->plan;
    size_t points = 0;
    for (int i = 0; i < plan->nvalue; i++)
        points += counts[i] != NULL;
    size_t bytes = points * point_words * sizeof(uint64_t);
    exec->counts = ft_calloc((size_t) plan->nvalue, sizeof *exec->counts);
    if (exec->counts == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for %zu counters", points);
    int code = (int) cudaSetDevice(exec->device->props.index);
    FT_TRY(
        ft_cuda_alloc((void **) &exec->count_memory, &exec->device->props, bytes, "counters", err));
    if (code == 0)
        code = (int) cudaMemsetAsync(exec->count_memory, 0, bytes, exec->stream);
    unsigned long long *next = (unsigned long long *) (void *) exec->count_memory;
    for (int i = 0; i < plan->nvalue; i++)
        if (counts[i] != NULL) {
            exec->counts[i] = (ft_cuda_counts){
                .key = next,
                .special = next + FT_COUNT_KEYS,
                .largest = (uint32_t *) (next + FT_COUNT_KEYS + SPECIAL_COUNTERS),
            };
            next += point_words;
        }
    return code == 0 ? FT_OK : ft_cuda_fail(err, &exec->device->props, code, "counters");
}

void ft_cuda_counts_close(ft_exec *exec)
{
    (void) cudaFree(exec->count_memory);
    free(exec->counts);
}

/* In descending order of keys, so that the tail gets the largest magnitudes. */
static void merge_counts(ft_counts *counts, const uint64_t *histogram)
{
    const uint64_t *special = histogram + FT_COUNT_KEYS;
    uint32_t largest = (uint32_t) special[SPECIAL_COUNTERS];
    for (uint32_t key = FT_COUNT_KEYS; key-- > 1;) {
        uint64_t count = histogram[key];
        if (count > 0 && key == ft_count_key(largest)) {
            ft_counts_add_value(counts, largest, 1);
            count--;
        }
        if (count > 0)
            ft_counts_add_value(counts, ft_count_magnitude(key), count);
    }
    counts->key[0] += histogram[0];
    counts->zeros += special[0];
    counts->nans += special[1];
    counts->infinities += special[2];
}

ft_status ft_cuda_collect(ft_exec *exec, ft_counts *const *counts, ft_error *err)
{
    const ft_cuda_device_props *props = &exec->device->props;
    if (exec->counts == NULL)
        return FT_OK;
    uint64_t *histogram = ft_calloc(point_words, sizeof *histogram);
    if (histogram == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for counters");
    int code = (int) cudaSetDevice(props->index);
    for (int i = 0; i < exec->plan->nvalue && code == 0; i++) {
        ft_cuda_counts *device = &exec->counts[i];
        if (device->key == NULL || counts[i] == NULL)
            continue;
        size_t bytes = point_words * sizeof *histogram;
        code = (int) cudaMemcpyAsync(histogram, device->key, bytes, cudaMemcpyDeviceToHost,
                                     exec->stream);
        if (code == 0)
            code = (int) cudaMemsetAsync(device->key, 0, bytes, exec->stream);
        if (code == 0)
            code = (int) cudaStreamSynchronize(exec->stream);
        if (code == 0)
            merge_counts(counts[i], histogram);
    }
    free(histogram);
    return code == 0 ? FT_OK : ft_cuda_fail(err, props, code, "counters");
}
