/*
 * table.c - rows of named cells, printed as text, CSV or JSON.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/cli/table.h"

#include "runtime/base/json_build.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { NUMBER_SIZE = 400 }; /* any double with "%f" */

void ft_table_init(ft_table *table, ft_table_format format)
{
    *table = (ft_table){ .format = format };
    if (format == FT_TABLE_JSON)
        table->rows = json_array();
}

void ft_table_fini(ft_table *table)
{
    json_decref(table->rows);
    table->rows = NULL;
}

void ft_table_repeat_header(ft_table *table)
{
    if (table->format == FT_TABLE_TEXT)
        table->count = 0;
}

/* ---- Text --------------------------------------------------------------------------------- */

/*
 * Numbers are right-aligned, texts left-aligned; a column is as wide as its title, and at least
 * this.
 */
enum { TEXT_WIDTH = 10, NUMBER_WIDTH = 7 };

static const char *title_of(const ft_cell *cell)
{
    return cell->head != NULL ? cell->head : cell->name;
}

static int width_of(const ft_cell *cell)
{
    int usual = cell->text != NULL ? TEXT_WIDTH : NUMBER_WIDTH;
    int min_width = cell->width > 0 ? cell->width : usual, head = (int) strlen(title_of(cell));
    return head > min_width ? head : min_width;
}

/* The last column is not padded. */
static void print_text(const char *text, const ft_cell *cell, bool last)
{
    int width = width_of(cell);
    if (cell->text != NULL)
        printf("%-*s", last ? 0 : width, text);
    else
        printf("%*s", width, text);
    fputs(last ? "\n" : " ", stdout);
}

/* Print as many digits as fit the column. */
static void print_number(const ft_cell *cell, bool last)
{
    char text[NUMBER_SIZE] = "";
    int digits = cell->digits, width = width_of(cell);
    if (!isnan(cell->number))
        while (snprintf(text, sizeof text, "%.*f", digits, cell->number) > width && digits > 0)
            digits--;
    print_text(text, cell, last);
}

/* ---- CSV ---------------------------------------------------------------------------------- */

/* Quoted if necessary. */
static void print_csv(const char *text, bool last)
{
    bool quoted = strpbrk(text, ",\"\n") != NULL;
    if (quoted)
        putchar('"');
    for (; *text != '\0'; text++) {
        if (*text == '"')
            putchar('"');
        putchar(*text);
    }
    if (quoted)
        putchar('"');
    putchar(last ? '\n' : ',');
}

static void print_csv_cell(const ft_cell *cell, bool last)
{
    char number[NUMBER_SIZE] = "";
    if (cell->text == NULL && !isnan(cell->number))
        snprintf(number, sizeof number, "%.*f", cell->digits, cell->number);
    print_csv(cell->text != NULL ? cell->text : number, last);
}

/* ------------------------------------------------------------------------------------------- */

static void print_header(const ft_table *table, const ft_cell *cell, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        bool last = i + 1 == count;
        if (table->format == FT_TABLE_CSV)
            print_csv(cell[i].name, last);
        else if (cell[i].column == FT_COLUMN_ALL)
            print_text(title_of(&cell[i]), &cell[i], last);
    }
}

static void print_row(const ft_table *table, const ft_cell *cell, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        bool last = i + 1 == count;
        if (table->format == FT_TABLE_CSV)
            print_csv_cell(&cell[i], last);
        else if (cell[i].column == FT_COLUMN_ALL && cell[i].text != NULL)
            print_text(cell[i].text, &cell[i], last);
        else if (cell[i].column == FT_COLUMN_ALL)
            print_number(&cell[i], last);
    }
}

static json_t *cell_json(const ft_cell *cell)
{
    if (cell->text != NULL)
        return json_string(cell->text);
    return cell->digits == 0 ? json_integer((json_int_t) cell->number) : json_real(cell->number);
}

static void append_json_row(ft_table *table, const ft_cell *cell, size_t count)
{
    json_t *row = json_object();
    for (size_t i = 0; i < count; i++)
        if (cell[i].column != FT_COLUMN_CSV && (cell[i].text != NULL || isfinite(cell[i].number)))
            ft_json_set(&row, cell[i].name, cell_json(&cell[i]));
    ft_json_append(&table->rows, row);
}

void ft_table_row(ft_table *table, const ft_cell *cell, size_t count)
{
    if (table->format == FT_TABLE_JSON) {
        append_json_row(table, cell, count);
        return;
    }
    if (table->count++ == 0)
        print_header(table, cell, count);
    print_row(table, cell, count);
    fflush(stdout);
}
