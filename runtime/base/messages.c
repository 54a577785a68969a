/*
 * messages.c - a bounded list of error texts.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/base/messages.h"

#include "runtime/error.h"

#include <stdarg.h>

ft_status ft_messages_add(ft_messages *messages, ft_status code, const char *format, ...)
{
    size_t index = messages->count++;
    if (index >= FT_MAX_MESSAGES)
        return code;
    ft_error text;
    va_list args;
    va_start(args, format);
    vsnprintf(text.text, sizeof text.text, format, args);
    va_end(args);
    return ft_fail(&messages->message[index], code, "%s", text.text);
}

ft_status ft_messages_add_error(ft_messages *messages, const ft_error *err)
{
    return ft_messages_add(messages, err->code, "%s", err->text);
}

ft_status ft_messages_status(const ft_messages *messages)
{
    return messages->count == 0 ? FT_OK : messages->message[0].code;
}
