/*
 * amax.c - parse amax.tsv strictly: the accuracy of an int8 model depends on these few numbers.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/container/amax.h"

#include "kernels/quant.h"
#include "runtime/error.h"
#include "runtime/mem.h"
#include "runtime/container/zip_directory.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char header_line[] = "name\tamax\tmethod\tclipped\tsqnr";

enum { COLUMNS = 5, MAX_LINE = 511 };

/* ---- The table ------------------------------------------------------------------------------ */

ft_amax_table *ft_amax_table_new(void)
{
    return calloc(1, sizeof(ft_amax_table));
}

void ft_amax_table_free(ft_amax_table *table)
{
    if (table == NULL)
        return;
    for (size_t i = 0; i < table->count; i++)
        free(table->entry[i].name);
    free(table->entry);
    free(table->by_name);
    free(table);
}

/* Position of `name` in the sorted index, or its insertion point. */
static size_t find_position(const ft_amax_table *table, const char *name, bool *found)
{
    size_t low = 0, high = table->count;
    *found = false;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(name, table->entry[table->by_name[middle]].name);
        if (order == 0) {
            *found = true;
            return middle;
        }
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

const ft_amax_entry *ft_amax_table_find(const ft_amax_table *table, const char *name)
{
    bool found;
    size_t i = find_position(table, name, &found);
    return found ? &table->entry[table->by_name[i]] : NULL;
}

static ft_status check_entry(const ft_amax_entry *e, ft_error *err)
{
    if (!ft_zip_name_is_valid(e->name, strlen(e->name)))
        return ft_fail(err, FT_EFORMAT, "\"%.64s\" is not a valid name of a value", e->name);
    if (!(e->amax > 0.0f) || !isfinite(e->amax))
        return ft_fail(err, FT_EFORMAT, "%s: amax %g, expected a positive finite number", e->name,
                       (double) e->amax);
    if (!isnormal(ft_scale_from_amax(e->amax)))
        return ft_fail(err, FT_EFORMAT, "%s: amax %g is too small for a scale", e->name,
                       (double) e->amax);
    if (e->method[0] == '\0' || memchr(e->method, '\0', sizeof e->method) == NULL ||
        !ft_zip_name_is_valid(e->method, strlen(e->method)))
        return ft_fail(err, FT_EFORMAT, "%s: no valid name of a method", e->name);
    if (!(e->clipped >= 0.0 && e->clipped <= 1.0))
        return ft_fail(err, FT_EFORMAT, "%s: clipped fraction %g, expected 0 to 1", e->name,
                       e->clipped);
    if (isnan(e->sqnr))
        return ft_fail(err, FT_EFORMAT, "%s: SQNR is not a number", e->name);
    return FT_OK;
}

static bool reserve(ft_amax_table *table)
{
    if (table->count < table->capacity)
        return true;
    size_t capacity = table->capacity == 0 ? 64 : 2 * table->capacity;
    ft_amax_entry *entry = realloc(table->entry, capacity * sizeof *entry);
    if (entry == NULL)
        return false;
    table->entry = entry;
    uint32_t *by_name = realloc(table->by_name, capacity * sizeof *by_name);
    if (by_name == NULL)
        return false;
    table->by_name = by_name;
    table->capacity = capacity;
    return true;
}

ft_status ft_amax_table_add(ft_amax_table *table, const ft_amax_entry *entry, ft_error *err)
{
    FT_TRY(check_entry(entry, err));
    bool found;
    size_t at = find_position(table, entry->name, &found);
    if (found)
        return ft_fail(err, FT_EFORMAT, "%s: has two amax", entry->name);
    if (table->count == FT_AMAX_MAX_COUNT)
        return ft_fail(err, FT_ELIMIT, "more than %d amax", FT_AMAX_MAX_COUNT);
    char *name = ft_strdup(entry->name);
    if (name == NULL || !reserve(table)) {
        free(name);
        return ft_fail(err, FT_ENOMEM, "no memory for %zu amax", table->count + 1);
    }
    memmove(table->by_name + at + 1, table->by_name + at,
            (table->count - at) * sizeof *table->by_name);
    table->by_name[at] = (uint32_t) table->count;
    table->entry[table->count] = *entry;
    table->entry[table->count].name = name;
    table->count++;
    return FT_OK;
}

bool ft_amax_entry_is_per_token(const ft_amax_entry *entry)
{
    return strcmp(entry->method, FT_AMAX_PER_TOKEN) == 0;
}

/* ---- amax.tsv ----------------------------------------------------------------------------- */

/*
 * Numbers in files use a decimal point, whatever the program's locale: switch this thread to the C
 * locale and back. NULL when out of memory.
 */
static locale_t enter_c_locale(locale_t *old)
{
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t) 0);
    if (c != (locale_t) 0)
        *old = uselocale(c);
    return c;
}

static void leave_c_locale(locale_t c, locale_t old)
{
    uselocale(old);
    freelocale(c);
}

/* Split a line into its columns, in place; false unless there are five. */
static bool split_columns(char *line, char *column[COLUMNS])
{
    int count = 0;
    while (line != NULL && count < COLUMNS) {
        column[count++] = line;
        line = strchr(line, '\t');
        if (line != NULL)
            *line++ = '\0';
    }
    return count == COLUMNS && line == NULL;
}

/* strtod and strtof skip leading white space and parse an empty text as 0; reject both. */
static bool is_complete_number(const char *text, const char *end)
{
    return *text > ' ' && *end == '\0';
}

static ft_status parse_line(ft_amax_table *table, char *line, ft_error *err)
{
    char *column[COLUMNS], *end;
    if (!split_columns(line, column))
        return ft_fail(err, FT_EFORMAT, "expected %d columns", COLUMNS);
    ft_amax_entry entry = { .name = column[0] };
    entry.amax = strtof(column[1], &end);
    if (!is_complete_number(column[1], end))
        return ft_fail(err, FT_EFORMAT, "%.64s: amax \"%.32s\" is not a number", column[0],
                       column[1]);
    if (strlen(column[2]) >= sizeof entry.method)
        return ft_fail(err, FT_EFORMAT, "%.64s: method \"%.32s\" is too long", column[0],
                       column[2]);
    strcpy(entry.method, column[2]);
    entry.clipped = strtod(column[3], &end);
    if (!is_complete_number(column[3], end))
        return ft_fail(err, FT_EFORMAT, "%.64s: clipped \"%.32s\" is not a number", column[0],
                       column[3]);
    entry.sqnr = strtod(column[4], &end);
    if (!is_complete_number(column[4], end))
        return ft_fail(err, FT_EFORMAT, "%.64s: SQNR \"%.32s\" is not a number", column[0],
                       column[4]);
    return ft_amax_table_add(table, &entry, err);
}

/* Copy the line at *text, zero-terminated, and advance *text to the next line. */
static ft_status next_line(char line[MAX_LINE + 1], const char **text, const char *end,
                           ft_error *err)
{
    const char *stop = memchr(*text, '\n', (size_t) (end - *text));
    if (stop == NULL)
        return ft_fail(err, FT_EFORMAT, "truncated: no end of line");
    size_t bytes = (size_t) (stop - *text);
    if (bytes > MAX_LINE)
        return ft_fail(err, FT_EFORMAT, "%zu bytes long, at most %d", bytes, MAX_LINE);
    if (memchr(*text, '\0', bytes) != NULL)
        return ft_fail(err, FT_EFORMAT, "contains a zero byte");
    memcpy(line, *text, bytes);
    line[bytes] = '\0';
    *text = stop + 1;
    return FT_OK;
}

static ft_status parse_lines(ft_amax_table *table, const char *label, const char *text,
                             size_t bytes, ft_error *err)
{
    char line[MAX_LINE + 1];
    const char *end = text + bytes;
    for (size_t number = 1; number == 1 || text < end; number++) {
        ft_error why;
        ft_status rc = next_line(line, &text, end, &why);
        if (rc == FT_OK && number == 1 && strcmp(line, header_line) != 0)
            rc =
                ft_fail(&why, FT_EFORMAT, "expected the columns name, amax, method, clipped, sqnr");
        else if (rc == FT_OK && number > 1)
            rc = parse_line(table, line, &why);
        if (rc != FT_OK)
            return ft_fail(err, rc, "%s: line %zu: %s", label, number, why.text);
    }
    return FT_OK;
}

ft_status ft_amax_table_parse(ft_amax_table **out, const char *label, const void *text,
                              size_t bytes, ft_error *err)
{
    *out = NULL;
    locale_t old, c = enter_c_locale(&old);
    ft_amax_table *table = ft_amax_table_new();
    ft_status rc = FT_OK;
    if (table == NULL || c == (locale_t) 0)
        rc = ft_fail(err, FT_ENOMEM, "%s: no memory", label);
    if (rc == FT_OK)
        rc = parse_lines(table, label, text, bytes, err);
    if (c != (locale_t) 0)
        leave_c_locale(c, old);
    if (rc != FT_OK) {
        ft_amax_table_free(table);
        return rc;
    }
    *out = table;
    return FT_OK;
}

ft_status ft_amax_table_format(const ft_amax_table *table, char **text, size_t *bytes,
                               ft_error *err)
{
    *text = NULL;
    locale_t old, c = enter_c_locale(&old);
    FILE *file = c != (locale_t) 0 ? open_memstream(text, bytes) : NULL;
    if (file != NULL) {
        fprintf(file, "%s\n", header_line);
        for (size_t i = 0; i < table->count; i++) {
            const ft_amax_entry *e = &table->entry[i];
            fprintf(file, "%s\t%.9g\t%s\t%.9g\t%.9g\n", e->name, (double) e->amax, e->method,
                    e->clipped, e->sqnr);
        }
    }
    bool ok = file != NULL && ft_memstream_close(file, text);
    if (c != (locale_t) 0)
        leave_c_locale(c, old);
    return ok ? FT_OK : ft_fail(err, FT_ENOMEM, "no memory for the text of %zu amax", table->count);
}
