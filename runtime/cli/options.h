/*
 * options.h - command lines of the ft-* tools: one table of options each, from which --help comes.
 *
 * Long options take underscores for hyphens, since half of this field writes them so.  Usage errors
 * go to standard error and end the program with status 2, bad files and failures with 1.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_CLI_OPTIONS_H
#define FT_RUNTIME_CLI_OPTIONS_H

#include "runtime/ft.h"

enum { FT_EXIT_FAILURE = 1, FT_EXIT_USAGE = 2 };

/* Identifiers of options that have no letter start here. */
enum { FT_LONG_ONLY = 256 };

typedef struct ft_option {
    int id;               /* the letter, or a number from FT_LONG_ONLY on */
    const char *name;     /* long, without "--" */
    const char *argument; /* "FILE", "FILE...", "[LEVEL]" when it may be left out; NULL for none */
    const char *help;     /* lines of at most 50 columns */
} ft_option;

typedef struct ft_tool {
    const char *name;        /* "ft-inspect" */
    const char *usage;       /* lines after the name: "[OPTION]... FILE" */
    const char *about;       /* a sentence or two */
    const ft_option *option; /* ends with id 0; -h --help and -V --version are added */
} ft_tool;

/*
 * The next option: its id, *value its argument or NULL; -1 after the last, when the operands are
 * argv[optind..argc).  Changes argv.  --help and --version print and end the program.  An option
 * with the argument "FILE" is refused where it is given twice, since only one file would be used;
 * no name of a file may be empty.
 */
int ft_options_next(const ft_tool *tool, int argc, char **argv, const char **value);

/* "ft-inspect: TEXT" on standard error and how to get help; ends the program with status 2. */
_Noreturn void ft_tool_usage(const ft_tool *tool, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The long name of an option of the tool's table. */
const char *ft_tool_name_of(const ft_tool *tool, int option);

/*
 * The value of an option, which usage errors name: a whole number from `low` to 2^24 or to `high`
 * (low 0: "whole", 1: "positive"), a number from `low` to `high`, as many threads as a session may
 * have, the name of a device that may or may not be there, or a word.
 */
int ft_tool_whole(const ft_tool *tool, int option, const char *text, int low);
int ft_tool_whole_to(const ft_tool *tool, int option, const char *text, int low, int high);
double ft_tool_real(const ft_tool *tool, int option, const char *text, double low, double high);
int ft_tool_threads(const ft_tool *tool, int option, const char *text);
const char *ft_tool_device(const ft_tool *tool, int option, const char *text);
ft_verify ft_tool_verify(const ft_tool *tool, int option, const char *text);
ft_kv ft_tool_kv(const ft_tool *tool, int option, const char *text);

/* "ft-inspect: TEXT" on standard error; returns status 1. */
int ft_tool_fail(const ft_tool *tool, const char *text);

/*
 * Print a text that comes from a file: control characters, which a terminal would obey, become '?'.
 * Padded with spaces to `width` bytes.
 */
void ft_tool_print(const char *text, int width);

/* `status`, or failure where standard output did not take all that was printed. */
int ft_tool_end(const ft_tool *tool, int status);

#endif
