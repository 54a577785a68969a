/*
 * listing-t.c - lists have columns as wide as their widest text and fit into the terminal.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/cli/table.h"
#include "runtime/mem.h"
#include "tests/tap/tap.h"

#include <stdlib.h>
#include <string.h>

typedef struct row {
    const char *name;
    double value;
    const char *unit; /* NULL: none */
} row;

static void fill(ft_listing_cell *cell, const void *source, size_t index)
{
    const row *r = (const row *) source + index;
    cell[0].text = r->name;
    ft_listing_cell_format(&cell[1], "%.2f", r->value);
    cell[2].text = r->unit;
}

static const ft_listing_column columns[] = { { .title = "name", .shrinks = true },
                                             { .title = "value", .is_number = true },
                                             { .title = "unit" } };
static const ft_listing_column untitled[] = { { .shrinks = true }, { .is_number = true }, { 0 } };

/* The caller frees it. */
static char *printed(const ft_listing_column *column, const row *rows, size_t count)
{
    const ft_listing list = {
        .column = column, .columns = 3, .rows = count, .fill = fill, .source = rows
    };
    char *text = NULL;
    size_t bytes = 0;
    FILE *file = open_memstream(&text, &bytes);
    if (file == NULL)
        bail_out("no memory");
    ft_listing_print(&list, file);
    fclose(file);
    return text;
}

static void is_printed(const ft_listing_column *column, const row *rows, size_t count,
                       const char *expected, const char *sentence)
{
    char *text = printed(column, rows, count);
    is_str(text, expected, "%s", sentence);
    free(text);
}

static void test_widths(void)
{
    const row rows[] = { { "a", 1.5, "m" }, { "longer", 1234.0, NULL }, { "", -2.0, "ms" } };
    is_printed(columns, rows, 3,
               "name      value  unit\n"
               "a          1.50  m\n"
               "longer  1234.00  -\n"
               "          -2.00  ms\n",
               "columns are as wide as their widest text, and a missing value is a dash");
    is_printed(columns, rows + 1, 1,
               "name      value\n"
               "longer  1234.00\n",
               "a column without values is omitted");
    is_printed(untitled, rows, 2,
               "a          1.50  m\n"
               "longer  1234.00  -\n",
               "a list without titles has no header");
    is_printed(columns, rows, 0, "name  value  unit\n", "a list without rows is its header");
}

/* The length of the longest line. */
static size_t widest_line(const char *text)
{
    size_t widest = 0;
    for (size_t n = strcspn(text, "\n"); *text != '\0'; n = strcspn(text, "\n")) {
        widest = n > widest ? n : widest;
        text += text[n] == '\n' ? n + 1 : n;
    }
    return widest;
}

static void test_terminal(void)
{
    const row rows[] = { { "encoder.layer.10.attention.output.dense.weight.of.a.model", 1.0,
                           "kilometres per hour" },
                         { "short", 2.0, "m" } };
    for (int available = 50; available <= 90; available += 20) {
        char number[16];
        snprintf(number, sizeof number, "%d", available);
        setenv("COLUMNS", number, 1);
        char *text = printed(columns, rows, 2);
        size_t widest = widest_line(text), whole = strlen(rows[0].name) + 2 + 5 + 2 + 19;
        is_int((long long) widest, available < (int) whole ? available : (long long) whole,
               "a list fills at most %d columns", available);
        ok(strstr(text, "kilometres per hour\n") != NULL && strstr(text, "encoder.") != NULL,
           "with %d columns only the column that shrinks is abbreviated", available);
        free(text);
    }
    setenv("COLUMNS", "40", 1);
    char *text = printed(columns, rows, 2);
    ok(strstr(text, "encode..model") == NULL && strstr(text, "encod..model ") != NULL,
       "a column shrinks to 12 characters at least");
    diag("%s", text);
    free(text);
    unsetenv("COLUMNS");
}

int main(void)
{
    test_widths();
    test_terminal();
    return done_testing();
}
