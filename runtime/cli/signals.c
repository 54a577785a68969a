/*
 * signals.c - delete temporary files, then re-raise the signal, so that the parent process sees it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/cli/signals.h"

#include "runtime/mem.h"
#include "runtime/base/temp_files.h"

#include <signal.h>
#include <unistd.h>

static const int terminating_signals[] = { SIGINT,  SIGTERM, SIGHUP, SIGPIPE,
                                           SIGQUIT, SIGXCPU, SIGXFSZ };

/* With SA_RESETHAND and SA_NODEFER, the signal has its default action here. */
static void cleanup_and_reraise(int number)
{
    ft_temp_files_delete();
    raise(number);
    _exit(128 + number); /* PID 1 of a container has no default actions */
}

void ft_tool_cleanup_on_signals(void)
{
    struct sigaction old_action, new_action = { .sa_handler = cleanup_and_reraise,
                                                .sa_flags = (int) SA_RESETHAND | SA_NODEFER };
    sigemptyset(&new_action.sa_mask);
    for (size_t i = 0; i < FT_COUNT(terminating_signals); i++)
        if (sigaction(terminating_signals[i], NULL, &old_action) == 0 &&
            old_action.sa_handler == SIG_DFL)
            sigaction(terminating_signals[i], &new_action, NULL);
}
