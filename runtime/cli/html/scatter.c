/*
 * scatter.c - charts of dots: points by layer, and the Pareto front of size and loss.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/cli/html/scatter.h"

#include "runtime/cli/html/page.h"
#include "runtime/cli/html/svg.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

enum { LEFT = 48, TOP = 24, HEIGHT = 220, BOTTOM = 36, COLUMN = 44 };

/* ---- Axes ---------------------------------------------------------------------------------- */

typedef struct scale {
    double max;
    int start, end; /* pixels of 0 and of max */
} scale;

static double at(const scale *s, double value)
{
    return s->start + (s->end - s->start) * value / s->max;
}

/* A scale that ends at a tick. */
static scale scale_to(double max, int start, int end)
{
    double tick = ft_svg_tick(max);
    return (scale){ .max = fmax(1.0, ceil(max / tick)) * tick, .start = start, .end = end };
}

/* Horizontal lines with their values, and the quantity above them. */
static void put_vertical_axis(FILE *file, const scale *y, int right, const char *what)
{
    double tick = ft_svg_tick(y->max);
    ft_svg_text(file, "muted", 0, 12, "%s", what);
    for (int i = 0; i * tick <= y->max * 1.0001; i++) {
        ft_svg_line(file, "axis", LEFT, at(y, i * tick), right, at(y, i * tick));
        ft_svg_text(file, "muted end", LEFT - 6, at(y, i * tick) + 4, "%g", i * tick);
    }
    fputc('\n', file);
}

/* ---- Layers -------------------------------------------------------------------------------- */

/* The bytes of a name up to and with its first number, or before its first ".". */
static size_t layer_length(const char *name)
{
    for (const char *part = name;; part++) {
        size_t length = strcspn(part, ".");
        if (length > 0 && strspn(part, "0123456789") == length)
            return (size_t) (part - name) + length;
        part += length;
        if (*part == '\0')
            return strcspn(name, ".");
    }
}

static bool same_layer(const char *a, const char *b)
{
    size_t length = layer_length(a);
    return length == layer_length(b) && strncmp(a, b, length) == 0;
}

/* The dots of the layer that begins with dot[0]. */
static size_t layer_dots(const ft_html_dot *dot, size_t count)
{
    size_t n = 1;
    while (n < count && same_layer(dot[0].name, dot[n].name))
        n++;
    return n;
}

static size_t count_layers(const ft_html_dot *dot, size_t count)
{
    size_t layers = 0;
    for (size_t i = 0; i < count; i += layer_dots(dot + i, count - i))
        layers++;
    return layers;
}

static double smallest(const ft_html_dot *dot, size_t count)
{
    double value = dot[0].value;
    for (size_t i = 1; i < count; i++)
        value = fmin(value, dot[i].value);
    return value;
}

/* "3" of "layer.3", "e3" of "encoder.layer.3", "embed" of "embed". */
static void put_layer_name(FILE *file, const char *name, double x)
{
    size_t length = layer_length(name), digits = 0;
    while (digits < length && isdigit((unsigned char) name[length - digits - 1]))
        digits++;
    if (digits == 0)
        ft_svg_text(file, "muted middle", x, TOP + HEIGHT + 16, "%.*s",
                    (int) (length < 6 ? length : 6), name);
    else
        ft_svg_text(file, "muted middle", x, TOP + HEIGHT + 16, "%.*s%.*s",
                    strncmp(name, "layer", 5) == 0 ? 0 : 1, name, (int) digits,
                    name + length - digits);
}

static void put_layer(FILE *file, const ft_html_dot *dot, size_t count, double x, const scale *y)
{
    put_layer_name(file, dot[0].name, x);
    for (size_t i = 0; i < count; i++) {
        fprintf(file, "<circle class=\"dot\" cx=\"%.4g\" cy=\"%.1f\" r=\"4\"><title>", x,
                at(y, fmax(0.0, dot[i].value)));
        ft_html_printf(file, "%s: %.1f", dot[i].name, dot[i].value);
        fputs("</title></circle>\n", file);
    }
}

void ft_html_layer_chart(FILE *file, const ft_html_dot *dot, size_t count, const char *what)
{
    double max = 0.0;
    for (size_t i = 0; i < count; i++)
        max = fmax(max, dot[i].value);
    const scale y = scale_to(max, TOP + HEIGHT, TOP);
    int right = LEFT + COLUMN * (int) count_layers(dot, count);
    ft_html_begin_scroll(file, what);
    ft_svg_begin(file, right + 8, TOP + HEIGHT + BOTTOM,
                 "%s of each point, by layer, with the smallest of each layer connected", what);
    put_vertical_axis(file, &y, right, what);
    fputs("<path class=\"curve\" d=\"", file);
    double x = LEFT + COLUMN / 2.0;
    for (size_t i = 0, n; i < count; i += n, x += COLUMN) {
        n = layer_dots(dot + i, count - i);
        fprintf(file, "%c%.4g %.1f", i == 0 ? 'M' : 'L', x,
                at(&y, fmax(0.0, smallest(dot + i, n))));
    }
    fputs("\"/>\n", file);
    x = LEFT + COLUMN / 2.0;
    for (size_t i = 0, n; i < count; i += n, x += COLUMN) {
        n = layer_dots(dot + i, count - i);
        put_layer(file, dot + i, n, x, &y);
    }
    ft_svg_text(file, "muted", LEFT, TOP + HEIGHT + 32, "layer");
    ft_svg_end(file);
    ft_html_end_scroll(file);
}

/* ---- Pareto front -------------------------------------------------------------------------- */

enum { PARETO_WIDTH = 520 };

static void put_horizontal_axis(FILE *file, const scale *x, const char *what)
{
    double tick = ft_svg_tick(x->max);
    for (int i = 0; i * tick <= x->max * 1.0001; i++)
        ft_svg_text(file, "muted middle", at(x, i * tick), TOP + HEIGHT + 16, "%g", i * tick);
    ft_svg_text(file, "muted end", x->end, TOP + HEIGHT + 32, "%s", what);
}

static void put_choice(FILE *file, const ft_html_choice *choice, const scale *x, const scale *y)
{
    fprintf(file, "<circle class=\"%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"%d\"><title>",
            choice->chosen ? "pick" : "dot", at(x, choice->x), at(y, choice->y),
            choice->chosen ? 7 : 4);
    ft_html_printf(file, "%.3g, %.3g%s", choice->x, choice->y, choice->chosen ? ", chosen" : "");
    fputs("</title></circle>\n", file);
    if (choice->chosen)
        ft_svg_text(file, "", at(x, choice->x) + 12, at(y, choice->y) - 8, "chosen: %.3g, %.3g",
                    choice->x, choice->y);
}

void ft_html_pareto_chart(FILE *file, const ft_html_choice *choice, size_t count, const char *x,
                          const char *y)
{
    double max_x = 0.0, max_y = 0.0;
    for (size_t i = 0; i < count; i++) {
        max_x = fmax(max_x, choice[i].x);
        max_y = fmax(max_y, choice[i].y);
    }
    const scale across = scale_to(max_x, LEFT, LEFT + PARETO_WIDTH),
                up = scale_to(max_y, TOP + HEIGHT, TOP);
    ft_html_begin_scroll(file, y);
    ft_svg_begin(file, LEFT + PARETO_WIDTH + 120, TOP + HEIGHT + BOTTOM,
                 "%s by %s: %zu plans, the chosen one marked", y, x, count);
    put_vertical_axis(file, &up, LEFT + PARETO_WIDTH, y);
    put_horizontal_axis(file, &across, x);
    fputs("<path class=\"curve\" d=\"", file);
    for (size_t i = 0; i < count; i++)
        fprintf(file, "%c%.1f %.1f", i == 0 ? 'M' : 'L', at(&across, choice[i].x),
                at(&up, choice[i].y));
    fputs("\"/>\n", file);
    for (size_t i = 0; i < count; i++)
        put_choice(file, &choice[i], &across, &up);
    ft_svg_end(file);
    ft_html_end_scroll(file);
}
