/*
 * svg.c - inline SVG: images with a title, and text, lines and scales in them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/cli/html/svg.h"

#include "runtime/cli/html/page.h"
#include "kernels/math/elementary.h"

#include <math.h>
#include <stdarg.h>

void ft_svg_begin(FILE *file, int width, int height, const char *format, ...)
{
    char title[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(title, sizeof title, format, arguments);
    va_end(arguments);
    fprintf(file, "<svg viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\" role=\"img\"><title>",
            width, height, width, height);
    ft_html_printf(file, "%s", title);
    fputs("</title>", file);
}

void ft_svg_end(FILE *file)
{
    fputs("</svg>\n", file);
}

void ft_svg_text(FILE *file, const char *class, double x, double y, const char *format, ...)
{
    char text[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    fprintf(file, "<text class=\"%s\" x=\"%.4g\" y=\"%.4g\">", class, x, y);
    ft_html_printf(file, "%s", text);
    fputs("</text>", file);
}

void ft_svg_line(FILE *file, const char *class, double x1, double y1, double x2, double y2)
{
    fprintf(file, "<path class=\"%s\" d=\"M%.4g %.4gL%.4g %.4g\"/>", class, x1, y1, x2, y2);
}

double ft_svg_tick(double max)
{
    if (!(max > 0.0) || isinf(max))
        return 1.0;
    double unit = ft_math_pow(10.0, floor(ft_math_log10(max / 6.0)));
    if (max / unit <= 6.0)
        return unit;
    return max / unit <= 12.0 ? 2.0 * unit : max / unit <= 30.0 ? 5.0 * unit : 10.0 * unit;
}
