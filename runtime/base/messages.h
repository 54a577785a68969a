/*
 * messages.h - a bounded list of error texts: all problems of a checkpoint, not only the first.
 *
 * A checkpoint that cannot be converted often has several problems, and each attempt costs the user
 * time. So checks report every problem and continue where they can.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_BASE_MESSAGES_H
#define FT_RUNTIME_BASE_MESSAGES_H

#include "runtime/ft.h"

#pragma GCC visibility push(default) /* linked by the tools: FT_PRIVATE */

enum { FT_MAX_MESSAGES = 20 };

/* Caller-allocated; zero-initialized means empty. */
typedef struct ft_messages {
    ft_error message[FT_MAX_MESSAGES]; /* the first ones */
    size_t count;                      /* total, including those not kept */
} ft_messages;

/* Like ft_fail(): add a message and return its code. */
ft_status ft_messages_add(ft_messages *messages, ft_status code, const char *format, ...)
    __attribute__((format(printf, 3, 4), cold));

/* Add an error that another function has described, and return its code. */
ft_status ft_messages_add_error(ft_messages *messages, const ft_error *err);

/* FT_OK when the list is empty, else the code of the first message. */
FT_MUST_USE ft_status ft_messages_status(const ft_messages *messages);

#pragma GCC visibility pop

#endif
