/*
 * scatter.h - charts of dots: points by layer, and the Pareto front of size and loss.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_CLI_HTML_SCATTER_H
#define FT_RUNTIME_CLI_HTML_SCATTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

typedef struct ft_html_dot {
    const char *name; /* "layer.3.ffn.act"; shown when the pointer rests on the dot */
    double value;     /* finite */
} ft_html_dot;

/*
 * Write a chart with one column for each layer, in the order of the dots: consecutive dots whose
 * names are equal up to their first number, or, without a number, up to the first ".".  A curve
 * connects the smallest values.  `what` is the quantity, with its unit.
 */
void ft_html_layer_chart(FILE *file, const ft_html_dot *dot, size_t count, const char *what);

typedef struct ft_html_choice {
    double x, y; /* finite, at least 0 */
    bool chosen;
} ft_html_choice;

/* Write a chart of choices in ascending order of x, connected by a curve, the chosen one marked. */
void ft_html_pareto_chart(FILE *file, const ft_html_choice *choice, size_t count, const char *x,
                          const char *y);

#endif
