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

static const int ending[] = { SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGQUIT, SIGXCPU, SIGXFSZ };

/* With SA_RESETHAND and SA_NODEFER, the signal has its default action here. */
static void tidy(int number)
{
    ft_unfinished_remove();
    raise(number);
    _exit(128 + number); /* PID 1 of a container has no default actions */
}

void ft_tool_tidy_on_signals(void)
{
    struct sigaction found,
        wanted = { .sa_handler = tidy, .sa_flags = (int) SA_RESETHAND | SA_NODEFER };
    sigemptyset(&wanted.sa_mask);
    for (size_t i = 0; i < FT_COUNT(ending); i++)
        if (sigaction(ending[i], NULL, &found) == 0 && found.sa_handler == SIG_DFL)
            sigaction(ending[i], &wanted, NULL);
}
