/*
 * interrupt.c - hold SIGINT back and ask for it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/tools/run/interrupt.h"

#include <signal.h>
#include <stddef.h>
#include <time.h>

static sigset_t interrupts(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    return set;
}

void ft_interrupt_hold(void)
{
    const sigset_t set = interrupts();
    pthread_sigmask(SIG_BLOCK, &set, NULL);
}

void ft_interrupt_allow(void)
{
    const sigset_t set = interrupts();
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

bool ft_interrupt_take(void)
{
    const sigset_t set = interrupts();
    const struct timespec now = { 0 };
    return sigtimedwait(&set, NULL, &now) == SIGINT;
}
