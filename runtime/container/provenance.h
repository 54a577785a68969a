/*
 * provenance.h - where an artifact comes from: the object "provenance" of its manifest.
 *
 * It has these members, each of which may be missing:
 *
 *   source       [{name, bytes, sha256}], the files of the checkpoint
 *   conversion   {tool, version, ...}, the options of ft-convert
 *   calibration  {tool, version, ...}, the options of ft-calibrate
 *   samples      [{sha256, first, end}], the observed samples: first .. end - 1 of a data set
 *   times        {name, bytes, sha256}, of the measured times by which precisions were chosen
 *   evaluation   the end-to-end figures of the calibration report
 *
 * Nothing in it depends on the time, the machine or the folder of a file: equal inputs and options
 * give equal bytes.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_CONTAINER_PROVENANCE_H
#define FT_RUNTIME_CONTAINER_PROVENANCE_H

#include <jansson.h>
#include <stdint.h>

#pragma GCC visibility push(default) /* linked by the tools: FT_PRIVATE */

/* The last component of a path as a JSON string, "?" unless it is UTF-8; NULL for NULL
 * and without memory. */
json_t *ft_provenance_name(const char *path);

/* {"tool": tool, "version": this version}; NULL without memory. */
json_t *ft_provenance_tool(const char *tool);

/* {"name", "bytes", "sha256"}, with a digest of zeros if `digest` is NULL. */
json_t *ft_provenance_file(const char *name, uint64_t bytes, const uint8_t *digest);

#pragma GCC visibility pop

#endif
