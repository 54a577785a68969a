/*
 * artifact_private.h - what the files that implement artifact.h share.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_CONTAINER_ARTIFACT_PRIVATE_H
#define FT_RUNTIME_CONTAINER_ARTIFACT_PRIVATE_H

#include "runtime/container/artifact.h"
#include "runtime/container/manifest.h"
#include "runtime/container/zip_directory.h"

#include <string.h>
#include <zip.h>

struct ft_artifact {
    char *label; /* the path, for error texts */
    const unsigned char *map;
    size_t bytes;
    bool mapped; /* else the caller's memory */
    ft_zipdir dir;
    ft_manifest manifest;
    const uint8_t **digest; /* per entry of dir: what the manifest expects; NULL: its own */
    const ft_artifact_tensor **by_name;
    ft_amax *amax;
};

/* Whether a state and recipe have ranges that were calibrated, amax.tsv. */
static inline bool ft_artifact_has_ranges(const ft_artifact_head *head)
{
    const char *how = json_string_value(json_object_get(head->recipe, "activations"));
    return head->state == FT_STATE_INT8 && (how == NULL || strcmp(how, "int8 per token") != 0);
}

/* Open the file behind a descriptor, which stays the caller's. */
ft_status ft_artifact_open_fd(ft_artifact **out, const char *label, int fd, ft_verify verify,
                              ft_error *err);

/* Give every tensor of codes its scales and zeros, and check all of them. */
ft_status ft_artifact_read_scales(ft_artifact *artifact, zip_t *zip, ft_error *err);

/*
 * libzip's view of the same bytes, to have it check CRC-32s; zip_discard() it.  A zip_t must not
 * be shared between threads, an artifact may be, so each user opens its own.
 */
ft_status ft_artifact_zip(const ft_artifact *artifact, zip_t **out, ft_error *err);
ft_status ft_artifact_check_crc(const ft_artifact *artifact, zip_t *zip, const ft_zip_entry *entry,
                                ft_error *err);

#endif
