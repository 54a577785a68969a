/*
 * tuning.h - the file in which ft-bench --tune keeps the fastest kernels of devices, and which a
 * model reads when it is opened.
 *
 * All kernels of an operation return the same bits, so the file changes times only.  It is JSON:
 *
 *   { "format": 2, "devices": [ { "device": NAME, "driver": TEXT, "version": FT's, "gemms": [
 *       { "rows": 16, "n": 6144, "k": 4096, "linears": 3, "x": "F16", "w": "U4", "out": "F16",
 *         "group": 128, "zero_points": false, "int8_activations": false, "batch_invariant": false,
 *         "activation": "none", "kernel": "wgmma n192 m16" }, ... ] }, ... ] }
 *
 * A GEMM of [m, k] by [n, k]^T takes the kernel of the entry with the smallest "rows" >= m.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_TUNING_TUNING_H
#define FT_RUNTIME_TUNING_TUNING_H

#include "kernels/backend.h"

#pragma GCC visibility push(default) /* linked by the tools: FT_PRIVATE */

typedef struct ft_tuning {
    ft_tuned_gemm *gemm; /* [count] */
    size_t count;
} ft_tuning;

/*
 * The path of the file: `given`, unless it is NULL, else the environment variable FT_TUNING, else
 * tuning.json in the folder ft of $XDG_CACHE_HOME or of $HOME/.cache.  An empty path means none.
 * *is_default: it is neither given nor from FT_TUNING.  The caller frees *out; NULL: no file.
 */
FT_MUST_USE ft_status ft_tuning_path(char **out, bool *is_default, const char *given,
                                     ft_error *err);

/*
 * The kernels for a device.  FT_EIO: the file cannot be read; FT_EFORMAT: it is damaged or no such
 * file; FT_EUNSUPPORTED: it is for other devices, drivers or versions of FT.
 */
FT_MUST_USE ft_status ft_tuning_read(ft_tuning *out, const char *path,
                                     const ft_device_identity *device, ft_error *err);
void ft_tuning_fini(ft_tuning *tuning);

/*
 * Write the kernels for a device, in place of those that the file has for the same shapes, or that
 * were tuned with another driver or version of FT; the file's folder and the folder of that are
 * created.  FT_EFORMAT: the file exists and is no such file.  FT_EUNSUPPORTED: it has another
 * format.
 */
FT_MUST_USE ft_status ft_tuning_write(const ft_tuning *tuning, const char *path,
                                      const ft_device_identity *device, ft_error *err);

/*
 * Read the file for an open device, and let plans use its kernels.  A file that cannot be used is
 * ignored, and note [FT_TUNING_NOTE] says why; it is empty where there is nothing to say.
 */
enum { FT_TUNING_NOTE = 512 };
void ft_tuning_apply(const ft_backend *backend, ft_device *device, const char *given,
                     char note[FT_TUNING_NOTE]);

#pragma GCC visibility pop

#endif
