/*
 * provenance.c - print where an artifact comes from.
 *
 * The manifest comes from a file, so nothing about the types of its members is assumed.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/tools/inspect/inspect.h"

#include "runtime/cli/options.h"

#include <stdio.h>

enum { MAX_DEPTH = 4 };

/* A value on the rest of the line; members of objects and elements of arrays are separated by commas. */
static void print_value(const json_t *value, int depth)
{
    const char *key, *separator = "";
    json_t *member;
    size_t i;
    switch (json_typeof(value)) {
    case JSON_STRING:
        ft_tool_print_escaped(json_string_value(value), 0);
        break;
    case JSON_INTEGER:
        printf("%" JSON_INTEGER_FORMAT, json_integer_value(value));
        break;
    case JSON_REAL:
        printf("%.6g", json_real_value(value));
        break;
    case JSON_TRUE:
        fputs("yes", stdout);
        break;
    case JSON_FALSE:
        fputs("no", stdout);
        break;
    case JSON_NULL:
        putchar('-');
        break;
    case JSON_OBJECT:
        json_object_foreach((json_t *) (uintptr_t) value, key, member)
        {
            printf("%s", separator);
            ft_tool_print_escaped(key, 0);
            putchar(' ');
            if (depth < MAX_DEPTH)
                print_value(member, depth + 1);
            separator = ", ";
        }
        break;
    case JSON_ARRAY:
        json_array_foreach(value, i, member)
        {
            printf("%s", separator);
            if (depth < MAX_DEPTH)
                print_value(member, depth + 1);
            separator = " ";
        }
    }
}

static void print_line(const char *title, const json_t *value)
{
    fputs("  ", stdout);
    ft_tool_print_escaped(title, 0);
    fputs(": ", stdout);
    print_value(value, 0);
    putchar('\n');
}

void ft_inspect_provenance(const ft_artifact *artifact)
{
    const json_t *provenance = ft_artifact_get_header(artifact)->provenance;
    const char *key;
    json_t *member, *element;
    size_t i;
    if (provenance == NULL)
        return;
    puts("provenance:");
    json_object_foreach((json_t *) (uintptr_t) provenance, key, member)
    {
        if (!json_is_array(member))
            print_line(key, member);
        json_array_foreach(member, i, element)
        {
            print_line(key, element);
        }
    }
}
