/*
 * inspect.h - the views of ft-inspect.
 *
 * A view prints to standard output, as text or JSON, and never changes an artifact.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_TOOLS_INSPECT_INSPECT_H
#define FT_RUNTIME_TOOLS_INSPECT_INSPECT_H

#include "runtime/container/artifact.h"
#include "runtime/model/explain_gemm.h"

enum { FT_INSPECT_RUNS = 16 };

typedef struct ft_inspection {
    const char *path[2];
    ft_artifact *artifact[2]; /* the second one only for --diff */
    bool json;
    ft_verify level;    /* of --verify */
    const char *samples_path; /* of --diff: compare values on these samples; NULL: contents */
    const char *page_path;    /* of -d: the comparison as a page for browsers; NULL: none */
    bool force;               /* replace an existing page */
    size_t samples;           /* at most that many of them */
    const char *layer;  /* of --amax-list */
    const char
        *device; /* of --plan and --selftest; `tokens` are its batch sizes, none: the defaults */
    size_t tokens[FT_INSPECT_RUNS], ntokens;
    bool different; /* the result of --diff or --selftest, which sets the exit status */
} ft_inspection;

typedef ft_status (*ft_inspect_fn)(ft_inspection *inspection, ft_error *err);

ft_status ft_inspect_diff(ft_inspection *inspection, ft_error *err);
ft_status ft_inspect_selftest(ft_inspection *inspection, ft_error *err);
ft_status ft_inspect_divergence(ft_inspection *inspection, ft_error *err);
ft_status ft_inspect_plan(ft_inspection *inspection, ft_error *err);
ft_status ft_inspect_amax(ft_inspection *inspection, ft_error *err);
/* Part of the list of contents: where the artifact comes from; nothing if it does not say. */
void ft_inspect_provenance(const ft_artifact *artifact);
ft_status ft_inspect_amax_list(ft_inspection *inspection, ft_error *err);

#endif
