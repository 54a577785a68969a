/*
 * terminal_width.c - the available width of a table.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/cli/terminal_width.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { DEFAULT_COLUMNS = 100, MIN_COLUMNS = 40, MAX_COLUMNS = 10000 };

static int clamp_columns(long columns)
{
    return columns < MIN_COLUMNS   ? MIN_COLUMNS
           : columns > MAX_COLUMNS ? MAX_COLUMNS
                                   : (int) columns;
}

int ft_terminal_columns(void)
{
    struct winsize size;
    const char *columns_env = getenv("COLUMNS");
    long columns = columns_env != NULL ? strtol(columns_env, NULL, 10) : 0;
    if (columns > 0)
        return clamp_columns(columns);
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        return clamp_columns(size.ws_col);
    return DEFAULT_COLUMNS;
}

const char *ft_ellipsize(char buffer[FT_ELLIPSIZED_SIZE], const char *text, int width)
{
    size_t length = strlen(text);
    if (length <= (size_t) width)
        return text;
    int n_kept = (width < FT_ELLIPSIZED_SIZE ? width : FT_ELLIPSIZED_SIZE - 1) - 2,
        n_head = n_kept / 2;
    snprintf(buffer, FT_ELLIPSIZED_SIZE, "%.*s..%s", n_head, text,
             text + length - (size_t) (n_kept - n_head));
    return buffer;
}
