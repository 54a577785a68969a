/*
 * temp_files.h - the list of temporary files of this process, for signal handlers.
 *
 * The library installs no signal handler: that is left to the program; the tools install one in
 * runtime/cli/signals.c. A handler takes no arguments, so this list is global to the process.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_BASE_TEMP_FILES_H
#define FT_RUNTIME_BASE_TEMP_FILES_H

#pragma GCC visibility push(default) /* linked by the tools: FT_PRIVATE */

/*
 * Register a file before it is created, from any thread: `name` in the folder of a descriptor that
 * stays open until the file is unregistered. Returns its slot, or -1 when the list is full: then
 * only the next writer of the same name removes the file after a signal.
 */
int ft_temp_file_register(int folder, const char *name);

/* Unregister a file that is finished or removed. Accepts -1. */
void ft_temp_file_unregister(int slot);

/* Delete all registered files. Async-signal-safe, for a process that is about to terminate. */
void ft_temp_files_delete(void);

#pragma GCC visibility pop

#endif
