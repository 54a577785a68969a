/*
 * progress.c - how far long work is, on a terminal; nothing on a pipe.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/tools/progress.h"

#include "runtime/clock.h"

#include <stdio.h>
#include <unistd.h>

void ft_progress_begin(ft_progress_line *line, const char *what, const char *unit, bool quiet)
{
    *line = (ft_progress_line){
        .what = what,
        .unit = unit,
        .shown = !quiet && isatty(STDERR_FILENO),
        .begun = ft_seconds(),
    };
}

void ft_progress_step(void *user, uint64_t done, uint64_t total)
{
    ft_progress_line *line = user;
    double time = ft_seconds(), rate = (double) done / (time - line->begun + 1e-9);
    if (!line->shown || time - line->last < 0.1 || done == 0)
        return;
    line->last = time;
    line->printed = true;
    double factor = line->unit == NULL ? 1e-6 : 1.0;
    fprintf(stderr, "\r%s: %.0f of %.0f %s, %.1f/s, %.0f s left  ", line->what,
            (double) done * factor, (double) total * factor, line->unit == NULL ? "MB" : line->unit,
            rate * factor, (double) (total - done) / rate);
    fflush(stderr);
}

void ft_progress_end(ft_progress_line *line)
{
    if (line->printed)
        fprintf(stderr, "\r%-78s\r", "");
    line->printed = false;
}
