/*
 * terminal_width.h - how wide the lines of a table may be.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_CLI_TERMINAL_WIDTH_H
#define FT_RUNTIME_CLI_TERMINAL_WIDTH_H

#include <stddef.h>

enum { FT_CUT_TEXT = 256 };

/* The columns of a line: $COLUMNS, those of the terminal, or 100 where standard output is none. */
int ft_columns(void);

/*
 * How wide a column of texts is, the widest of which has `widest` characters, when all other
 * columns and the blanks between them take `others`: as wide as it needs, but no less than `least`,
 * and beyond that only as ft_columns() allows.
 */
int ft_column_width(size_t widest, int least, int others);

/* `text`, or where that is too wide its beginning and end with ".." between, in `buffer`. */
const char *ft_cut(char buffer[FT_CUT_TEXT], const char *text, int width);

#endif
