/*
 * temp_files.h - the files that this process has begun and not finished, for a handler of signals.
 *
 * The library installs no handler: that is the program's to decide, and the tools do it in
 * runtime/cli/signals.c.  A handler can be told nothing, so this list belongs to the process.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_BASE_TEMP_FILES_H
#define FT_RUNTIME_BASE_TEMP_FILES_H

/*
 * List a file before it is made, from any thread: `name` in the folder of a descriptor that stays
 * open until the file is taken off the list.  Returns its place, -1 where the list is full: then
 * only the next writer of the same name removes what a signal leaves.
 */
int ft_unfinished_add(int folder, const char *name);

/* Take a file off the list: it is finished, or removed.  Takes -1. */
void ft_unfinished_drop(int place);

/* Remove all listed files.  Safe in a handler, of a process that goes on to its end. */
void ft_unfinished_remove(void);

#endif
