/*
 * terminal_width.h - the available width of a table.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_CLI_TERMINAL_WIDTH_H
#define FT_RUNTIME_CLI_TERMINAL_WIDTH_H

#include <stddef.h>

enum { FT_ELLIPSIZED_SIZE = 256 };

/*
 * The width of a line: $COLUMNS, the terminal's width, or 100 if standard output is not a terminal.
 */
int ft_terminal_columns(void);

/* `text`, or if it is too wide its beginning and end joined by "..", in `buffer`. */
const char *ft_ellipsize(char buffer[FT_ELLIPSIZED_SIZE], const char *text, int width);

#endif
