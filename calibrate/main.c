/*
 * main.c - ft-calibrate: quantizes a float artifact.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/options.h"
#include "runtime/cli/progress.h"
#include "runtime/cli/signals.h"
#include "runtime/mem.h"

#include <stdio.h>

typedef struct progress_output {
    ft_progress_line line;
    bool quiet;
} progress_output;

static void begin_stage(void *user, const char *name, const char *unit)
{
    progress_output *s = user;
    ft_progress_end(&s->line);
    ft_progress_begin(&s->line, name, unit, s->quiet);
}

static void step(void *user, uint64_t done, uint64_t total)
{
    progress_output *s = user;
    ft_progress_update(&s->line, done, total);
}

/* A message with a code warns; the others are notes. */
static void print_notes(const ft_messages *notes, bool quiet)
{
    size_t shown = ft_min_size(notes->count, FT_MAX_MESSAGES);
    for (size_t i = 0; i < shown; i++) {
        bool warns = notes->message[i].code != FT_OK;
        if (warns || !quiet)
            fprintf(stderr, "%s: %s: %s\n", ft_calibrate_tool.name, warns ? "warning" : "note",
                    notes->message[i].text);
    }
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
    ft_tool_cleanup_on_signals();
    ft_calibrate_parse(&r, argc, argv);
    progress_output s = { .quiet = r.quiet };
    ft_report report;
    ft_error err;
    ft_status done = ft_calibrate(
        &r.job, &(ft_calibration_callbacks){ .stage = begin_stage, .progress = step, .user = &s },
        &report, &err);
    ft_progress_end(&s.line);
    int status = done == FT_OK ? 0 : ft_tool_error(&ft_calibrate_tool, err.text);
    print_notes(&report.notes, r.quiet);
    if (status == 0 && report.weights > 0)
        print(&report, &r);
    ft_report_fini(&report);
    ft_recipe_fini(&r.recipe);
    ft_image_paths_free(&r.job.images);
    return ft_tool_exit_status(&ft_calibrate_tool, status);
}
