/*
 * signals.h - what a tool leaves behind when a signal ends it: nothing.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_CLI_SIGNALS_H
#define FT_RUNTIME_CLI_SIGNALS_H

/*
 * From now on SIGINT, SIGTERM, SIGHUP, SIGPIPE and other signals that ask a program to end remove
 * its unfinished files before they end it, as its parent sees.  A second one ends it at once.  What
 * was ignored at the start, as under nohup, stays ignored.
 */
void ft_tool_tidy_on_signals(void);

#endif
