/*
 * error.c - status names, and the only place that formats error messages.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/error.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

const char *ft_version(void)
{
    return PACKAGE_VERSION;
}

const char *ft_status_name(ft_status status)
{
    switch (status) {
    case FT_OK:
        return "FT_OK";
    case FT_ENOMEM:
        return "FT_ENOMEM";
    case FT_EIO:
        return "FT_EIO";
    case FT_EFORMAT:
        return "FT_EFORMAT";
    case FT_ESHAPE:
        return "FT_ESHAPE";
    case FT_EUNSUPPORTED:
        return "FT_EUNSUPPORTED";
    case FT_EARG:
        return "FT_EARG";
    case FT_EDEVICE:
        return "FT_EDEVICE";
    case FT_ENONFINITE:
        return "FT_ENONFINITE";
    case FT_ECANCELLED:
        return "FT_ECANCELLED";
    case FT_ETIMEOUT:
        return "FT_ETIMEOUT";
    case FT_ELIMIT:
        return "FT_ELIMIT";
    }
    return "unknown";
}

/* Messages quote names from files: replace control characters, which may be escape sequences. */
static void sanitize(char *text)
{
    for (unsigned char *p = (unsigned char *) text; *p != '\0'; p++)
        if (*p < 0x20 || *p == 0x7f)
            *p = '?';
}

ft_status ft_fail(ft_error *err, ft_status code, const char *format, ...)
{
    if (err == NULL)
        return code;
    va_list args;
    va_start(args, format);
    err->code = code;
    vsnprintf(err->text, sizeof err->text, format, args);
    va_end(args);
    sanitize(err->text);
    return code;
}

ft_status ft_fail_errno(ft_error *err, const char *format, ...)
{
    int number = errno;
    if (err == NULL)
        return FT_EIO;
    va_list args;
    va_start(args, format);
    err->code = FT_EIO;
    vsnprintf(err->text, sizeof err->text, format, args);
    va_end(args);

    size_t length = strlen(err->text);
    char buffer[128];
#if defined __GLIBC__
    const char *message = strerror_r(number, buffer, sizeof buffer);
#else
    const char *message = strerror_r(number, buffer, sizeof buffer) == 0 ? buffer : "unknown error";
#endif
    snprintf(err->text + length, sizeof err->text - length, ": %s", message);
    sanitize(err->text);
    return FT_EIO;
}
