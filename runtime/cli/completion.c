/*
 * completion.c - one script per shell.  Descriptions are the first clause of an option's help.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/cli/completion.h"

#include <stdio.h>
#include <string.h>

/* ---- What a table says -------------------------------------------------------------------- */

/* The option at `*index` or behind it that is not hidden, NULL for none; *index is then behind it.
 */
static const ft_option *next_shown(const ft_tool *tool, int *index)
{
    const ft_option *o;
    while ((o = ft_tool_option_at(tool, (*index)++)) != NULL && o->help == NULL)
        continue;
    return o;
}

static bool has_letter(const ft_option *o)
{
    return o->id < FT_LONG_ONLY;
}

static bool is_optional(const ft_option *o)
{
    return o->argument != NULL && o->argument[0] == '[';
}

/*
 * The words of "cpu|cuda[:N]" or "[structure|crc]": "cpu cuda", "structure crc".  A word with a
 * capital is a placeholder.  Returns how many words were written, each behind `before`.
 */
static int print_words(const char *argument, const char *before)
{
    int count = 0;
    for (const char *word = argument; *word != '\0';) {
        word += strspn(word, "|[");
        size_t all = strcspn(word, "|"), length = strcspn(word, "|[]");
        bool placeholder = false;
        for (size_t i = 0; i < length; i++)
            placeholder |= (word[i] >= 'A' && word[i] <= 'Z') || word[i] == '=';
        if (length > 0 && !placeholder && strchr(argument, '|') != NULL)
            printf("%s%.*s", count++ > 0 ? " " : before, (int) length, word);
        word += all;
    }
    return count;
}

/* The help up to the first semicolon, on one line, behind `escape` where a character is special. */
static void print_description(const ft_option *o, const char *special, const char *escape)
{
    for (const char *c = o->help; *c != '\0' && *c != ';'; c++) {
        if (*c == '\'')
            fputs("'\\''", stdout);
        else if (strchr(special, *c) != NULL)
            printf("%s%c", escape, *c);
        else
            putchar(*c == '\n' ? ' ' : *c);
    }
}

/* "ft-run" as the name of a function: "_ft_run". */
static void print_function(const ft_tool *tool)
{
    putchar('_');
    for (const char *c = tool->name; *c != '\0'; c++)
        putchar(*c == '-' ? '_' : *c);
}

/* ---- Bash --------------------------------------------------------------------------------- */

/* The branch of a case for the value of one option. */
static void print_bash_value(const ft_option *o)
{
    fputs("    ", stdout);
    if (has_letter(o))
        printf("-%c | ", o->id);
    printf("--%s) ", o->name);
    if (ft_option_is_file(o))
        puts("files=yes ;;");
    else if (print_words(o->argument, "words='") > 0)
        puts("' ;;");
    else
        puts("return ;;");
}

/* Bash parts words at "=", so that "--kv=int8" is three of them. */
static void print_bash(const ft_tool *tool)
{
    const ft_option *o;
    print_function(tool);
    puts(" ()\n{\n"
         "    local word=${COMP_WORDS[COMP_CWORD]} option=${COMP_WORDS[COMP_CWORD - 1]} words= "
         "files=\n"
         "    [[ $word != = ]] || word=\n"
         "    [[ $option != = ]] || option=${COMP_WORDS[COMP_CWORD - 2]}\n"
         "    COMPREPLY=()\n"
         "    case $option in");
    for (int i = 0; (o = next_shown(tool, &i)) != NULL;)
        if (o->argument != NULL && !is_optional(o))
            print_bash_value(o);
    fputs("    *)\n        case $word in\n        -*) words='", stdout);
    for (int i = 0; (o = next_shown(tool, &i)) != NULL;) {
        if (has_letter(o))
            printf("-%c ", o->id);
        printf("--%s ", o->name);
    }
    puts("' ;;\n        *) files=yes ;;\n        esac ;;\n    esac\n"
         "    if [[ $files = yes ]]; then\n"
         "        compopt -o filenames 2>/dev/null\n"
         "        local IFS=$'\\n'\n"
         "        COMPREPLY=($(compgen -f -- \"$word\"))\n"
         "    else\n"
         "        COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
         "    fi\n}");
    fputs("complete -F ", stdout);
    print_function(tool);
    printf(" %s\n", tool->name);
}

/* ---- Fish --------------------------------------------------------------------------------- */

static void print_fish(const ft_tool *tool)
{
    const ft_option *o;
    for (int i = 0; (o = next_shown(tool, &i)) != NULL;) {
        printf("complete -c %s", tool->name);
        if (has_letter(o))
            printf(" -s %c", o->id);
        printf(" -l %s", o->name);
        if (ft_option_is_file(o))
            fputs(" -r -F", stdout);
        else if (o->argument != NULL) {
            fputs(is_optional(o) ? " -f" : " -x", stdout);
            if (print_words(o->argument, " -a '") > 0)
                putchar('\'');
        }
        fputs(" -d '", stdout);
        print_description(o, "\\", "\\");
        puts("'");
    }
}

/* ---- Zsh ---------------------------------------------------------------------------------- */

/* One specification of _arguments for "-i" or "--input". */
static void print_zsh_option(const ft_option *o, bool letter)
{
    /* What may be given once only excludes its other name; the rest may be repeated. */
    bool once = o->argument == NULL || strcmp(o->argument, "FILE") == 0;
    fputs(" \\\n        '", stdout);
    if (once && has_letter(o))
        printf("(-%c --%s)", o->id, o->name);
    if (!once)
        putchar('*');
    if (letter)
        printf("-%c%s", o->id, o->argument != NULL ? "+" : "");
    else
        printf("--%s%s", o->name, o->argument == NULL ? "" : is_optional(o) ? "=-" : "=");
    putchar('[');
    print_description(o, "\\[]", "\\");
    putchar(']');
    if (o->argument != NULL) {
        fputs(is_optional(o) ? "::value:" : ":value:", stdout);
        if (ft_option_is_file(o))
            fputs("_files", stdout);
        else if (print_words(o->argument, "(") > 0)
            putchar(')');
        else
            putchar(' ');
    }
    putchar('\'');
}

static void print_zsh(const ft_tool *tool)
{
    const ft_option *o;
    print_function(tool);
    fputs(" () {\n    _arguments -s -S", stdout);
    for (int i = 0; (o = next_shown(tool, &i)) != NULL;) {
        if (has_letter(o))
            print_zsh_option(o, true);
        print_zsh_option(o, false);
    }
    puts(" \\\n        '*:file:_files'\n}");
    fputs("compdef ", stdout);
    print_function(tool);
    printf(" %s\n", tool->name);
}

void ft_tool_print_completion(const ft_tool *tool, ft_shell shell)
{
    switch (shell) {
    case FT_SHELL_BASH:
        print_bash(tool);
        return;
    case FT_SHELL_FISH:
        print_fish(tool);
        return;
    case FT_SHELL_ZSH:
        print_zsh(tool);
        return;
    }
}
