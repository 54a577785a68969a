/*
 * file_type.h - detect the type of a file by its magic bytes and explain what to do with an
 * unsupported one.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_CONTAINER_FILE_TYPE_H
#define FT_RUNTIME_CONTAINER_FILE_TYPE_H

#include "runtime/ft.h"

#pragma GCC visibility push(default) /* linked by the tools: FT_PRIVATE */

typedef enum ft_file_kind {
    FT_FILE_UNKNOWN,
    FT_FILE_ARTIFACT,
    FT_FILE_COUNTERS,
    FT_FILE_SHARD,
    FT_FILE_SAFETENSORS,
    FT_FILE_GGUF,
    FT_FILE_GGML,
    FT_FILE_ONNX,
    FT_FILE_TFLITE,
    FT_FILE_HDF5,
    FT_FILE_PYTORCH,
    FT_FILE_PICKLE,
    FT_FILE_NUMPY,
    FT_FILE_NPZ,
    FT_FILE_ZIP,
    FT_FILE_GZIP,
    FT_FILE_XZ,
    FT_FILE_ZSTD,
    FT_FILE_BZIP2,
    FT_FILE_7Z,
    FT_FILE_TAR,
    FT_FILE_LFS,
    FT_FILE_HTML,
    FT_FILE_PNG,
    FT_FILE_JPEG,
    FT_FILE_JSON,
    FT_FILE_TEXT,
} ft_file_kind;

/* Number of leading bytes that are examined. */
enum { FT_MAGIC_BYTES = 512 };

/* The type of a file that starts with these bytes. */
ft_file_kind ft_detect_file_kind(const void *bytes, size_t count);

/* The type of the file at `path`; unknown when it is unreadable or not a regular file. */
ft_file_kind ft_detect_file_kind_at(const char *path);

/* "GGUF", "a NumPy array", to be used in sentences; "something unknown". */
const char *ft_file_kind_name(ft_file_kind kind);

/* The type of file that a reader expects. */
typedef enum ft_expected_file {
    FT_EXPECTED_CHECKPOINT, /* a safetensors file of weights */
    FT_EXPECTED_ARTIFACT,
    FT_EXPECTED_DATA, /* a safetensors file of samples */
    FT_EXPECTED_COUNTERS,
    FT_EXPECTED_SHARD,     /* statistics of a shard of the samples */
    FT_EXPECTED_JSON,      /* a JSON file of a checkpoint */
    FT_EXPECTED_TOKENIZER, /* another file of its tokenizer */
} ft_expected_file;

/*
 * Improve the error of a reader of `path` that failed with `failure` and *err. If the file is of
 * another known type, or `path` is only the name of a model on a hub, *err is replaced by a text
 * that says so and what to do instead, with FT_EFORMAT if the file exists; otherwise both are
 * unchanged. Returns the status.
 */
ft_status ft_explain_wrong_file(const char *path, ft_expected_file wanted, ft_status failure,
                                ft_error *err);

/* The same for the bytes of a file; text of unknown type is left to its reader. */
ft_status ft_explain_wrong_bytes(const char *label, const void *bytes, size_t count,
                                 ft_expected_file wanted, ft_status failure, ft_error *err);

#pragma GCC visibility pop

#endif
