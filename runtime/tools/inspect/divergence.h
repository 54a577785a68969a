/*
 * divergence.h - where two artifacts diverge on samples, as a page for browsers.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_TOOLS_INSPECT_DIVERGENCE_H
#define FT_RUNTIME_TOOLS_INSPECT_DIVERGENCE_H

#include "runtime/tools/inspect/suspects.h"
#include "runtime/tools/inspect/value_errors.h"

/* Below this SQNR, in dB, a value counts as diverged: its noise is a tenth of its magnitude. */
enum { FT_DIVERGED = 20 };

typedef struct ft_divergence {
    const char *path[2];
    size_t samples;
    ft_value_errors values;
    bool has_suspects; /* exactly one of the artifacts is float */
    ft_suspects suspects;
} ft_divergence;

/* Write the page.  The caller checks the stream for errors.  FT_ENOMEM. */
FT_MUST_USE ft_status ft_divergence_write_html(const ft_divergence *divergence, FILE *file,
                                               ft_error *err);

#endif
