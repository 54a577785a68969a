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

enum { USUAL = 100, FEWEST = 40, MOST = 10000, NARROWEST = 12 };

static int limited(long columns)
{
    return columns < FEWEST ? FEWEST : columns > MOST ? MOST : (int) columns;
}

int ft_columns(void)
{
    struct winsize size;
    const char *wanted = getenv("COLUMNS");
    long columns = wanted != NULL ? strtol(wanted, NULL, 10) : 0;
    if (columns > 0)
        return limited(columns);
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        return limited(size.ws_col);
    return USUAL;
}

int ft_column_width(size_t widest, int least, int others)
{
    int room = ft_columns() - others;
    int width = widest > (size_t) MOST ? MOST : (int) widest;
    width = width < least ? least : width;
    width = width > room ? room : width;
    return width < NARROWEST ? NARROWEST : width;
}

const char *ft_cut(char buffer[FT_CUT_TEXT], const char *text, int width)
{
    size_t length = strlen(text);
    if (length <= (size_t) width)
        return text;
    int kept = (width < FT_CUT_TEXT ? width : FT_CUT_TEXT - 1) - 2, head = kept / 2;
    snprintf(buffer, FT_CUT_TEXT, "%.*s..%s", head, text, text + length - (size_t) (kept - head));
    return buffer;
}
