/*
 * table.h - rows of named cells, printed as they come for people or as CSV, or kept for JSON.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_CLI_TABLE_H
#define FT_RUNTIME_CLI_TABLE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

typedef enum ft_format { FT_FORMAT_TEXT, FT_FORMAT_CSV, FT_FORMAT_JSON } ft_format;

/* Columns that only machines want: CSV lines must stand alone, and so must rows of JSON. */
typedef enum ft_column { FT_FOR_ALL, FT_FOR_MACHINES, FT_FOR_CSV } ft_column;

/* One cell: a text, or a number with so many digits behind its point. */
typedef struct ft_cell {
    const char *name; /* heads the column */
    const char *head; /* what heads it where people read it; NULL: the name */
    int width;        /* there, at least; 0: the usual one */
    const char *text; /* NULL: a number */
    double number;    /* NaN: empty, and in JSON not there */
    int digits;
    ft_column column;
} ft_cell;

typedef struct ft_table {
    ft_format format;
    json_t *rows; /* JSON only; owned; NULL: there was no memory for one */
    size_t count;
} ft_table;

void ft_table_init(ft_table *table, ft_format format);
void ft_table_fini(ft_table *table);

/* Rows of one table have the same cells.  The first one is preceded by a line of names. */
void ft_table_row(ft_table *table, const ft_cell *cell, size_t count);

/* Begin anew: the next row is preceded by names again, where people read it. */
void ft_table_restart(ft_table *table);

#endif
