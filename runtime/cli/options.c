/*
 * options.c - getopt_long, driven by a table.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/cli/options.h"

#include "runtime/cli/completion.h"
#include "runtime/model/devices.h"
#include "runtime/model/session.h"

#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_OPTIONS = 96, HELP_COLUMN = 28 };

static bool is_known(const ft_tool *tool, int id)
{
    const ft_option *o;
    for (int i = 0; (o = ft_tool_option_at(tool, i)) != NULL; i++)
        if (o->id == id)
            return true;
    return false;
}

/* ---- Help --------------------------------------------------------------------------------- */

/* One option, with its help in the second column. */
static void print_option(const ft_option *o)
{
    char letter[8] = "    ";
    if (o->id < FT_LONG_ONLY)
        snprintf(letter, sizeof letter, "-%c, ", o->id);
    const char *argument = o->argument != NULL ? o->argument : "";
    const char *separator = argument[0] == '[' ? "[=" : argument[0] != '\0' ? " " : "";
    int width = printf("  %s--%s%s%s", letter, o->name, separator, argument + (argument[0] == '['));
    if (width >= HELP_COLUMN) {
        putchar('\n');
        width = 0;
    }
    printf("%*s", HELP_COLUMN - width, "");
    for (const char *c = o->help; *c != '\0'; c++) {
        putchar(*c);
        if (*c == '\n')
            printf("%*s", HELP_COLUMN, "");
    }
    putchar('\n');
}

static _Noreturn void print_help(const ft_tool *tool)
{
    const char *start = "usage: ";
    for (const char *line = tool->usage; line != NULL;) {
        const char *end = strchr(line, '\n');
        size_t length = end != NULL ? (size_t) (end - line) : strlen(line);
        printf("%s%s %.*s\n", start, tool->name, (int) length, line);
        start = "       ";
        line = end != NULL ? end + 1 : NULL;
    }
    printf("\n%s\n\n", tool->about);
    const ft_option *o;
    for (int i = 0; (o = ft_tool_option_at(tool, i)) != NULL; i++)
        if (o->help != NULL)
            print_option(o);
    exit(ft_tool_exit_status(tool, EXIT_SUCCESS));
}

static _Noreturn void print_version(const ft_tool *tool)
{
    printf("%s %s\n", tool->name, ft_version());
    exit(ft_tool_exit_status(tool, EXIT_SUCCESS));
}

static _Noreturn void print_completion(const ft_tool *tool, const char *shell)
{
    static const char *const shells[] = {
        [FT_SHELL_BASH] = "bash", [FT_SHELL_FISH] = "fish", [FT_SHELL_ZSH] = "zsh", NULL
    };
    ft_tool_print_completion(tool,
                             (ft_shell) ft_tool_word(tool, FT_OPTION_COMPLETION, shell, shells));
    exit(ft_tool_exit_status(tool, EXIT_SUCCESS));
}

/* ---- Reading ------------------------------------------------------------------------------ */

static void accept_underscores(char *argument)
{
    if (strncmp(argument, "--", 2) != 0)
        return;
    for (char *c = argument; *c != '\0' && *c != '='; c++)
        if (*c == '_')
            *c = '-';
}

/* Convert the table for getopt_long. */
static void to_getopt(const ft_tool *tool, struct option *longs, char *letters)
{
    const ft_option *o;
    *letters++ = ':';
    for (int i = 0; i < MAX_OPTIONS && (o = ft_tool_option_at(tool, i)) != NULL; i++) {
        int argument = o->argument == NULL     ? no_argument
                       : o->argument[0] == '[' ? optional_argument
                                               : required_argument;
        longs[i] = (struct option){ o->name, argument, NULL, o->id };
        if (o->id >= FT_LONG_ONLY)
            continue;
        *letters++ = (char) o->id;
        for (int colons = argument; colons > 0; colons--) /* "x:" required, "x::" optional */
            *letters++ = ':';
    }
}

/*
 * First pass over all options, to check file arguments only; other errors are reported in the
 * second pass.
 */
static void check_files(const ft_tool *tool, int argc, char **argv, const struct option *longs,
                        const char *letters)
{
    const char *file[MAX_OPTIONS] = { NULL };
    for (int id; (id = getopt_long(argc, argv, letters, longs, NULL)) != -1;) {
        const ft_option *o;
        int i = 0;
        while ((o = ft_tool_option_at(tool, i)) != NULL && o->id != id)
            i++;
        if (o == NULL || !ft_option_is_file(o))
            continue;
        if (optarg[0] == '\0')
            ft_tool_usage_error(tool, "--%s: the file name is empty", o->name);
        if (strcmp(o->argument, "FILE") != 0) /* "FILE...", or ft-convert's "PATH" */
            continue;
        if (file[i] != NULL)
            ft_tool_usage_error(tool, "--%s is given twice: \"%s\" and \"%s\"", o->name, file[i],
                                optarg);
        file[i] = optarg;
    }
    optind = 0; /* restarts getopt_long */
}

int ft_options_next(const ft_tool *tool, int argc, char **argv, const char **value)
{
    static char **initialized_argv; /* optind stays 1 between the letters of "-fq" */
    struct option longs[MAX_OPTIONS + 1] = { { 0 } };
    char letters[3 * MAX_OPTIONS + 2] = { 0 };
    to_getopt(tool, longs, letters);
    opterr = 0;
    if (initialized_argv != argv) {
        initialized_argv = argv;
        for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
            accept_underscores(argv[i]);
        check_files(tool, argc, argv, longs, letters);
    }
    int id = getopt_long(argc, argv, letters, longs, NULL);
    *value = optarg;
    switch (id) {
    case 'h':
        print_help(tool);
    case 'V':
        print_version(tool);
    case FT_OPTION_COMPLETION:
        print_completion(tool, optarg);
    case ':':
        ft_tool_usage_error(tool, "option %s needs an argument", argv[optind - 1]);
    case '?':
        if (optopt != 0 && !is_known(tool, optopt))
            ft_tool_usage_error(tool, "unknown option -%c", optopt);
        ft_tool_usage_error(tool, "option %s is not understood", argv[optind - 1]);
    default:
        return id;
    }
}

/* ---- Values ------------------------------------------------------------------------------- */

const char *ft_tool_option_name(const ft_tool *tool, int option)
{
    int i = 0;
    while (ft_tool_option_at(tool, i)->id != option)
        i++;
    return ft_tool_option_at(tool, i)->name;
}

int ft_tool_int_range(const ft_tool *tool, int option, const char *text, int low, int high)
{
    char *end;
    long number = strtol(text, &end, 10);
    if (end == text || *end != '\0' || number < low)
        ft_tool_usage_error(tool, "--%s: \"%s\" is not a %s number",
                            ft_tool_option_name(tool, option), text,
                            low > 0 ? "positive" : "whole");
    if (number > high)
        ft_tool_usage_error(tool, "--%s: %s is too large: %d is the most",
                            ft_tool_option_name(tool, option), text, high);
    return (int) number;
}

int ft_tool_int(const ft_tool *tool, int option, const char *text, int low)
{
    return ft_tool_int_range(tool, option, text, low, 1 << 24);
}

int ft_tool_threads(const ft_tool *tool, int option, const char *text)
{
    return ft_tool_int_range(tool, option, text, 1, FT_MAX_THREADS);
}

const char *ft_tool_device(const ft_tool *tool, int option, const char *text)
{
    ft_error err;
    if (ft_device_name_check(text, &err) != FT_OK)
        ft_tool_usage_error(tool, "--%s: %s", ft_tool_option_name(tool, option), err.text);
    return text;
}

double ft_tool_double(const ft_tool *tool, int option, const char *text, double low, double high)
{
    char *end;
    double number = strtod(text, &end);
    if (end == text || *end != '\0' || !(number >= low && number <= high))
        ft_tool_usage_error(tool, "--%s: \"%s\" is not a number from %g to %g",
                            ft_tool_option_name(tool, option), text, low, high);
    return number;
}

double ft_tool_positive(const ft_tool *tool, int option, const char *text, double high)
{
    char *end;
    double number = strtod(text, &end);
    if (end == text || *end != '\0' || !(number > 0.0 && number <= high))
        ft_tool_usage_error(tool, "--%s: \"%s\" is not a number above 0 and up to %g",
                            ft_tool_option_name(tool, option), text, high);
    return number;
}

size_t ft_tool_list(const ft_tool *tool, int option, const char *text, long high, size_t *item,
                    size_t capacity)
{
    const char *name = ft_tool_option_name(tool, option);
    for (size_t count = 0;; text++) {
        char *end;
        int length = (int) strcspn(text, ",");
        long number = strtol(text, &end, 10);
        if (length == 0 || end != text + length || number < 1 || number > high)
            ft_tool_usage_error(tool, "--%s: \"%.*s\" is not a number from 1 to %ld", name, length,
                                text, high);
        if (count == capacity)
            ft_tool_usage_error(tool, "--%s: more than %zu numbers", name, capacity);
        item[count++] = (size_t) number;
        text = end;
        if (*text == '\0')
            return count;
    }
}

size_t ft_tool_positive_list(const ft_tool *tool, int option, const char *text, double high,
                             double *item, size_t capacity)
{
    char number[64];
    for (size_t count = 0;; text++) {
        size_t length = strcspn(text, ",");
        snprintf(number, sizeof number, "%.*s", (int) length, text);
        if (length >= sizeof number)
            ft_tool_usage_error(tool, "--%s: \"%s...\" is too long for a number",
                                ft_tool_option_name(tool, option), number);
        if (count == capacity)
            ft_tool_usage_error(tool, "--%s: more than %zu numbers",
                                ft_tool_option_name(tool, option), capacity);
        item[count++] = ft_tool_positive(tool, option, number, high);
        text += length;
        if (*text == '\0')
            return count;
    }
}

int ft_tool_word(const ft_tool *tool, int option, const char *text, const char *const *words)
{
    char known[256];
    int used = 0, count = 0;
    for (; words[count] != NULL; count++)
        if (strcmp(words[count], text) == 0)
            return count;
    for (int i = 0; i < count; i++)
        used += snprintf(known + used, sizeof known - (size_t) used, "%s%s",
                         i == 0           ? ""
                         : i == count - 1 ? " nor "
                                          : ", ",
                         words[i]);
    ft_tool_usage_error(tool, "--%s: \"%s\" is neither %s", ft_tool_option_name(tool, option), text,
                        known);
}

ft_verify ft_tool_verify(const ft_tool *tool, int option, const char *text)
{
    static const char *const levels[] = { [FT_VERIFY_STRUCTURE] = "structure",
                                          [FT_VERIFY_CRC] = "crc",
                                          [FT_VERIFY_SHA256] = "sha256",
                                          NULL };
    return (ft_verify) ft_tool_word(tool, option, text, levels);
}

static ft_kv_dtype parse_kv_dtype(const ft_tool *tool, int option, const char *text)
{
    static const char *const dtypes[] = {
        [FT_KV_DTYPE_AUTO] = "auto", [FT_KV_DTYPE_F16] = "f16", [FT_KV_DTYPE_INT8] = "int8", NULL
    };
    return (ft_kv_dtype) ft_tool_word(tool, option, text, dtypes);
}

int32_t ft_tool_group(const ft_tool *tool, int option, const char *text)
{
    static const char *const sizes[] = { "32", "64", "128", "0", NULL };
    return atoi(sizes[ft_tool_word(tool, option, text, sizes)]);
}

bool ft_tool_model_option(const ft_tool *tool, ft_model_options *model, int option,
                          const char *text)
{
    switch (option) {
    case FT_OPTION_DEVICE:
        model->device = ft_tool_device(tool, option, text);
        return true;
    case FT_OPTION_VERIFY:
        model->verify = ft_tool_verify(tool, option, text);
        return true;
    case FT_OPTION_KV:
        model->kv = parse_kv_dtype(tool, option, text);
        return true;
    case FT_OPTION_TUNING:
        model->size = sizeof *model;
        model->tuning = text;
        return true;
    default:
        return false;
    }
}

/* ---- Checks of all options ---------------------------------------------------------------- */

void ft_tool_check_no_operands(const ft_tool *tool, int argc, char **argv)
{
    if (optind < argc)
        ft_tool_usage_error(tool, "unexpected argument \"%s\"", argv[optind]);
}

void ft_tool_check_verbosity(const ft_tool *tool, bool quiet, bool verbose)
{
    if (quiet && verbose)
        ft_tool_usage_error(tool, "-q and -v exclude each other");
}

/* ---- Ending ------------------------------------------------------------------------------- */

void ft_tool_usage_error(const ft_tool *tool, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fprintf(stderr, "%s: ", tool->name);
    vfprintf(stderr, format, args);
    fprintf(stderr, "; try %s --help\n", tool->name);
    va_end(args);
    exit(FT_EXIT_USAGE);
}

void ft_tool_warn(const ft_tool *tool, const char *text)
{
    if (text[0] != '\0')
        fprintf(stderr, "%s: warning: %s\n", tool->name, text);
}

int ft_tool_error(const ft_tool *tool, const char *text)
{
    fflush(stdout);
    fprintf(stderr, "%s: %s\n", tool->name, text);
    return FT_EXIT_FAILURE;
}

void ft_tool_print_escaped_bytes(const char *text, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        putchar((unsigned char) text[i] < 0x20 || text[i] == 0x7f ? '?' : text[i]);
}

void ft_tool_print_escaped(const char *text, int width)
{
    size_t bytes = strlen(text);
    ft_tool_print_escaped_bytes(text, bytes);
    width -= (int) bytes;
    for (; width > 0; width--)
        putchar(' ');
}

/* An earlier failed write has left no errno; but unwritten data is still buffered. */
int ft_tool_exit_status(const ft_tool *tool, int status)
{
    bool failed = ferror(stdout);
    if (fflush(stdout) != 0)
        fprintf(stderr, "%s: standard output: %s\n", tool->name, strerror(errno));
    else if (failed)
        fprintf(stderr, "%s: standard output: not all of it could be written\n", tool->name);
    else
        return status;
    return FT_EXIT_FAILURE;
}
