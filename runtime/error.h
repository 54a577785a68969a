/*
 * error.h - error handling: the function that detects an error formats the message, callers return
 * it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_ERROR_H
#define FT_RUNTIME_ERROR_H

#include "runtime/ft.h"

#pragma GCC visibility push(default) /* linked by the tools: FT_PRIVATE */

/*
 * Fill *err (which may be NULL) and return `code`, so that a failure is one statement:
 *     return ft_fail(err, FT_ESHAPE, "%s: %s: shape %s, expected %s", file, name, found, expected);
 * Control characters in the message, which may come from an untrusted file, are replaced by '?'.
 */
ft_status ft_fail(ft_error *err, ft_status code, const char *format, ...)
    __attribute__((format(printf, 3, 4), cold));

/* The same with FT_EIO, and with ": " and strerror(errno) appended. */
ft_status ft_fail_errno(ft_error *err, const char *format, ...)
    __attribute__((format(printf, 2, 3), cold));

/* Return the status of a failed call; only where no cleanup is needed. */
#define FT_TRY(call)                                                                               \
    do {                                                                                           \
        ft_status ft_try_status = (call);                                                          \
        if (ft_try_status != FT_OK)                                                                \
            return ft_try_status;                                                                  \
    } while (0)

/* Return FT_EARG if a required pointer argument is NULL: "ft_session_set: name is NULL". */
#define FT_REQUIRE(pointer, err)                                                                   \
    do {                                                                                           \
        if ((pointer) == NULL)                                                                     \
            return ft_fail(err, FT_EARG, "%s: " #pointer " is NULL", __func__);                    \
    } while (0)

/* The same for an array of `count` elements, which may be NULL if count is 0. */
#define FT_REQUIRE_ARRAY(array, count, err)                                                        \
    do {                                                                                           \
        if ((array) == NULL && (count) > 0)                                                        \
            return ft_fail(err, FT_EARG, "%s: " #array " is NULL, but " #count " is %zu",          \
                           __func__, (size_t) (count));                                            \
    } while (0)

#pragma GCC visibility pop

#endif
