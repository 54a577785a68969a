/*
 * error.h - the first function that knows the facts writes the text; callers pass it on.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_ERROR_H
#define FT_RUNTIME_ERROR_H

#include "runtime/ft.h"

/*
 * Fill *err (which may be NULL) and return `code`, so that a failure is one statement:
 *     return ft_fail(err, FT_ESHAPE, "%s: %s: shape %s, expected %s", file, name, found, expected);
 * Control characters in the text, which may come from a hostile file, are replaced by '?'.
 */
ft_status ft_fail(ft_error *err, ft_status code, const char *format, ...)
    __attribute__((format(printf, 3, 4), cold));

/* The same, with ": " and the system's message for errno at the end. */
ft_status ft_fail_errno(ft_error *err, const char *format, ...)
    __attribute__((format(printf, 2, 3), cold));

/* Return on failure, where nothing must be undone. */
#define FT_TRY(call)                                                                               \
    do {                                                                                           \
        ft_status ft_try_status = (call);                                                          \
        if (ft_try_status != FT_OK)                                                                \
            return ft_try_status;                                                                  \
    } while (0)

/* FT_EARG where a pointer that a public call needs is NULL: "ft_session_set: name is NULL". */
#define FT_NEED(pointer, err)                                                                      \
    do {                                                                                           \
        if ((pointer) == NULL)                                                                     \
            return ft_fail(err, FT_EARG, "%s: " #pointer " is NULL", __func__);                    \
    } while (0)

/* The same for an array of so many elements, which may be NULL where there are none. */
#define FT_NEED_ARRAY(array, count, err)                                                           \
    do {                                                                                           \
        if ((array) == NULL && (count) > 0)                                                        \
            return ft_fail(err, FT_EARG, "%s: " #array " is NULL, but " #count " is %zu",          \
                           __func__, (size_t) (count));                                            \
    } while (0)

#endif
