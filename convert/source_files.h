/*
 * source_files.h - the files of a checkpoint and their SHA-256, for the provenance of an artifact.
 *
 * A digest needs the bytes of a file in order, whereas tensors are read in the order of the model.
 * So files are read a second time, from the page cache as a rule, by another thread while the
 * artifact is written.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CONVERT_SOURCE_FILES_H
#define FT_CONVERT_SOURCE_FILES_H

#include "convert/convert.h"

typedef struct ft_source_files ft_source_files;

/*
 * Lists the safetensors files of a conversion and the other files of the checkpoint's folder that
 * conversions read. FT_EIO; FT_ENOMEM.
 */
FT_MUST_USE ft_status ft_source_files_open(ft_source_files **out, const ft_conversion *conversion,
                                           ft_error *err);
void ft_source_files_close(ft_source_files *files); /* accepts NULL */

/*
 * Hashes files until none is left. Several threads may do so at the same time: they take turns.
 * After it has returned in one thread, all digests are known or hashing has failed.
 */
void ft_source_files_hash(ft_source_files *files);

/*
 * The array "source" of the provenance (runtime/container/provenance.h). Before hashing all digests
 * are zero; its text has the same length then. The caller owns it. NULL without memory.
 */
json_t *ft_source_files_json(const ft_source_files *files);

/* The error of hashing, or FT_OK. */
FT_MUST_USE ft_status ft_source_files_status(const ft_source_files *files, ft_error *err);

#endif
