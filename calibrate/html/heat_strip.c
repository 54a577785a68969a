/*
 * heat_strip.c - a strip of cells that are darker the further they lie above a level.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/html/heat_strip.h"

#include "runtime/cli/html/svg.h"

#include <stdbool.h>

enum { WIDTH = 320, HEIGHT = 10, SHADES = 3 };

static const float first_multiple = 2.0f;

static int shade_of(float value, float level)
{
    int shade = 0;
    for (float bound = first_multiple * level; level > 0.0f && value >= bound && shade < SHADES;
         bound *= 2.0f)
        shade++;
    return shade;
}

/* All cells of a shade are one path. */
static void put_shade(FILE *file, const float *cell, int count, float level, int shade)
{
    bool any = false;
    for (int i = 0; i < count; i++) {
        if (shade_of(cell[i], level) != shade)
            continue;
        if (!any)
            fprintf(file, "<path class=\"s%d\" d=\"", shade);
        any = true;
        int start = WIDTH * i / count, width = WIDTH * (i + 1) / count - start;
        fprintf(file, "M%d 0h%dv%dh-%dz", start, width, HEIGHT, width);
    }
    if (any)
        fputs("\"/>", file);
}

void ft_html_heat_strip(FILE *file, const float *cell, int count, float level, const char *title)
{
    ft_svg_begin(file, WIDTH, HEIGHT, "%s", title);
    fprintf(file, "<path class=\"h\" d=\"M0 0h%dv%dh-%dz\"/>", WIDTH, HEIGHT, WIDTH);
    for (int shade = 1; shade <= SHADES; shade++)
        put_shade(file, cell, count, level, shade);
    ft_svg_end(file);
}
