/*
 * table.h - tables.
 *
 * ft_table prints a row when it is measured, as text or CSV, or collects rows for JSON.  ft_listing
 * prints rows that are all known, with columns as wide as their widest text.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_CLI_TABLE_H
#define FT_RUNTIME_CLI_TABLE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

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

/* ---- Lists -------------------------------------------------------------------------------- */

typedef struct ft_listing_column {
    const char *title; /* NULL in all columns: no header */
    bool is_number;    /* right-aligned */
    bool shrinks;      /* abbreviated in the middle if lines are wider than the terminal */
} ft_listing_column;

enum { FT_LISTING_MAX_COLUMNS = 8, FT_LISTING_TEXT = 192 };

/* `text` may point to `buffer`; NULL: no value, printed as "-". */
typedef struct ft_listing_cell {
    const char *text;
    char buffer[FT_LISTING_TEXT];
} ft_listing_cell;

typedef struct ft_listing {
    const ft_listing_column *column;
    size_t columns; /* 1 .. FT_LISTING_MAX_COLUMNS */
    size_t rows;
    /* Set the cells of a row, which have no values yet.  Called twice for each row. */
    void (*fill)(ft_listing_cell *cell, const void *source, size_t row);
    const void *source;
} ft_listing;

/*
 * Print the header and all rows.  Columns in which no row has a value are omitted.  Lines are at
 * most as wide as ft_terminal_columns() where columns that shrink to 12 characters allow it.
 */
void ft_listing_print(const ft_listing *list, FILE *file);

/* Set the text of a cell as printf does, truncated to the buffer. */
void ft_listing_cell_format(ft_listing_cell *cell, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
