/*
 * safetensors.h - read and write safetensors files.
 *
 * A file is 8 bytes of length (little-endian), that much JSON, and the data of all tensors:
 *
 *     {"__metadata__": {"format": "pt"},
 *      "classifier.bias": {"dtype": "F32", "shape": [10], "data_offsets": [0, 40]}, ...}
 *
 * The reader trusts nothing: every number is checked before it is used, and the tensors must tile
 * the data without overlaps, gaps or trailing bytes. Accepted files need no further checks.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_CONTAINER_SAFETENSORS_H
#define FT_RUNTIME_CONTAINER_SAFETENSORS_H

#include "runtime/base/atomic_file.h"

#pragma GCC visibility push(default) /* linked by the tools: FT_PRIVATE */

/* The longest header that is read or written: 100 MB, like other readers of the format. */
enum { FT_SAFETENSORS_MAX_HEADER = 100 * 1000 * 1000 };

typedef struct ft_named_tensor {
    const char *name; /* not empty, UTF-8 */
    ft_tensor tensor;
} ft_named_tensor;

typedef struct ft_safetensors ft_safetensors;

/*
 * Map a file read-only and validate its whole header; no tensor data is read. On failure *out is
 * NULL.
 *
 * tensor.data points into the mapping until ft_safetensors_close. It is read-only and may be
 * unaligned for its dtype, so elements are fetched with memcpy or as bytes. Layouts are FT_ROW,
 * elements little-endian, and ft_tensor_bytes(&tensor) is exact and never overflows, 0 for an empty
 * tensor. The file must not change while it is open.
 *
 * FT_EIO: cannot be opened, or is not a regular file. FT_EFORMAT: not a safetensors file.
 * FT_ELIMIT: header above FT_SAFETENSORS_MAX_HEADER, or more than FT_MAX_DIMS dimensions.
 * FT_EUNSUPPORTED: a valid dtype that ft_dtype does not have (F8_E4M3, U16, ...).
 */
FT_MUST_USE ft_status ft_safetensors_open(ft_safetensors **out, const char *path, ft_error *err);

/* The same from memory, which is borrowed until ft_safetensors_close; `name` is for messages. */
FT_MUST_USE ft_status ft_safetensors_parse(ft_safetensors **out, const char *name,
                                           const void *bytes, size_t size, ft_error *err);

/* Accepts NULL. */
void ft_safetensors_close(ft_safetensors *st);

/* The path or name that it was opened with. */
const char *ft_safetensors_path(const ft_safetensors *st);

/* Tensors in the order of their data, so that reading them in order reads the file sequentially. */
size_t ft_safetensors_count(const ft_safetensors *st);
const ft_named_tensor *ft_safetensors_at(const ft_safetensors *st, size_t index);

/* Look up a tensor by name by binary search; NULL when there is none. */
const ft_tensor *ft_safetensors_find(const ft_safetensors *st, const char *name);

/*
 * Release the pages of `bytes` at `data`, so that the resident size stays small while streaming a
 * file larger than RAM. The pages are read again when accessed. Ranges outside of this file's
 * mapping are ignored.
 */
void ft_safetensors_release(const ft_safetensors *st, const void *data, size_t bytes);

/*
 * Write a file and commit it; a partial file never appears under the name (see atomic_file.h).
 *
 * Tensors are FT_ROW, with unique names. They are ordered by element size, largest first, then as
 * given, after a header padded to a multiple of 8 bytes: every tensor is aligned to its elements.
 *
 * FT_EIO: the system reported an error. FT_EARG: a tensor that the format cannot represent.
 * FT_ELIMIT: header above FT_SAFETENSORS_MAX_HEADER.
 */
FT_MUST_USE ft_status ft_safetensors_write_to(ft_atomic_file *output,
                                              const ft_named_tensor *tensors, size_t count,
                                              ft_error *err);

/*
 * The same for tensors whose data is produced while writing: tensor.data is ignored, and the bytes
 * are written in chunks, in any order of the tensors. Ending the stream commits the file; every
 * tensor must be complete.
 */
typedef struct ft_safetensors_stream ft_safetensors_stream;
FT_MUST_USE ft_status ft_safetensors_stream_open(ft_safetensors_stream **out,
                                                 ft_atomic_file *output,
                                                 const ft_named_tensor *tensors, size_t count,
                                                 ft_error *err);
FT_MUST_USE ft_status ft_safetensors_stream_write(ft_safetensors_stream *stream, size_t index,
                                                  const void *data, size_t bytes, ft_error *err);
FT_MUST_USE ft_status ft_safetensors_stream_commit(ft_safetensors_stream *stream, ft_error *err);
void ft_safetensors_stream_free(ft_safetensors_stream *stream); /* accepts NULL */

/* Like ft_safetensors_write_to, but also opens the file. */
FT_MUST_USE ft_status ft_safetensors_write(const char *path, const ft_named_tensor *tensors,
                                           size_t count, bool force, ft_error *err);

#pragma GCC visibility pop

#endif
