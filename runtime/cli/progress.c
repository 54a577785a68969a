/*
 * progress.c - progress of long work on a terminal; nothing on a pipe.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/cli/progress.h"

#include "runtime/base/clock.h"

#include <math.h>
#include <stdio.h>
#include <unistd.h>

void ft_progress_begin(ft_progress_line *line, const char *label, const char *unit, bool quiet)
{
    *line = (ft_progress_line){
        .label = label,
        .unit = unit,
        .shown = !quiet && isatty(STDERR_FILENO),
        .start = ft_monotonic_seconds(),
    };
}

/* "11 s", "3 min", "2 h 05 min". */
static void format_remaining(char *text, size_t size, double seconds)
{
    double minutes = ceil(seconds / 60.0);
    if (seconds < 99.5)
        snprintf(text, size, "%.0f s", seconds);
    else if (minutes < 100.0)
        snprintf(text, size, "%.0f min", minutes);
    else
        snprintf(text, size, "%.0f h %02.0f min", floor(minutes / 60.0), fmod(minutes, 60.0));
}

char *ft_progress_format(char text[FT_PROGRESS_TEXT_SIZE], const ft_progress_line *line,
                         uint64_t done, uint64_t total, double seconds)
{
    char remaining[64];
    double factor = line->unit == NULL ? 1e-6 : 1.0;
    double rate = (double) done / fmax(seconds, 1e-9);
    format_remaining(remaining, sizeof remaining,
                     (double) (total - done) * seconds / (double) done);
    snprintf(text, FT_PROGRESS_TEXT_SIZE, "%s: %.0f of %.0f %s, %.1f/s, %s left", line->label,
             (double) done * factor, (double) total * factor,
             line->unit == NULL ? "MB" : line->unit, rate * factor, remaining);
    return text;
}

void ft_progress_update(void *user, uint64_t done, uint64_t total)
{
    ft_progress_line *line = user;
    char text[FT_PROGRESS_TEXT_SIZE];
    double time = ft_monotonic_seconds();
    if (!line->shown || time - line->last < 0.1 || done == 0)
        return;
    line->last = time;
    line->printed = true;
    fprintf(stderr, "\r%-78s", ft_progress_format(text, line, done, total, time - line->start));
    fflush(stderr);
}

void ft_progress_end(ft_progress_line *line)
{
    if (line->printed)
        fprintf(stderr, "\r%-78s\r", "");
    line->printed = false;
}
