/*
 * provenance.h - writes an artifact with its provenance: options, and digests of the source files.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CONVERT_PROVENANCE_H
#define FT_CONVERT_PROVENANCE_H

#include "convert/convert.h"

/*
 * ft_artifact_write() with a provenance (runtime/container/provenance.h), which is NULL in *header
 * before and after. The files are hashed by another thread meanwhile. FT_EIO if one cannot be read.
 */
FT_MUST_USE ft_status ft_conversion_write_provenance(const ft_conversion *conversion,
                                                     ft_artifact_writer *writer,
                                                     ft_artifact_header *header, ft_error *err);

#endif
