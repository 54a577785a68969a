/*
 * counters.c - the cost of calibration counters, and the loss of counting float values by key.
 *
 *     make tests/bench/counters && tests/bench/counters
 *
 * For random values of five distributions: time per value and per method, then the amax selected
 * from the counters against the one selected from the histogram of the values themselves.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/ranges/method.h"
#include "kernels/cpu/rowwise/count.h"
#include "runtime/mem.h"
#include "tests/bench/measure.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum shape { NORMAL, LAPLACE, OUTLIERS_8, OUTLIERS_100, GELU, SHAPES } shape;

static const char *const shape_name[SHAPES] = { "normal", "laplace", "normal, 0.1 % x 8",
                                                "normal, 0.03 % x 100", "gelu of normal" };

/* The largest effect of counting by key, over all sets and for each method. */
typedef struct differences {
    int sets, differ[FT_AMAX_CANDIDATES];
    double moved, amax[FT_AMAX_CANDIDATES], sqnr[FT_AMAX_CANDIDATES];
} differences;

/* CPU time of this process, which competing load does not lengthen. */
static double seconds(void)
{
    return seconds_of(CLOCK_PROCESS_CPUTIME_ID);
}

/* Uniform on (0, 1). */
static double uniform(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return ((double) (*state >> 11) + 0.5) * 0x1p-53;
}

static float shaped(shape s, size_t i, uint64_t *state)
{
    double radius = -log(uniform(state)), angle = uniform(state);
    double normal = sqrt(2.0 * radius) * cos(6.283185307179586 * angle);
    switch (s) {
    case LAPLACE:
        return (float) (angle < 0.5 ? radius : -radius);
    case OUTLIERS_8:
        return (float) (i % 997 == 0 ? 8.0 * normal : normal);
    case OUTLIERS_100:
        return (float) (i % 3001 == 0 ? 100.0 * normal : normal);
    case GELU:
        return (float) (0.5 * normal * (1.0 + erf(normal * 0.7071067811865476)));
    default:
        return (float) normal;
    }
}

/* The counters' histogram, with the bins that the values themselves fill. */
static ft_histogram exact_histogram(const ft_histogram *counted, const float *value, size_t n)
{
    ft_histogram exact = *counted;
    memset(exact.bin, 0, sizeof exact.bin);
    for (size_t i = 0; i < n; i++) {
        float place = fabsf(value[i]) * (float) FT_BINS / exact.amax;
        exact.bin[place < (float) FT_BINS ? (size_t) place : FT_BINS - 1]++;
    }
    return exact;
}

static void time_methods(const ft_histogram *h)
{
    static const ft_method method[] = { FT_METHOD_MAX, FT_METHOD_PERCENTILE, FT_METHOD_MSE,
                                        FT_METHOD_ENTROPY, FT_METHOD_AUTO };
    for (size_t i = 0; i < FT_COUNT(method); i++) {
        ft_amax_result c;
        double start = seconds();
        ft_compute_amax(&c, method[i], h, NULL);
        printf("  %s %.1f ms", ft_method_name(method[i]), 1e3 * (seconds() - start));
    }
    printf("\n");
}

static void compare(differences *d, const ft_histogram *counted, const ft_histogram *exact)
{
    ft_amax_result ours[FT_AMAX_CANDIDATES], theirs[FT_AMAX_CANDIDATES];
    ft_compute_amax_candidates(ours, counted);
    ft_compute_amax_candidates(theirs, exact);
    uint64_t moved = 0;
    for (int i = 0; i < FT_BINS; i++)
        moved += counted->bin[i] > exact->bin[i] ? counted->bin[i] - exact->bin[i] : 0;
    d->sets++;
    d->moved = fmax(d->moved, (double) moved / (double) counted->total);
    for (size_t i = 0; i < FT_AMAX_CANDIDATES; i++) {
        d->differ[i] += ours[i].index != theirs[i].index;
        d->amax[i] = fmax(d->amax[i], fabs((double) (ours[i].amax / theirs[i].amax) - 1.0));
        d->sqnr[i] =
            fmax(d->sqnr[i], fabs(ours[i].distortion.sqnr_db - theirs[i].distortion.sqnr_db));
    }
}

static void run(differences *d, shape s, size_t n, uint64_t seed, float *value)
{
    ft_counters point = { .name = NULL };
    ft_histogram counted;
    if (!ft_counts_init(&point.counts))
        abort();
    for (size_t i = 0; i < n; i++)
        value[i] = shaped(s, i, &seed);
    double start = seconds();
    ft_cpu_counts_add(&point.counts, value, n);
    double counting = seconds() - start;
    start = seconds();
    if (ft_histogram_init(&counted, &point, NULL) != FT_OK)
        abort();
    printf("%-21s %8zu values: %4.1f ns a value, histogram %.1f ms,", shape_name[s], n,
           1e9 * counting / (double) n, 1e3 * (seconds() - start));
    time_methods(&counted);
    ft_histogram exact = exact_histogram(&counted, value, n);
    compare(d, &counted, &exact);
    ft_histogram_fini(&counted);
    ft_counts_fini(&point.counts);
}

int main(void)
{
    static const char *const names[FT_AMAX_CANDIDATES] = {
        "max", "percentile 99", "percentile 99.9", "percentile 99.99", "percentile 99.999",
        "mse", "entropy"
    };
    differences d = { 0 };
    float *value = malloc(((size_t) 1 << 24) * sizeof *value);
    if (value == NULL)
        return 1;
    for (uint64_t seed = 1; seed <= 3; seed++)
        for (int log_n = 16; log_n <= 24; log_n += 2)
            for (int s = 0; s < SHAPES; s++)
                run(&d, (shape) s, (size_t) 1 << log_n, seed, value);
    free(value);
    printf("\n%d sets, at most %.2f %% of the values in another bin\n", d.sets, 100.0 * d.moved);
    for (size_t i = 0; i < FT_AMAX_CANDIDATES; i++)
        printf("%-17s %2d of %d indices differ, amax by at most %.2f %%, SQNR by %.3f dB\n",
               names[i], d.differ[i], d.sets, 100.0 * d.amax[i], d.sqnr[i]);
    return 0;
}
