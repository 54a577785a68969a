/*
 * manifest.h - manifest.json: the description of the other entries of an artifact.
 *
 * Writing and reading use the same structure, so manifest.c has both ends of the format.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_CONTAINER_MANIFEST_H
#define FT_RUNTIME_CONTAINER_MANIFEST_H

#include "runtime/container/artifact.h"
#include "runtime/container/identifier.h"

typedef struct ft_manifest {
    ft_artifact_header header;
    ft_artifact_tensor *tensor; /* without data and scale */
    size_t n_tensors;
    ft_artifact_entry *file; /* without data */
    size_t n_files;
    json_t *json; /* of a parsed manifest; owns all strings */
} ft_manifest;

/* Format manifest.json; deterministic. The caller frees *text. */
ft_status ft_manifest_format(const ft_manifest *manifest, char **text, size_t *bytes,
                             ft_error *err);

/*
 * Parse the manifest and check everything that needs no other entry: keys, types, names, versions,
 * sizes against shapes. On failure *out is empty.
 */
ft_status ft_manifest_parse(ft_manifest *out, const char *label, const void *text, size_t bytes,
                            ft_error *err);
void ft_manifest_fini(ft_manifest *manifest); /* accepts an empty one */

/* Whether a state allows this tensor: float has no quantized tensors, groupwise has no I8. */
bool ft_artifact_state_allows(ft_artifact_state state, const ft_artifact_tensor *tensor);

#endif
