/*
 * counters_file.h - sets of counters as files, to calibrate on several machines and merge.
 *
 * All numbers are little-endian, nothing is padded:
 *
 *   8  "FTCOUNTS"                 u32 version = 1
 *   u32 points                    u32 ranges
 *   32 fingerprint of the model
 *   ranges x { 32 fingerprint of the data, u64 first, u64 last }
 *                                 by data, then ascending, neither overlapping nor touching
 *   points x {
 *       u32 bytes of the name     u32 keys counted          u32 values in the tail
 *       u64 zeros                 u64 NaN                   u64 infinities
 *       name
 *       keys x { u32 key, u64 count }      ascending, no count is 0
 *       values x u32                       float bits, ascending
 *   }
 *   32 SHA-256 of all before it
 *
 * Equal sets give equal files.  Keys are those of kernels/count.h; the version changes with them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CALIBRATE_RANGES_COUNTERS_FILE_H
#define FT_CALIBRATE_RANGES_COUNTERS_FILE_H

#include "calibrate/ranges/counters.h"
#include "runtime/base/atomic_file.h"

/* Write a set, which gets settled, and give the file its name. */
ft_status ft_counter_set_write(ft_counter_set *set, ft_output *output, ft_error *err);

/* Read a file.  FT_EFORMAT for anything that the writer would not have written. */
ft_status ft_counter_set_read(ft_counter_set **out, const char *path, ft_error *err);

/* Read from memory; `who` is named in errors. */
ft_status ft_counter_set_parse(ft_counter_set **out, const void *bytes, size_t size,
                               const char *who, ft_error *err);

#endif
