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
    bool has_groupwise_option; /* an option for group-wise schemes was given */
    bool method;               /* -m was given */
    const char *merge[FT_MAX_MERGE];
    bool quiet;
} ft_calibrate_request;

extern const ft_tool ft_calibrate_tool;

/*
 * Parses the command line into a zero-initialized request; the job points into the request. Usage
 * errors print a message and exit with status 2. The caller frees the recipe with ft_recipe_fini().
 */
void ft_calibrate_parse(ft_calibrate_request *r, int argc, char **argv);

#endif
