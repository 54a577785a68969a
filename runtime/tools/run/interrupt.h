/*
 * interrupt.h - Ctrl-C stops an answer and not the program.
 *
 * SIGINT is blocked while the model works, and the loop asks for it.  Threads inherit this, so it
 * must be blocked before they start.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_TOOLS_RUN_INTERRUPT_H
#define FT_RUNTIME_TOOLS_RUN_INTERRUPT_H

#include <stdbool.h>

/* Keep SIGINT waiting, or let it end the program again, also one that waits. */
void ft_interrupt_hold(void);
void ft_interrupt_allow(void);

/* Whether SIGINT waits; it does no longer. */
bool ft_interrupt_take(void);

#endif
