/*
 * listing.c - a table whose rows are all known: columns are as wide as their widest text.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/cli/table.h"

#include "runtime/cli/terminal_width.h"

#include <assert.h>
#include <stdarg.h>
#include <string.h>

enum { SEPARATOR = 2, MIN_SHRUNK_WIDTH = 12 };

void ft_listing_cell_format(ft_listing_cell *cell, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(cell->buffer, sizeof cell->buffer, format, arguments);
    va_end(arguments);
    cell->text = cell->buffer;
}

static void fill_row(ft_listing_cell *cell, const ft_listing *list, size_t row)
{
    for (size_t i = 0; i < list->columns; i++)
        cell[i].text = NULL;
    list->fill(cell, list->source, row);
}

/* ---- Widths ------------------------------------------------------------------------------- */

/* 0: there are rows, but none has a value in this column. */
static void measure(size_t *width, const ft_listing *list)
{
    ft_listing_cell cell[FT_LISTING_MAX_COLUMNS];
    memset(width, 0, list->columns * sizeof *width);
    for (size_t row = 0; row < list->rows; row++) {
        fill_row(cell, list, row);
        for (size_t i = 0; i < list->columns; i++) {
            size_t length = cell[i].text != NULL ? strlen(cell[i].text) : 0;
            width[i] = length > width[i] ? length : width[i];
        }
    }
    for (size_t i = 0; i < list->columns; i++) {
        size_t title = list->column[i].title != NULL ? strlen(list->column[i].title) : 0;
        if ((width[i] > 0 || list->rows == 0) && title > width[i])
            width[i] = title;
    }
}

static size_t line_width(const size_t *width, size_t columns)
{
    size_t sum = 0;
    for (size_t i = 0; i < columns; i++)
        sum += width[i] > 0 ? width[i] + SEPARATOR : 0;
    return sum > 0 ? sum - SEPARATOR : 0;
}

/* The widest column that can still shrink; NULL: none. */
static size_t *widest_shrinkable(size_t *width, const ft_listing *list)
{
    size_t *widest = NULL;
    for (size_t i = 0; i < list->columns; i++)
        if (list->column[i].shrinks && width[i] > MIN_SHRUNK_WIDTH &&
            (widest == NULL || width[i] > *widest))
            widest = &width[i];
    return widest;
}

static void fit_terminal(size_t *width, const ft_listing *list)
{
    size_t available = (size_t) ft_terminal_columns();
    size_t *widest = widest_shrinkable(width, list);
    while (widest != NULL && line_width(width, list->columns) > available) {
        (*widest)--;
        widest = widest_shrinkable(width, list);
    }
}

/* ------------------------------------------------------------------------------------------- */

/* Print one line; `text` has an entry for each column. */
static void print_line(const ft_listing *list, const size_t *width, const char *const *text,
                       FILE *file)
{
    size_t padding = 0;
    for (size_t i = 0; i < list->columns; i++) {
        char buffer[FT_ELLIPSIZED_SIZE];
        if (width[i] == 0)
            continue;
        const char *fitted = ft_ellipsize(buffer, text[i] != NULL ? text[i] : "-", (int) width[i]);
        size_t rest = width[i] - strlen(fitted);
        bool is_number = list->column[i].is_number;
        fprintf(file, "%*s%s", (int) (padding + (is_number ? rest : 0)), "", fitted);
        padding = SEPARATOR + (is_number ? 0 : rest);
    }
    fputc('\n', file);
}

static void print_header(const ft_listing *list, const size_t *width, FILE *file)
{
    const char *title[FT_LISTING_MAX_COLUMNS];
    bool has_titles = false;
    for (size_t i = 0; i < list->columns; i++) {
        title[i] = list->column[i].title;
        has_titles |= title[i] != NULL;
    }
    if (has_titles)
        print_line(list, width, title, file);
}

void ft_listing_print(const ft_listing *list, FILE *file)
{
    assert(list->columns <= FT_LISTING_MAX_COLUMNS);
    size_t width[FT_LISTING_MAX_COLUMNS];
    measure(width, list);
    fit_terminal(width, list);
    print_header(list, width, file);
    for (size_t row = 0; row < list->rows; row++) {
        ft_listing_cell cell[FT_LISTING_MAX_COLUMNS];
        const char *text[FT_LISTING_MAX_COLUMNS];
        fill_row(cell, list, row);
        for (size_t i = 0; i < list->columns; i++)
            text[i] = cell[i].text;
        print_line(list, width, text, file);
    }
}
