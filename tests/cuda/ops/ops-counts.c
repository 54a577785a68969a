/*
 * ops-counts.c - the device's calibration counters against those of the CPU, whose tail of exact
 * magnitudes is folded into their keys.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#ifdef HAVE_CUDA

#include "tests/cuda/ops/ops.h"

#include "kernels/half.h"
#include "runtime/mem.h"
#include "runtime/tensor.h"
#include "tests/tap/tap.h"

#include <math.h>
#include <string.h>

/* Distributions of values, which differ in their most frequent value. */
typedef enum stream { NORMAL, RECTIFIED, SATURATED, EVERYTHING, STREAMS } stream;
static const char *const stream_names[STREAMS] = { "normal values", "rectified values",
                                                   "values of two kinds", "random bit patterns" };

static float draw(stream kind)
{
    double x = rng_normal(&numbers);
    switch (kind) {
    case RECTIFIED:
        return x > 0.0 ? (float) x : 0.0f;
    case SATURATED:
        return x > 0.0 ? 1.0f : -0.75f;
    case EVERYTHING:
        return ft_float_from_bits((uint32_t) rng_bits(&numbers));
    default:
        return (float) x;
    }
}

typedef struct counted {
    uint64_t key[FT_COUNT_KEYS], special[3];
    uint32_t largest;
} counted;

static void count_on_host(counted *c, const ft_view *x)
{
    ft_counts counts;
    if (!ft_counts_init(&counts))
        bail_out("out of memory: counters");
    ft_args args = { .counts = &counts, .in[0] = *x };
    ft_cpu_observe(&args);
    ft_cpu_observe(&args); /* counters add up */
    for (size_t i = 0; i < counts.tail_used; i++)
        c->key[ft_count_key(counts.tail[i])]++;
    for (size_t i = 0; i < FT_COUNT_KEYS; i++)
        c->key[i] += counts.key[i];
    c->special[0] = counts.zeros;
    c->special[1] = counts.nans;
    c->special[2] = counts.infinities;
    for (size_t i = 0; i < x->rows * x->cols; i++) {
        uint32_t magnitude = ft_bits_from_float(((const float *) x->data)[i]) & ~FT_COUNT_SIGN;
        if (magnitude < FT_COUNT_INFINITY && magnitude > c->largest)
            c->largest = magnitude;
    }
    ft_counts_fini(&counts);
}

static int count_on_device(counted *c, const ft_view *x)
{
    counted *memory = to_device(c, sizeof *c);
    ft_cuda_counts counts = { (unsigned long long *) memory->key,
                              (unsigned long long *) memory->special, &memory->largest };
    ft_cuda_args args = { .props = &props, .counts = &counts, .in[0] = *x };
    int status = ft_cuda_observe(&args);
    if (x->dtype == FT_F32 && status == 0)
        status = ft_cuda_count(NULL, &counts, x->data, x->rows * x->cols);
    else if (status == 0)
        status = ft_cuda_observe(&args);
    from_device(c, memory, sizeof *c);
    return status;
}

static void count_case(stream kind, size_t n, ft_dtype dtype)
{
    begin_case();
    float *x = host_memory(n * sizeof *x);
    counted *host = host_memory(sizeof *host), *device = host_memory(sizeof *device);
    memset(host, 0, sizeof *host);
    memset(device, 0, sizeof *device);
    for (size_t i = 0; i < n; i++)
        x[i] = draw(kind);
    matrix v = matrix_of(x, 1, n, dtype, 0.0f);
    count_on_host(host, &v.host);
    is_int(count_on_device(device, &v.device), 0, "observe: the device counts %zu %s in %s", n,
           stream_names[kind], ft_dtype_name(dtype));
    ok(memcmp(host->key, device->key, sizeof host->key) == 0,
       "observe: the device counts each key as often as the CPU");
    ok(memcmp(host->special, device->special, sizeof host->special) == 0,
       "observe: the device counts zeros, NaNs and infinities as the CPU does");
    is_int(device->largest, host->largest,
           "observe: the device records the exact largest magnitude");
}

void test_counts(void)
{
    static const ft_dtype dtypes[] = { FT_F32, FT_F16, FT_BF16 };
    for (stream kind = NORMAL; kind < STREAMS; kind++)
        for (size_t d = 0; d < FT_COUNT(dtypes); d++) {
            count_case(kind, 1 + kind, dtypes[d]);
            count_case(kind, 300007, dtypes[d]);
        }
    ft_cuda_args unobserved = { .props = &props };
    is_int(ft_cuda_observe(&unobserved), 0,
           "observe: ft_cuda_observe() launches nothing without counters");
}

#else

typedef int ft_nothing_without_cuda;

#endif
