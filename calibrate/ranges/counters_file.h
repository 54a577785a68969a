/*
 * counters_file.h - the file format of counter sets, for calibration on several machines.
 *
 * All numbers are little-endian, without padding:
 *
 *   8  "FTCOUNTS"                 u32 version = 1
 *   u32 points                    u32 ranges
 *   32 fingerprint of the model
 *   ranges x { 32 fingerprint of the data, u64 first, u64 last }
 *                                 sorted by data, then by first; disjoint and not adjacent
 *   points x {
 *       u32 bytes of the name     u32 keys counted          u32 values in the tail
 *       u64 zeros                 u64 NaN                   u64 infinities
 *       name
 *       keys x { u32 key, u64 count }      ascending, no count is 0
 *       values x u32                       float bits, ascending
 *   }
 *   32 SHA-256 of everything before it
 *
 * Equal sets give equal files. Keys are those of kernels/count.h; a change of the keys changes the
 * version.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CALIBRATE_RANGES_COUNTERS_FILE_H
#define FT_CALIBRATE_RANGES_COUNTERS_FILE_H

#include "calibrate/ranges/counters.h"
#include "runtime/base/atomic_file.h"

/*
 * Finalizes a set and makes the bytes of its file, in memory that the caller frees. FT_ENOMEM, for
 * the file `who`.
 */
FT_MUST_USE ft_status ft_counter_set_format(char **out, size_t *size, ft_counter_set *set,
                                            const char *who, ft_error *err);

/* Finalizes and writes a set, and commits the file. */
ft_status ft_counter_set_write(ft_counter_set *set, ft_atomic_file *output, ft_error *err);

/* Reads a file. FT_EFORMAT for anything that the writer would not have written. */
ft_status ft_counter_set_read(ft_counter_set **out, const char *path, ft_error *err);

/* Parses a buffer; `who` is named in errors. */
ft_status ft_counter_set_parse(ft_counter_set **out, const void *bytes, size_t size,
                               const char *who, ft_error *err);

#endif
