/*
 * completion.h - scripts that teach a shell the options of a tool, made from the tool's table.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_CLI_COMPLETION_H
#define FT_RUNTIME_CLI_COMPLETION_H

#include "runtime/cli/option_table.h"

/* The shells, as in the argument of --completion. */
typedef enum ft_shell { FT_SHELL_BASH, FT_SHELL_FISH, FT_SHELL_ZSH } ft_shell;

/*
 * Print the completion script of a tool to standard output.  The shell completes file names for
 * the arguments FILE and PATH, and the lowercase words of an argument such as "auto|f16|int8"; it
 * completes no other argument.  Options without help are hidden and left out.
 */
void ft_tool_print_completion(const ft_tool *tool, ft_shell shell);

#endif
