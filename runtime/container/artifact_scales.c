/*
 * artifact_scales.c - read and check scales and zero points.
 *
 * Arithmetic depends on them, so opening an artifact checks every value.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/container/artifact_private.h"

#include "kernels/half.h"
#include "runtime/base/affix.h"
#include "runtime/error.h"
#include "runtime/mem.h"

#include <math.h>

/*
 * Look up the entry prefix + name of a tensor, which must hold `count` elements of `size` bytes;
 * `what` names them in errors.
 */
static ft_status find_values(const ft_artifact *a, zip_t *zip, const ft_artifact_tensor *t,
                             const char *prefix, const char *what, size_t count, size_t size,
                             const void **out, ft_error *err)
{
    char path[FT_ZIP_MAX_NAME + 1];
    snprintf(path, sizeof path, "%s%s", prefix, t->name);
    const ft_zip_entry *entry = ft_zip_directory_find(&a->dir, path);
    if (entry == NULL)
        return ft_fail(err, FT_EFORMAT, "%s: %s: missing: the %s of %s", a->label, path, what,
                       t->name);
    size_t expected;
    if (!ft_checked_mul(count, size, &expected) || entry->bytes != expected)
        return ft_fail(err, FT_EFORMAT, "%s: %s: %zu %s, expected %zu", a->label, path,
                       entry->bytes / size, what, count);
    *out = entry->data;
    return ft_artifact_check_crc(a, zip, entry, err);
}

/* ---- Per-channel scales --------------------------------------------------------------------- */

static ft_status read_channel_scales(const ft_artifact *a, zip_t *zip, ft_artifact_tensor *t,
                                     ft_error *err)
{
    const void *scales;
    FT_TRY(find_values(a, zip, t, FT_SCALE_PREFIX, "scales", (size_t) t->dim[0], sizeof *t->scale,
                       &scales, err));
    t->scale = scales;
    for (int64_t i = 0; i < t->dim[0]; i++)
        if (!(t->scale[i] > 0.0f) || !isfinite(t->scale[i]))
            return ft_fail(err, FT_EFORMAT,
                           "%s: %s: scale of channel %lld is %g, expected a positive finite number",
                           a->label, t->name, (long long) i, (double) t->scale[i]);
    return FT_OK;
}

/* ---- Group-wise scales ---------------------------------------------------------------------- */

static ft_status check_group_scales(const ft_artifact *a, const ft_artifact_tensor *t, size_t count,
                                    ft_error *err)
{
    size_t rows = (size_t) t->dim[0], padded = ft_layout_rows(FT_PANEL32, rows);
    for (size_t i = 0; i < count; i++) {
        bool is_padding = i % padded >= rows;
        uint16_t bits = t->groupwise.scale[i];
        if (is_padding ? bits == 0 : bits > 0 && bits < 0x7c00) /* positive, finite, not NaN */
            continue;
        return ft_fail(err, FT_EFORMAT, "%s: %s: scale of row %zu, group %zu is %g, expected %s",
                       a->label, t->name, i % padded, i / padded, (double) ft_float_from_f16(bits),
                       is_padding ? "0 in a padding row" : "a positive finite number");
    }
    return FT_OK;
}

static ft_status check_group_zeros(const ft_artifact *a, const ft_artifact_tensor *t, size_t count,
                                   ft_error *err)
{
    size_t rows = (size_t) t->dim[0], padded = ft_layout_rows(FT_PANEL32, rows);
    for (size_t i = 0; i < count; i++) {
        int max = i % padded >= rows ? 0 : (1 << ft_groupwise_bits(t->dtype)) - 1;
        if (t->groupwise.zero[i] > max)
            return ft_fail(err, FT_EFORMAT,
                           "%s: %s: zero of row %zu, group %zu is %d, expected at most %d",
                           a->label, t->name, i % padded, i / padded, t->groupwise.zero[i], max);
    }
    return FT_OK;
}

static ft_status read_group_scales(const ft_artifact *a, zip_t *zip, ft_artifact_tensor *t,
                                   ft_error *err)
{
    const void *values;
    size_t count = ft_groupwise_scale_count(&t->groupwise, (size_t) t->dim[0], (size_t) t->dim[1]);
    FT_TRY(find_values(a, zip, t, FT_SCALE_PREFIX, "scales", count, sizeof *t->groupwise.scale,
                       &values, err));
    t->groupwise.scale = values;
    FT_TRY(check_group_scales(a, t, count, err));
    if (!t->has_zero_points)
        return FT_OK;
    FT_TRY(find_values(a, zip, t, FT_ZERO_PREFIX, "zeros", count, sizeof *t->groupwise.zero,
                       &values, err));
    t->groupwise.zero = values;
    return check_group_zeros(a, t, count, err);
}

/* ---- All tensors ---------------------------------------------------------------------------- */

/* Every scale and zero point entry must belong to a quantized tensor that has such. */
static ft_status check_owner(const ft_artifact *a, const char *name, ft_error *err)
{
    const ft_artifact_tensor *t = NULL;
    bool scales = ft_starts_with(name, FT_SCALE_PREFIX);
    if (scales || ft_starts_with(name, FT_ZERO_PREFIX))
        t = ft_artifact_find(a, name + strlen(FT_SCALE_PREFIX));
    else
        return FT_OK;
    if (t != NULL && (scales ? t->scale != NULL || t->groupwise.scale != NULL : t->has_zero_points))
        return FT_OK;
    return ft_fail(err, FT_EFORMAT, "%s: %s: %s of no quantized tensor", a->label, name,
                   scales ? "scales" : "zeros");
}

ft_status ft_artifact_read_scales(ft_artifact *a, zip_t *zip, ft_error *err)
{
    for (size_t i = 0; i < a->manifest.n_tensors; i++) {
        ft_artifact_tensor *t = &a->manifest.tensor[i];
        if (t->dtype == FT_I8)
            FT_TRY(read_channel_scales(a, zip, t, err));
        if (t->layout == FT_PANEL32)
            FT_TRY(read_group_scales(a, zip, t, err));
    }
    for (size_t i = 0; i < a->manifest.n_files; i++)
        FT_TRY(check_owner(a, a->manifest.file[i].name, err));
    return FT_OK;
}
