/*
 * convert_progress.h - how far a long job is, at which rate, and how long it will take: one line on a
 * terminal.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CONVERT_CONVERT_PROGRESS_H
#define FT_CONVERT_CONVERT_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct ft_meter {
    bool shown;         /* standard error is a terminal, and the user wants to see it */
    double start, last; /* seconds: when it began, and was last drawn */
} ft_meter;

void ft_meter_init(ft_meter *meter, bool wanted);

/* An ft_progress (runtime/container/artifact.h) whose user is an ft_meter; counts bytes. */
void ft_meter_update(void *meter, uint64_t done, uint64_t total);

/* Clear the line.  Returns the seconds since the start. */
double ft_meter_end(ft_meter *meter);

#endif
