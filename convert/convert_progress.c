/*
 * convert_progress.c - draw the progress of a job at most five times a second.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "convert/convert_progress.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double) now.tv_sec + (double) now.tv_nsec * 1e-9;
}

void ft_progress_meter_init(ft_progress_meter *meter, bool wanted)
{
    meter->shown = wanted && isatty(STDERR_FILENO);
    meter->start = meter->last = seconds();
}

void ft_progress_meter_update(void *user, uint64_t done, uint64_t total)
{
    ft_progress_meter *meter = user;
    double now = seconds();
    if (!meter->shown || now - meter->last < 0.2 || done == 0)
        return;
    meter->last = now;
    double rate = (double) done / (now - meter->start);
    fprintf(stderr, "\r%3.0f %%, %.1f of %.1f MB, %.0f MB/s, %.0f s left \033[K",
            100.0 * (double) done / (double) total, (double) done * 1e-6, (double) total * 1e-6,
            rate * 1e-6, (double) (total - done) / rate);
}

double ft_progress_meter_end(ft_progress_meter *meter)
{
    if (meter->shown)
        fputs("\r\033[K", stderr);
    return seconds() - meter->start;
}
