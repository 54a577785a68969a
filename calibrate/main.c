/*
 * main.c - ft-calibrate: quantizes a float artifact.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/options.h"
#include "runtime/cli/progress.h"
#include "runtime/cli/signals.h"

#include <stdio.h>

typedef struct screen {
    ft_progress_line line;
    bool quiet;
} screen;

static void begin_stage(void *user, const char *what, const char *unit)
{
    screen *s = user;
    ft_progress_end(&s->line);
    ft_progress_begin(&s->line, what, unit, s->quiet);
}

static void step(void *user, uint64_t done, uint64_t total)
{
    screen *s = user;
    ft_progress_step(&s->line, done, total);
}

static void print(const ft_report *report, const ft_calibrate_request *r)
{
    if (!r->quiet && !r->job.json)
        ft_report_print(report, stdout);
    fflush(stdout);
    fputs(report->warning, stderr);
    if (r->job.json)
        puts(report->text);
}

int main(int argc, char **argv)
{
    static ft_calibrate_request r;
    ft_tool_tidy_on_signals();
    ft_calibrate_parse(&r, argc, argv);
    screen s = { .quiet = r.quiet };
    ft_report report;
    ft_error err;
    ft_status done = ft_calibrate(
        &r.job, &(ft_calibration_view){ .stage = begin_stage, .progress = step, .user = &s },
        &report, &err);
    ft_progress_end(&s.line);
    int status = done == FT_OK ? 0 : ft_tool_fail(&ft_calibrate_tool, err.text);
    if (status == 0 && report.weights > 0)
        print(&report, &r);
    ft_report_fini(&report);
    ft_recipe_fini(&r.recipe);
    return ft_tool_end(&ft_calibrate_tool, status);
}
