/*
 * read_options.c - option structures of older and newer callers.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/base/read_options.h"

#include "runtime/error.h"

#include <string.h>

_Static_assert(offsetof(ft_model_options, size) == 0 && offsetof(ft_session_options, size) == 0 &&
                   offsetof(ft_generate_options, size) == 0 &&
                   offsetof(ft_beam_search_options, size) == 0 &&
                   offsetof(ft_engine_options, size) == 0 && offsetof(ft_engine_request, size) == 0,
               "options begin with their size");

ft_status ft_read_options(void *out, size_t known, size_t first, const char *name,
                          const void *given, ft_error *err)
{
    const unsigned char *bytes = given;
    size_t size = 0;
    memset(out, 0, known);
    if (given == NULL)
        return FT_OK;
    memcpy(&size, given, sizeof size);
    if (size == 0)
        size = first;
    if (size < sizeof size || size > FT_OPTIONS_SIZE_MAX)
        return ft_fail(err, FT_EARG, "%s: size is %zu, expected 0 or sizeof(%s), here %zu", name,
                       size, name, known);
    for (size_t i = known; i < size; i++)
        if (bytes[i] != 0)
            return ft_fail(
                err, FT_EUNSUPPORTED,
                "%s: size is %zu and byte %zu is not 0: an option that version %s of the "
                "library, with %zu bytes, does not have; install a later version",
                name, size, i, ft_version(), known);
    memcpy(out, given, size < known ? size : known);
    memcpy(out, &known, sizeof known);
    return FT_OK;
}
