/*
 * options.h - command lines of the ft-* tools: one table of options per tool, which also generates
 * --help and the completions of shells (--completion SHELL).
 *
 * Long options accept underscores for hyphens, as both conventions are common. Usage errors are
 * printed to standard error and exit with status 2, invalid files and failures with 1.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_CLI_OPTIONS_H
#define FT_RUNTIME_CLI_OPTIONS_H

#include "runtime/cli/option_table.h"
#include "runtime/ft.h"

enum { FT_EXIT_FAILURE = 1, FT_EXIT_USAGE = 2 };

/* Rows of the tables of several tools. */
#define FT_THREADS_OPTION                                                                          \
    {                                                                                              \
        't', "threads", "N", "threads; default all processors"                                     \
    }
#define FT_DEVICE_OPTION                                                                           \
    {                                                                                              \
        FT_OPTION_DEVICE, "device", "cpu|cuda[:N]", "default cpu"                                  \
    }
#define FT_VERIFY_OPTION                                                                           \
    {                                                                                              \
        FT_OPTION_VERIFY, "verify", "structure|crc|sha256", "default structure"                    \
    }
#define FT_KV_OPTION                                                                               \
    {                                                                                              \
        FT_OPTION_KV, "kv", "auto|f16|int8", "dtype of the KV cache; default auto"                 \
    }
#define FT_TUNING_OPTION                                                                           \
    {                                                                                              \
        FT_OPTION_TUNING, "tuning", "FILE", "of ft-bench --tune; default ~/.cache/ft/tuning.json"  \
    }
#define FT_JSON_OPTION                                                                             \
    {                                                                                              \
        FT_OPTION_JSON, "json", NULL, "print one JSON object"                                      \
    }
#define FT_REPORT_JSON_OPTION                                                                      \
    {                                                                                              \
        FT_OPTION_JSON, "json", NULL, "print the report as JSON"                                   \
    }
#define FT_VERBOSE_OPTION                                                                          \
    {                                                                                              \
        'v', "verbose", NULL, "print plan and int8 GEMM kernels to standard error"                 \
    }

/*
 * Return the next option's id and set *value to its argument or NULL; -1 after the last, when the
 * operands are argv[optind..argc). Modifies argv. --help, --version and --completion print and
 * exit. An option with the argument "FILE" may be given only once, since only one file would be
 * used; file names must not be empty.
 */
int ft_options_next(const ft_tool *tool, int argc, char **argv, const char **value);

/* Print "ft-inspect: TEXT" and a hint at --help to standard error and exit with status 2. */
_Noreturn void ft_tool_usage_error(const ft_tool *tool, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The long name of an option of the tool's table. */
const char *ft_tool_option_name(const ft_tool *tool, int option);

/* Usage errors: an operand is left behind the options; -q and -v are both given. */
void ft_tool_check_no_operands(const ft_tool *tool, int argc, char **argv);
void ft_tool_check_verbosity(const ft_tool *tool, bool quiet, bool verbose);

/*
 * Parse the value of an option; usage errors name the option. An integer from `low` to 2^24 or to
 * `high`; a number from `low` to `high`, or above 0 and up to `high`; the index of a word in a list
 * that ends with NULL; the number of threads of a session; a device name, whether or not the device
 * exists; a level of verification; the group size of group-wise quantization.
 */
int ft_tool_int(const ft_tool *tool, int option, const char *text, int low);
int ft_tool_int_range(const ft_tool *tool, int option, const char *text, int low, int high);
double ft_tool_double(const ft_tool *tool, int option, const char *text, double low, double high);
double ft_tool_positive(const ft_tool *tool, int option, const char *text, double high);
int ft_tool_word(const ft_tool *tool, int option, const char *text, const char *const *words);
int ft_tool_threads(const ft_tool *tool, int option, const char *text);
const char *ft_tool_device(const ft_tool *tool, int option, const char *text);
ft_verify ft_tool_verify(const ft_tool *tool, int option, const char *text);
int32_t ft_tool_group(const ft_tool *tool, int option, const char *text);

/* Parse up to `capacity` integers from 1 to `high`, separated by commas; returns their count. */
size_t ft_tool_list(const ft_tool *tool, int option, const char *text, long high, size_t *item,
                    size_t capacity);

/* The same for numbers as ft_tool_positive() takes them. */
size_t ft_tool_positive_list(const ft_tool *tool, int option, const char *text, double high,
                             double *item, size_t capacity);

/* Parse --device, --verify, --kv or --tuning into `model`; false: another option. */
bool ft_tool_model_option(const ft_tool *tool, ft_model_options *model, int option,
                          const char *text);

/* Print "ft-run: warning: TEXT" to standard error, unless the text is empty. */
void ft_tool_warn(const ft_tool *tool, const char *text);

/* Print "ft-inspect: TEXT" to standard error; returns status 1. */
int ft_tool_error(const ft_tool *tool, const char *text);

/*
 * Print an untrusted text: control characters, which a terminal would interpret, become '?'. Padded
 * with spaces to `width` bytes.
 */
void ft_tool_print_escaped(const char *text, int width);
void ft_tool_print_escaped_bytes(const char *text, size_t bytes);

/* Returns `status`, or failure if not all output could be written to standard output. */
int ft_tool_exit_status(const ft_tool *tool, int status);

#endif
