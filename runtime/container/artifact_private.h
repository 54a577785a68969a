/*
 * artifact_private.h - shared by the files that implement artifact.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_CONTAINER_ARTIFACT_PRIVATE_H
#define FT_RUNTIME_CONTAINER_ARTIFACT_PRIVATE_H

#include "runtime/container/amax.h"
#include "runtime/container/artifact.h"
#include "runtime/container/manifest.h"
#include "runtime/container/zip_directory.h"

#include <string.h>
#include <zip.h>

struct ft_artifact {
    char *label; /* the path, for error messages */
    const unsigned char *map;
    size_t bytes;
    bool mapped; /* mmap()ed; else the caller's memory */
    ft_zip_directory dir;
    ft_manifest manifest;
    const uint8_t **digest; /* per entry: digest in the manifest; NULL: the manifest itself */
    const ft_artifact_tensor **by_name;
    ft_amax_table *amax;
};

/* Whether the activations are statically quantized, so that the artifact has an amax.tsv. */
static inline bool ft_artifact_has_static_ranges(const ft_artifact_header *header)
{
    const char *activations = json_string_value(json_object_get(header->recipe, "activations"));
    return header->state == FT_ARTIFACT_INT8 &&
           (activations == NULL || strcmp(activations, FT_INT8_PER_TOKEN) != 0);
}

/* Open an artifact from a file descriptor, which the caller keeps. */
ft_status ft_artifact_open_fd(ft_artifact **out, const char *label, int fd, ft_verify verify,
                              ft_error *err);

/* Sort the tensors of the manifest by name, for ft_artifact_find(). */
ft_status ft_artifact_index_tensors(ft_artifact *artifact, ft_error *err);

/* Set the scales and zero points of every quantized tensor and check all of them. */
ft_status ft_artifact_read_scales(ft_artifact *artifact, zip_t *zip, ft_error *err);

/*
 * Open the same bytes with libzip, which checks CRC-32s; close with zip_discard(). A zip_t must not
 * be shared between threads, but an artifact may be, so each user opens its own.
 */
ft_status ft_artifact_open_zip(const ft_artifact *artifact, zip_t **out, ft_error *err);
ft_status ft_artifact_check_crc(const ft_artifact *artifact, zip_t *zip, const ft_zip_entry *entry,
                                ft_error *err);

#endif
