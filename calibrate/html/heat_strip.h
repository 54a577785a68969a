/*
 * heat_strip.h - a strip of cells that are darker the further they lie above a level.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CALIBRATE_HTML_HEAT_STRIP_H
#define FT_CALIBRATE_HTML_HEAT_STRIP_H

#include <stdio.h>

/*
 * Write `count` cells of values as multiples of `level`: those below 2 are background, and there is
 * a shade for 2, 4 and 8.  `title` says what the strip shows.
 */
void ft_html_heat_strip(FILE *file, const float *cell, int count, float level, const char *title);

#endif
