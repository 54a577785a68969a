/*
 * bars.h - horizontal bars, the largest first, with their cumulative share.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CALIBRATE_HTML_BARS_H
#define FT_CALIBRATE_HTML_BARS_H

#include <stddef.h>
#include <stdio.h>

typedef struct ft_html_bar {
    const char *name, *note;
    double value; /* at least 0 */
} ft_html_bar;

/*
 * Sort the bars, equal ones by name, and write them.  A curve shows which share of the sum each
 * bar and all above it make up; the share is also a number.  `what` is the quantity.
 */
void ft_html_bars(FILE *file, ft_html_bar *bar, size_t count, const char *what);

#endif
