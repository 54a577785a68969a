/*
 * convert_progress.h - progress of a long job on one line of a terminal: percentage, throughput and
 * remaining time.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CONVERT_CONVERT_PROGRESS_H
#define FT_CONVERT_CONVERT_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct ft_progress_meter {
    bool shown;         /* standard error is a terminal and progress is wanted */
    double start, last; /* seconds: time of the start and of the last update */
} ft_progress_meter;

void ft_progress_meter_init(ft_progress_meter *meter, bool wanted);

/*
 * An ft_progress_callback (runtime/container/artifact.h) whose user data is an ft_progress_meter;
 * counts bytes.
 */
void ft_progress_meter_update(void *meter, uint64_t done, uint64_t total);

/* Clear the line.  Returns the seconds since the start. */
double ft_progress_meter_end(ft_progress_meter *meter);

#endif
