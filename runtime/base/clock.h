/*
 * clock.h - a monotonic clock.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_BASE_CLOCK_H
#define FT_RUNTIME_BASE_CLOCK_H

#include <time.h>

/* Seconds since an arbitrary start; monotonic, not affected by changes of the system time. */
static inline double ft_monotonic_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double) t.tv_sec + 1e-9 * (double) t.tv_nsec;
}

#endif
