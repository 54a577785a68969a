/*
 * safetensors_header.h - parse the header of a safetensors file into a list of tensors.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_CONTAINER_SAFETENSORS_HEADER_H
#define FT_RUNTIME_CONTAINER_SAFETENSORS_HEADER_H

#include "runtime/container/safetensors.h"

typedef struct ft_safetensors_header {
    ft_named_tensor
        *tensor; /* in header order; each lies within `data` and is as long as its shape */
    size_t count, capacity;
    char *names;               /* storage of tensor[].name */
    const unsigned char *data; /* the data after the header, borrowed from the caller */
    size_t bytes;
} ft_safetensors_header;

/*
 * Parse the header of the file in `bytes`. Each entry is validated on its own; the caller checks
 * that names are unique and that the tensors tile the data. On failure, too, the caller calls
 * ft_safetensors_header_fini on *header.
 */
ft_status ft_safetensors_header_read(ft_safetensors_header *header, const char *file,
                                     const void *bytes, size_t size, ft_error *err);
void ft_safetensors_header_fini(ft_safetensors_header *header);

#endif
