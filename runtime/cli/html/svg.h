/*
 * svg.h - inline SVG: images with a title, and text, lines and scales in them.
 *
 * Coordinates are in pixels of the viewBox, x to the right and y down.  Classes are those of
 * style.css.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_CLI_HTML_SVG_H
#define FT_RUNTIME_CLI_HTML_SVG_H

#include <stdio.h>

/* Start an image; its title, which printf formats, says what it shows to those who cannot see it.
 */
void ft_svg_begin(FILE *file, int width, int height, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
void ft_svg_end(FILE *file);

/* Text whose anchor is at x, y: "" starts there, "end" ends there, "middle" is centred. */
void ft_svg_text(FILE *file, const char *class, double x, double y, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/* A straight line. */
void ft_svg_line(FILE *file, const char *class, double x1, double y1, double x2, double y2);

/* The distance between ticks that divides 0 .. max into at most 6 parts: 1, 2 or 5 times 10^n. */
double ft_svg_tick(double max);

#endif
