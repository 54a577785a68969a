/*
 * bars.c - horizontal bars, the largest first, with their cumulative share.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/html/bars.h"

#include "runtime/cli/html/page.h"
#include "runtime/cli/html/svg.h"

#include <stdlib.h>
#include <string.h>

/* Widths of the columns behind the names, and of a letter of a name. */
enum { GAP = 10, BARS = 400, VALUE = 80, SHARE = 90, LETTER = 7 };
enum { ROW = 20, TOP = 24 };

static int by_value(const void *a, const void *b)
{
    const ft_html_bar *x = a, *y = b;
    if (x->value < y->value || x->value > y->value)
        return x->value < y->value ? 1 : -1;
    return strcmp(x->name, y->name);
}

/* Pixels that the longest name needs. */
static int name_width(const ft_html_bar *bar, size_t count)
{
    size_t most = 0;
    for (size_t i = 0; i < count; i++) {
        size_t length = strlen(bar[i].name) + 1 + strlen(bar[i].note);
        most = length > most ? length : most;
    }
    return LETTER * (int) most;
}

static void put_bar(FILE *file, const ft_html_bar *bar, double length, int x, int y)
{
    ft_svg_text(file, "end", x - GAP, y + 14, "%s %s", bar->name, bar->note);
    fprintf(file, "<rect class=\"bar\" x=\"%d\" y=\"%d\" width=\"%.1f\" height=\"%d\"/>", x, y + 3,
            length, ROW - 6);
}

/* The curve goes through the middle of each row. */
static void put_curve(FILE *file, const ft_html_bar *bar, size_t count, double sum, int x)
{
    double partial = 0.0;
    fprintf(file, "<path class=\"curve\" d=\"M%d %d", x, TOP);
    for (size_t i = 0; i < count; i++) {
        partial += bar[i].value;
        fprintf(file, "L%.1f %zu", x + BARS * partial / sum, TOP + i * ROW + ROW / 2);
    }
    fputs("\"/>", file);
}

void ft_html_bars(FILE *file, ft_html_bar *bar, size_t count, const char *what)
{
    double sum = 0.0, partial = 0.0;
    int x = name_width(bar, count) + GAP, value = x + BARS + VALUE, share = value + SHARE;
    qsort(bar, count, sizeof *bar, by_value);
    for (size_t i = 0; i < count; i++)
        sum += bar[i].value;
    double unit = sum > 0.0 ? 1.0 / sum : 0.0, most = sum > 0.0 ? bar[0].value : 1.0;
    ft_html_begin_scroll(file, what);
    ft_svg_begin(file, share + GAP, TOP + (int) count * ROW + 4,
                 "%s, sorted, with cumulative share", what);
    ft_svg_text(file, "muted end", value, 14, "loss");
    ft_svg_text(file, "muted end", share, 14, "cumulative");
    for (size_t i = 0; i < count; i++) {
        int y = TOP + (int) i * ROW;
        partial += bar[i].value;
        put_bar(file, &bar[i], BARS * bar[i].value / most, x, y);
        ft_svg_text(file, "end", value, y + 14, "%.3g", bar[i].value);
        ft_svg_text(file, "end", share, y + 14, "%.1f %%", 100.0 * partial * unit);
        fputc('\n', file);
    }
    if (sum > 0.0)
        put_curve(file, bar, count, sum, x);
    ft_svg_end(file);
    ft_html_end_scroll(file);
}
