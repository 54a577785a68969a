/*
 * divergence_html.c - where two artifacts diverge on samples, as a page for browsers.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/tools/inspect/divergence.h"

#include "runtime/base/file_name.h"
#include "runtime/cli/html/page.h"
#include "runtime/cli/html/scatter.h"
#include "runtime/cli/html/table.h"
#include "runtime/mem.h"

#include <math.h>
#include <stdlib.h>

static void put_summary(FILE *file, const ft_divergence *d)
{
    const ft_value_error *first = ft_value_errors_first_below(&d->values, FT_DIVERGED),
                         *worst = ft_value_errors_worst(&d->values);
    ft_html_begin_facts(file);
    ft_html_fact(file, "First artifact", "%s", d->path[0]);
    ft_html_fact(file, "Second artifact", "%s", d->path[1]);
    ft_html_fact(file, "Samples", "%zu", d->samples);
    ft_html_fact(file, "Values of both", "%zu", d->values.count);
    if (first != NULL)
        ft_html_fact(file, "First diverged value", "%s, %.1f dB", first->name[0],
                     ft_value_sqnr_db(first));
    else
        ft_html_fact(file, "First diverged value", "none is below %d dB", FT_DIVERGED);
    ft_html_fact(file, "Worst value", "%s, %.1f dB", worst->name[0], ft_value_sqnr_db(worst));
    ft_html_end_facts(file);
}

static const ft_listing_column suspect_columns[] = {
    { .title = "Scale of" },
    { .title = "Lost dB", .is_number = true },
    { .title = "SQNR dB", .is_number = true },
    { .title = "Best dB", .is_number = true },
    { .title = "Found" },
};

static void put_suspects(FILE *file, const ft_divergence *d)
{
    if (!d->has_suspects || d->suspects.count == 0)
        return;
    ft_html_begin_section(file, "Scales",
                          "What each scale loses beyond what its format must lose, judged by "
                          "itself on values and weights of the float artifact. Where factors "
                          "of SmoothQuant or AWQ were folded, these are divided by them first. "
                          "The most suspicious one is the first.");
    ft_html_table(file,
                  &(ft_listing){ .column = suspect_columns,
                                 .columns = FT_COUNT(suspect_columns),
                                 .rows = d->suspects.count,
                                 .fill = ft_suspects_fill_row,
                                 .source = &d->suspects },
                  "Scales, the most suspicious first", -1);
    ft_html_end_section(file);
}

static ft_status put_chart(FILE *file, const ft_divergence *d, ft_error *err)
{
    ft_html_dot *dot = ft_calloc(d->values.count, sizeof *dot);
    size_t count = 0;
    if (dot == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for %zu values", d->values.count);
    for (size_t i = 0; i < d->values.count; i++)
        if (isfinite(ft_value_sqnr_db(&d->values.value[i])))
            dot[count++] =
                (ft_html_dot){ d->values.value[i].name[0], ft_value_sqnr_db(&d->values.value[i]) };
    if (count > 0)
        ft_html_layer_chart(file, dot, count, "SQNR in dB");
    free(dot);
    return FT_OK;
}

static const ft_listing_column value_columns[] = {
    { .title = "Value" },
    { .title = "In the second artifact" },
    { .title = "SQNR dB", .is_number = true },
};

static void fill_value(ft_listing_cell *cell, const void *source, size_t row)
{
    const ft_value_error *v = &((const ft_value_errors *) source)->value[row];
    cell[0].text = v->name[0];
    cell[1].text = v->name[1];
    if (isinf(ft_value_sqnr_db(v)))
        cell[2].text = "\xe2\x88\x9e";
    else
        ft_listing_cell_format(&cell[2], "%.2f", ft_value_sqnr_db(v));
}

static ft_status put_values(FILE *file, const ft_divergence *d, ft_error *err)
{
    ft_html_begin_section(file, "Values by layer",
                          "The signal-to-quantization-noise ratio of each value of both plans, "
                          "with all errors before it. Higher is better; 6 dB are one bit.");
    FT_TRY(put_chart(file, d, err));
    ft_html_table(file,
                  &(ft_listing){ .column = value_columns,
                                 .columns = FT_COUNT(value_columns),
                                 .rows = d->values.count,
                                 .fill = fill_value,
                                 .source = &d->values },
                  "Values in the order of the plan", -1);
    ft_html_end_section(file);
    return FT_OK;
}

ft_status ft_divergence_write_html(const ft_divergence *d, FILE *file, ft_error *err)
{
    char title[520];
    snprintf(title, sizeof title, "%.250s compared with %.250s", ft_file_name(d->path[1]),
             ft_file_name(d->path[0]));
    ft_html_begin(file, title);
    put_summary(file, d);
    put_suspects(file, d);
    FT_TRY(put_values(file, d, err));
    ft_html_end(file);
    return FT_OK;
}
