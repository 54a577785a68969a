/*
 * table.h - a table of named cells, printed row by row as text or CSV, or collected for JSON.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_CLI_TABLE_H
#define FT_RUNTIME_CLI_TABLE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

typedef enum ft_table_format { FT_TABLE_TEXT, FT_TABLE_CSV, FT_TABLE_JSON } ft_table_format;

/*
 * Columns only for machine-readable formats: each line of CSV, and each row of JSON, must be
 * self-contained.
 */
typedef enum ft_column_audience {
    FT_COLUMN_ALL,
    FT_COLUMN_MACHINE,
    FT_COLUMN_CSV
} ft_column_audience;

/* One cell: a text, or a number with `digits` decimals. */
typedef struct ft_cell {
    const char *name; /* column name */
    const char *head; /* title in text format; NULL: the name */
    int width;        /* minimum width in text format; 0: the default */
    const char *text; /* NULL: a number */
    double number;    /* NaN: empty, omitted in JSON */
    int digits;
    ft_column_audience column;
} ft_cell;

typedef struct ft_table {
    ft_table_format format;
    json_t *rows; /* JSON only; owned; NULL: out of memory */
    size_t count;
} ft_table;

void ft_table_init(ft_table *table, ft_table_format format);
void ft_table_fini(ft_table *table);

/* Add a row. All rows of a table have the same cells. A header precedes the first one. */
void ft_table_row(ft_table *table, const ft_cell *cell, size_t count);

/* Print the header again before the next row, in text format. */
void ft_table_repeat_header(ft_table *table);

#endif
