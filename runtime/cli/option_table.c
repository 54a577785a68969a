/*
 * option_table.c - the rows of a tool's table, and those that all tools have.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/cli/option_table.h"

#include <stddef.h>
#include <string.h>

static const ft_option common[] = {
    { 'h', "help", NULL, "print this help" },
    { 'V', "version", NULL, "print the version" },
    { FT_OPTION_COMPLETION, "completion", "bash|fish|zsh", NULL },
};

enum { COMMON = sizeof common / sizeof *common };

const ft_option *ft_tool_option_at(const ft_tool *tool, int index)
{
    int own = 0;
    while (tool->option[own].id != 0)
        own++;
    if (index < own)
        return &tool->option[index];
    return index < own + COMMON ? &common[index - own] : NULL;
}

bool ft_option_is_file(const ft_option *o)
{
    return o->argument != NULL &&
           (strncmp(o->argument, "FILE", 4) == 0 || strcmp(o->argument, "PATH") == 0);
}
