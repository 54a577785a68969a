/*
 * options.h - command lines of the ft-* tools: one table of options per tool, which also generates
 * --help.
 *
 * Long options accept underscores for hyphens, as both conventions are common. Usage errors are
 * printed to standard error and exit with status 2, invalid files and failures with 1.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_CLI_OPTIONS_H
#define FT_RUNTIME_CLI_OPTIONS_H

#include "runtime/ft.h"

enum { FT_EXIT_FAILURE = 1, FT_EXIT_USAGE = 2 };

/* Ids of options without a letter start here. */
enum { FT_LONG_ONLY = 256 };

typedef struct ft_option {
    int id;               /* the letter, or a number from FT_LONG_ONLY on */
    const char *name;     /* long, without "--" */
    const char *argument; /* "FILE", "FILE...", "[LEVEL]" if optional; NULL for none */
    const char *help;     /* lines of at most 50 columns */
} ft_option;

typedef struct ft_tool {
    const char *name;        /* "ft-inspect" */
    const char *usage;       /* lines after the name: "[OPTION]... FILE" */
    const char *about;       /* a sentence or two */
    const ft_option *option; /* ends with id 0; -h --help and -V --version are added */
} ft_tool;

/*
 * Return the next option's id and set *value to its argument or NULL; -1 after the last, when the
 * operands are argv[optind..argc). Modifies argv. --help and --version print and exit. An option
 * with the argument "FILE" may be given only once, since only one file would be used; file names
 * must not be empty.
 */
int ft_options_next(const ft_tool *tool, int argc, char **argv, const char **value);

/* Print "ft-inspect: TEXT" and a hint at --help to standard error and exit with status 2. */
_Noreturn void ft_tool_usage_error(const ft_tool *tool, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The long name of an option of the tool's table. */
const char *ft_tool_option_name(const ft_tool *tool, int option);

/*
 * Parse the value of an option; usage errors name the option. An integer from `low` to 2^24 or to
 * `high`, a number from `low` to `high`, the number of threads of a session, a device name, whether
 * or not the device exists, or a keyword.
 */
int ft_tool_int(const ft_tool *tool, int option, const char *text, int low);
int ft_tool_int_range(const ft_tool *tool, int option, const char *text, int low, int high);
double ft_tool_double(const ft_tool *tool, int option, const char *text, double low, double high);
int ft_tool_threads(const ft_tool *tool, int option, const char *text);
const char *ft_tool_device(const ft_tool *tool, int option, const char *text);
ft_verify ft_tool_verify(const ft_tool *tool, int option, const char *text);
ft_kv_dtype ft_tool_kv_dtype(const ft_tool *tool, int option, const char *text);

/* Print "ft-inspect: TEXT" to standard error; returns status 1. */
int ft_tool_error(const ft_tool *tool, const char *text);

/*
 * Print an untrusted text: control characters, which a terminal would interpret, become '?'. Padded
 * with spaces to `width` bytes.
 */
void ft_tool_print_escaped(const char *text, int width);

/* Returns `status`, or failure if not all output could be written to standard output. */
int ft_tool_exit_status(const ft_tool *tool, int status);

#endif
