/*
 * read_options.h - option structures of public calls, whichever version of ft.h a caller was built
 * with.
 *
 * Such a structure begins with `size_t size`.  New options go behind the old ones, at or beyond the
 * end of the old structure (not into its padding), and zero is their default; so a structure of
 * another version differs in its length alone.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_BASE_READ_OPTIONS_H
#define FT_RUNTIME_BASE_READ_OPTIONS_H

#include "runtime/ft.h"

enum { FT_OPTIONS_SIZE_MAX = 4096 }; /* bytes; what claims more has no size at all */

/*
 * Copy *given, a structure called `name`, to *out of `known` bytes, and set its size to `known`.
 *   given NULL: zeros.
 *   size 0: the caller does not tell, so only the first `first` bytes, those of the first version.
 *   a smaller size: zeros for what is missing.
 *   a larger size: what this version does not know must be zero, or FT_EUNSUPPORTED.
 * FT_EARG: a size below that of the field itself, or above FT_OPTIONS_SIZE_MAX.
 */
FT_MUST_USE ft_status ft_read_options(void *out, size_t known, size_t first, const char *name,
                                      const void *given, ft_error *err);

/* Read `given` to *out, whose first version ended with the field `last`. */
#define FT_READ_OPTIONS(out, type, last, given, err)                                               \
    ft_read_options(out, sizeof(type), offsetof(type, last) + sizeof((out)->last), #type, given,   \
                    err)

#endif
