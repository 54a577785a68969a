/*
 * table.c - rows of named cells, for people, as CSV or as JSON.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/tools/table.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

void ft_table_init(ft_table *table, ft_format format)
{
    *table = (ft_table){ .format = format };
    if (format == FT_FORMAT_JSON)
        table->rows = json_array();
}

void ft_table_fini(ft_table *table)
{
    json_decref(table->rows);
    table->rows = NULL;
}

void ft_table_restart(ft_table *table)
{
    if (table->format == FT_FORMAT_TEXT)
        table->count = 0;
}

/* ---- Text --------------------------------------------------------------------------------- */

/* Numbers are set right, texts left; a column is as wide as its name, texts at least this. */
enum { TEXT_WIDTH = 10, NUMBER_WIDTH = 9 };

static int width_of(const ft_cell *cell)
{
    int least = cell->text != NULL ? TEXT_WIDTH : NUMBER_WIDTH, name = (int) strlen(cell->name);
    return name > least ? name : least;
}

/* The last column has no blanks behind it. */
static void print_text(const char *text, const ft_cell *cell, bool last)
{
    int width = width_of(cell);
    if (cell->text != NULL)
        printf("%-*s", last ? 0 : width, text);
    else
        printf("%*s", width, text);
    fputs(last ? "\n" : "  ", stdout);
}

/* ---- CSV ---------------------------------------------------------------------------------- */

/* Quoted where it must be. */
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

/* ------------------------------------------------------------------------------------------- */

static const char *text_of(const ft_cell *cell, char *buffer, size_t bytes)
{
    if (cell->text != NULL)
        return cell->text;
    if (isnan(cell->number))
        return "";
    snprintf(buffer, bytes, "%.*f", cell->digits, cell->number);
    return buffer;
}

static void print_row(const ft_table *table, const ft_cell *cell, size_t count, bool names)
{
    for (size_t i = 0; i < count; i++) {
        char buffer[400]; /* any double, in full */
        const char *text = names ? cell[i].name : text_of(&cell[i], buffer, sizeof buffer);
        if (table->format == FT_FORMAT_CSV)
            print_csv(text, i + 1 == count);
        else if (cell[i].column == FT_FOR_ALL)
            print_text(text, &cell[i], i + 1 == count);
    }
}

static json_t *json_of(const ft_cell *cell)
{
    if (cell->text != NULL)
        return json_string(cell->text);
    return cell->digits == 0 ? json_integer((json_int_t) cell->number) : json_real(cell->number);
}

static void keep_row(ft_table *table, const ft_cell *cell, size_t count)
{
    json_t *row = json_object();
    for (size_t i = 0; i < count; i++)
        if (cell[i].column != FT_FOR_CSV && (cell[i].text != NULL || !isnan(cell[i].number)))
            json_object_set_new(row, cell[i].name, json_of(&cell[i]));
    json_array_append_new(table->rows, row);
}

void ft_table_row(ft_table *table, const ft_cell *cell, size_t count)
{
    if (table->format == FT_FORMAT_JSON) {
        keep_row(table, cell, count);
        return;
    }
    if (table->count++ == 0)
        print_row(table, cell, count, true);
    print_row(table, cell, count, false);
    fflush(stdout);
}
