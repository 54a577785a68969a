/*
 * option_table.h - the options of a tool as a table, from which parsing, --help and completions
 * follow.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_CLI_OPTION_TABLE_H
#define FT_RUNTIME_CLI_OPTION_TABLE_H

#include <stdbool.h>

/* Ids of options without a letter: those of a tool from FT_LONG_ONLY on, then the common ones. */
enum {
    FT_LONG_ONLY = 256,
    FT_OPTION_DEVICE = 512,
    FT_OPTION_VERIFY,
    FT_OPTION_KV,
    FT_OPTION_TUNING,
    FT_OPTION_JSON,
    FT_OPTION_COMPLETION,
};

typedef struct ft_option {
    int id;               /* the letter, or a number from FT_LONG_ONLY on */
    const char *name;     /* long, without "--" */
    const char *argument; /* "FILE", "FILE...", "N", "auto|f16", "[crc|sha256]" if optional; NULL
                             for none.  Shells complete words without capitals */
    const char *help;     /* lines of at most 50 columns; NULL: not in --help */
} ft_option;

typedef struct ft_tool {
    const char *name;        /* "ft-inspect" */
    const char *usage;       /* lines after the name: "[OPTION]... FILE" */
    const char *about;       /* a sentence or two */
    const ft_option *option; /* ends with id 0; -h --help and -V --version are added */
} ft_tool;

/* Option `index` of the tool's and the common options; NULL after the last. */
const ft_option *ft_tool_option_at(const ft_tool *tool, int index);

/* Whether the argument is the name of a file. */
bool ft_option_is_file(const ft_option *o);

#endif
