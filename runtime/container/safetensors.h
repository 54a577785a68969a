/*
 * safetensors.h - read and write files of named tensors.
 *
 * A file is 8 bytes of length (little-endian), that much JSON, and the data of all tensors:
 *
 *     {"__metadata__": {"format": "pt"},
 *      "classifier.bias": {"dtype": "F32", "shape": [10], "data_offsets": [0, 40]}, ...}
 *
 * The reader believes nothing: every number is checked before it is used, and the tensors must
 * tile the data without overlap, hole or rest.  What it accepts can be used without a check.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_CONTAINER_SAFETENSORS_H
#define FT_RUNTIME_CONTAINER_SAFETENSORS_H

#include "runtime/base/atomic_file.h"

/* The longest header that is read or written: 100 MB, like other readers of the format. */
enum { FT_SAFETENSORS_MAX_HEADER = 100 * 1000 * 1000 };

typedef struct ft_named_tensor {
    const char *name; /* not empty, UTF-8 */
    ft_tensor tensor;
} ft_named_tensor;

typedef struct ft_safetensors ft_safetensors;

/*
 * Map a file read-only and check all of its header; no data are read.  On failure *out is NULL.
 *
 * tensor.data points into the map until ft_safetensors_close: it may be read, not written, and it
 * may be unaligned for its dtype, so elements are fetched with memcpy or as bytes.  Layouts are
 * FT_ROW, elements little-endian, and ft_tensor_bytes(&tensor) is exact and never overflows, 0 for
 * an empty tensor.  The file must stay unchanged while it is open.
 *
 * FT_EIO: cannot be opened, or is not a regular file.  FT_EFORMAT: not a safetensors file.
 * FT_ELIMIT: header above FT_SAFETENSORS_MAX_HEADER, or more than FT_MAX_DIMS dimensions.
 * FT_EUNSUPPORTED: a dtype that exists but is none of ft_dtype (F8_E4M3, U16, ...).
 */
FT_MUST_USE ft_status ft_safetensors_open(ft_safetensors **out, const char *path, ft_error *err);

/* The same from memory, which is borrowed until ft_safetensors_close; `name` is for messages. */
FT_MUST_USE ft_status ft_safetensors_parse(ft_safetensors **out, const char *name,
                                           const void *bytes, size_t size, ft_error *err);

/* Takes NULL. */
void ft_safetensors_close(ft_safetensors *st);

/* The path or name that it was opened by. */
const char *ft_safetensors_path(const ft_safetensors *st);

/* Tensors in the order of their data: reading them in turn reads the file from start to end. */
size_t ft_safetensors_count(const ft_safetensors *st);
const ft_named_tensor *ft_safetensors_at(const ft_safetensors *st, size_t index);

/* By name, in logarithmic time; NULL when there is none. */
const ft_tensor *ft_safetensors_find(const ft_safetensors *st, const char *name);

/*
 * Say that `bytes` at `data` will not be needed soon, so that a program that streams a file larger
 * than memory stays small: whole pages leave the process and come back when touched.  Ranges that
 * are not of this file's map are ignored.
 */
void ft_safetensors_release(const ft_safetensors *st, const void *data, size_t bytes);

/*
 * Write a file and give it its name; at no moment a half file stands there (see atomic_file.h).
 *
 * Tensors are FT_ROW, with unique names.  They are ordered by element size, largest first, then as
 * given, after a header padded to a multiple of 8 bytes: every tensor is aligned to its elements.
 *
 * FT_EIO: the system refused.  FT_EARG: a tensor that no file can hold.  FT_ELIMIT: header above
 * FT_SAFETENSORS_MAX_HEADER.
 */
FT_MUST_USE ft_status ft_safetensors_write_to(ft_output *output, const ft_named_tensor *tensors,
                                              size_t count, ft_error *err);

/*
 * The same of tensors that are not there yet: `data` is ignored, and their bytes come in pieces, in
 * turns or one after the other.  Ending gives the file its name; every tensor must be whole.
 */
typedef struct ft_safetensors_stream ft_safetensors_stream;
FT_MUST_USE ft_status ft_safetensors_begin(ft_safetensors_stream **out, ft_output *output,
                                           const ft_named_tensor *tensors, size_t count,
                                           ft_error *err);
FT_MUST_USE ft_status ft_safetensors_put(ft_safetensors_stream *stream, size_t index,
                                         const void *data, size_t bytes, ft_error *err);
FT_MUST_USE ft_status ft_safetensors_end(ft_safetensors_stream *stream, ft_error *err);
void ft_safetensors_stream_free(ft_safetensors_stream *stream); /* takes NULL */

/* The same as the first, opening the output too. */
FT_MUST_USE ft_status ft_safetensors_write(const char *path, const ft_named_tensor *tensors,
                                           size_t count, bool force, ft_error *err);

#endif
