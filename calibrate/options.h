/*
 * options.h - the command line of ft-calibrate.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CALIBRATE_OPTIONS_H
#define FT_CALIBRATE_OPTIONS_H

#include "calibrate/calibrate.h"
#include "runtime/cli/options.h"

enum { FT_MAX_MERGE = 4096 };

typedef struct ft_calibrate_request {
    ft_calibration_options job;
    ft_recipe recipe;
    bool of_blocks; /* something was said that is about blocks alone */
    bool method;    /* a method was named */
    const char *merge[FT_MAX_MERGE];
    bool quiet;
} ft_calibrate_request;

extern const ft_tool ft_calibrate_tool;

/*
 * What the command line asks for, into a request of zeros; the job points into the request.  What
 * cannot be meant ends the program with a sentence and status 2.  The recipe is to be freed by
 * ft_recipe_fini().
 */
void ft_calibrate_parse(ft_calibrate_request *r, int argc, char **argv);

#endif
