/*
 * progress.h - progress of long work on a terminal; nothing on a pipe.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_CLI_PROGRESS_H
#define FT_RUNTIME_CLI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct ft_progress_line {
    const char *label; /* "observing" */
    const char *unit;  /* "samples"; NULL: bytes, shown as MB */
    bool shown;        /* standard error is a terminal, and not quiet */
    bool printed;      /* there is a line to erase */
    double start, last;
} ft_progress_line;

void ft_progress_begin(ft_progress_line *line, const char *label, const char *unit, bool quiet);

/* "observing: 64 of 200 samples, 12.3/s, 11 s left", after `seconds` of work. */
enum { FT_PROGRESS_TEXT_SIZE = 160 };
char *ft_progress_format(char text[FT_PROGRESS_TEXT_SIZE], const ft_progress_line *line,
                         uint64_t done, uint64_t total, double seconds);

/*
 * An ft_progress_callback whose user data is the line: rewrites the line at most ten times a
 * second.
 */
void ft_progress_update(void *line, uint64_t done, uint64_t total);

/* Erase the line. */
void ft_progress_end(ft_progress_line *line);

#endif
