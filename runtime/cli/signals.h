/*
 * signals.h - delete temporary files when a signal terminates a tool.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_CLI_SIGNALS_H
#define FT_RUNTIME_CLI_SIGNALS_H

/*
 * Install handlers: SIGINT, SIGTERM, SIGHUP, SIGPIPE and other terminating signals delete the
 * temporary files before they terminate the process with the same signal. A second signal
 * terminates it immediately. Signals that are ignored at the start, as under nohup, stay ignored.
 */
void ft_tool_cleanup_on_signals(void);

#endif
