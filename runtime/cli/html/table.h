/*
 * table.h - a listing as a table whose headers sort it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_CLI_HTML_TABLE_H
#define FT_RUNTIME_CLI_HTML_TABLE_H

#include "runtime/cli/table.h"

/*
 * Write a listing, all columns of which have titles.  The first column heads its rows.  `caption`
 * is plain text.  The rows are in ascending order of column `sorted`, which its header says; -1:
 * they have an order of their own.
 * Columns in which no row has a value are omitted.
 */
void ft_html_table(FILE *file, const ft_listing *list, const char *caption, int sorted);

#endif
