/*
 * safetensors_header.h - from the bytes of a safetensors file to a list of tensors.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_CONTAINER_SAFETENSORS_HEADER_H
#define FT_RUNTIME_CONTAINER_SAFETENSORS_HEADER_H

#include "runtime/container/safetensors.h"

typedef struct ft_safetensors_header {
    ft_named_tensor
        *tensor; /* in the header's order, each within `data` and as long as its shape */
    size_t count, capacity;
    char *names;               /* what tensor[].name points into */
    const unsigned char *data; /* what follows the header, borrowed from the caller */
    size_t bytes;
} ft_safetensors_header;

/*
 * Read the header of the file that `bytes` holds.  Every entry is checked alone; that names are
 * unique and that the tensors tile the data is for the caller to check.
 * On failure too, *header is to be given to ft_safetensors_header_fini.
 */
ft_status ft_safetensors_header_read(ft_safetensors_header *header, const char *file,
                                     const void *bytes, size_t size, ft_error *err);
void ft_safetensors_header_fini(ft_safetensors_header *header);

#endif
