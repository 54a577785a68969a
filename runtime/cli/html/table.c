/*
 * table.c - a listing as a table whose headers sort it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/cli/html/table.h"

#include "runtime/cli/html/page.h"

typedef struct table {
    FILE *file;
    const ft_listing *list;
    bool shown[FT_LISTING_MAX_COLUMNS]; /* columns in which a row has a value */
} table;

static void fill_row(const ft_listing *list, ft_listing_cell *cell, size_t row)
{
    for (size_t i = 0; i < list->columns; i++)
        cell[i].text = NULL;
    list->fill(cell, list->source, row);
}

static void find_columns(table *t)
{
    ft_listing_cell cell[FT_LISTING_MAX_COLUMNS];
    for (size_t row = 0; row < t->list->rows; row++) {
        fill_row(t->list, cell, row);
        for (size_t i = 0; i < t->list->columns; i++)
            t->shown[i] |= cell[i].text != NULL;
    }
}

static void put_header(const table *t, int sorted)
{
    fputs("<thead><tr>", t->file);
    for (size_t i = 0; i < t->list->columns; i++) {
        if (!t->shown[i])
            continue;
        fprintf(t->file, "<th scope=\"col\"%s aria-sort=\"%s\"><button type=\"button\">",
                t->list->column[i].is_number ? " class=\"n\"" : "",
                (int) i == sorted ? "ascending" : "none");
        ft_html_printf(t->file, "%s", t->list->column[i].title);
        fputs("</button></th>", t->file);
    }
    fputs("</tr></thead>\n", t->file);
}

static void put_cell(const table *t, const ft_listing_cell *cell, size_t column)
{
    const char *tag = column == 0 ? "th" : "td";
    fprintf(t->file, "<%s%s%s>", tag, column == 0 ? " scope=\"row\"" : "",
            t->list->column[column].is_number ? " class=\"n\"" : "");
    ft_html_printf(t->file, "%s", cell->text != NULL ? cell->text : "-");
    fprintf(t->file, "</%s>", tag);
}

static void put_row(const table *t, size_t row)
{
    ft_listing_cell cell[FT_LISTING_MAX_COLUMNS];
    fill_row(t->list, cell, row);
    fputs("<tr>", t->file);
    for (size_t i = 0; i < t->list->columns; i++)
        if (t->shown[i])
            put_cell(t, &cell[i], i);
    fputs("</tr>\n", t->file);
}

void ft_html_table(FILE *file, const ft_listing *list, const char *caption, int sorted)
{
    table t = { .file = file, .list = list };
    find_columns(&t);
    ft_html_begin_scroll(file, caption);
    fputs("<table>\n<caption>", file);
    ft_html_printf(file, "%s", caption);
    fputs("</caption>\n", file);
    put_header(&t, sorted);
    fputs("<tbody>\n", file);
    for (size_t row = 0; row < list->rows; row++)
        put_row(&t, row);
    fputs("</tbody>\n</table>\n", file);
    ft_html_end_scroll(file);
}
