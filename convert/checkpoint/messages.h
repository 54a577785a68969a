/*
 * messages.h - what there is to tell the user: all problems of a checkpoint, not only the first.
 *
 * A checkpoint that cannot be converted is often wrong in several places, and each attempt costs
 * its owner time.  So checks note every problem and go on where they can.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CONVERT_CHECKPOINT_MESSAGES_H
#define FT_CONVERT_CHECKPOINT_MESSAGES_H

#include "runtime/ft.h"

enum { FT_MESSAGES_KEPT = 20 };

/* The caller's storage; all zero is empty. */
typedef struct ft_messages {
    ft_error message[FT_MESSAGES_KEPT]; /* the first ones */
    size_t count;                       /* of all */
} ft_messages;

/* Like ft_fail(): note a message and return its code. */
ft_status ft_message(ft_messages *messages, ft_status code, const char *format, ...)
    __attribute__((format(printf, 3, 4), cold));

/* Note an error that another function has described, and return its code. */
ft_status ft_message_error(ft_messages *messages, const ft_error *err);

/* FT_OK when there are none, else the code of the first one. */
FT_MUST_USE ft_status ft_messages_status(const ft_messages *messages);

#endif
