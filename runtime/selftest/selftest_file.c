/*
 * selftest_file.c - write and parse the self-test of an artifact: both ends of the format.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/selftest/selftest.h"

#include "runtime/base/json_build.h"
#include "runtime/container/safetensors.h"
#include "runtime/error.h"
#include "runtime/mem.h"
#include "runtime/tensor.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Larger elements come first, so that every tensor is aligned. */
static const struct {
    const char *name;
    ft_dtype dtype;
    int ndim;
} kinds[FT_SELFTEST_TENSORS] = {
    [FT_SELFTEST_IDS] = { "input_ids", FT_I32, 2 },
    [FT_SELFTEST_MASK] = { "attention_mask", FT_I32, 2 },
    [FT_SELFTEST_TYPES] = { "token_type_ids", FT_I32, 2 },
    [FT_SELFTEST_TARGET_IDS] = { "decoder_input_ids", FT_I32, 2 },
    [FT_SELFTEST_TARGET_MASK] = { "decoder_attention_mask", FT_I32, 2 },
    [FT_SELFTEST_PIXEL_SCALE] = { "pixel_scale", FT_F32, 1 },
    [FT_SELFTEST_FLOAT] = { "float", FT_F32, 2 },
    [FT_SELFTEST_EXPECTED] = { "expected", FT_F32, 2 },
    [FT_SELFTEST_TOLERANCE] = { "tolerance", FT_F32, 1 },
    [FT_SELFTEST_DIGEST] = { "digest", FT_U8, 1 },
    [FT_SELFTEST_PIXEL_VALUES] = { "pixel_values", FT_I8, 4 },
};

ft_status ft_selftest_add(ft_selftest *test, ft_selftest_tensor which, ft_dtype dtype, int ndim,
                          const int64_t *dim, ft_error *err)
{
    ft_tensor *tensor = &test->tensor[which];
    *tensor = (ft_tensor){ .dtype = dtype, .ndim = ndim };
    memcpy(tensor->dim, dim, (size_t) ndim * sizeof *dim);
    tensor->data = ft_calloc(ft_tensor_numel(tensor), ft_dtype_size(dtype));
    return tensor->data != NULL
               ? FT_OK
               : ft_fail(err, FT_ENOMEM, "no memory for %s of a self-test", kinds[which].name);
}

void ft_selftest_fini(ft_selftest *test)
{
    for (int i = 0; i < FT_SELFTEST_TENSORS; i++)
        free(test->tensor[i].data);
    memset(test, 0, sizeof *test);
}

/* ---- Writing ------------------------------------------------------------------------------ */

static json_t *tensor_json(const ft_tensor *tensor, size_t offset)
{
    json_t *shape = json_array();
    for (int i = 0; i < tensor->ndim; i++)
        ft_json_append(&shape, json_integer(tensor->dim[i]));
    return json_pack("{ss, so, s[I, I]}", "dtype", ft_dtype_name(tensor->dtype), "shape", shape,
                     "data_offsets", (json_int_t) offset,
                     (json_int_t) (offset + ft_tensor_bytes(tensor)));
}

/* The header, padded with spaces to a multiple of 8 bytes. */
static char *format_header(const ft_selftest *test, size_t *bytes, size_t *data_bytes)
{
    json_t *json = json_object();
    *data_bytes = 0;
    for (int i = 0; i < FT_SELFTEST_TENSORS; i++)
        if (test->tensor[i].data != NULL) {
            ft_json_set(&json, kinds[i].name, tensor_json(&test->tensor[i], *data_bytes));
            *data_bytes += ft_tensor_bytes(&test->tensor[i]);
        }
    char *text = ft_json_dump(json, JSON_COMPACT, bytes);
    json_decref(json);
    return text;
}

ft_status ft_selftest_format(const ft_selftest *test, char **bytes, size_t *size, ft_error *err)
{
    size_t length, data_bytes;
    char *header = format_header(test, &length, &data_bytes);
    size_t padded = ft_round_up(header != NULL ? length : 0, 8);
    *size = 8 + padded + data_bytes;
    *bytes = header != NULL && *size <= FT_SELFTEST_MAX_BYTES ? malloc(*size) : NULL;
    if (*bytes == NULL) {
        free(header);
        return *size > FT_SELFTEST_MAX_BYTES
                   ? ft_fail(err, FT_ELIMIT, "a self-test of %zu bytes, at most %d", *size,
                             FT_SELFTEST_MAX_BYTES)
                   : ft_fail(err, FT_ENOMEM, "no memory for a self-test");
    }
    ft_store_le64(*bytes, padded);
    memset(*bytes + 8, ' ', padded);
    memcpy(*bytes + 8, header, length);
    char *next = *bytes + 8 + padded;
    for (int i = 0; i < FT_SELFTEST_TENSORS; i++)
        if (test->tensor[i].data != NULL) {
            memcpy(next, test->tensor[i].data, ft_tensor_bytes(&test->tensor[i]));
            next += ft_tensor_bytes(&test->tensor[i]);
        }
    free(header);
    return FT_OK;
}

/* ---- Parsing ------------------------------------------------------------------------------ */

static ft_status fail_entry(const char *label, const char *reason, ft_error *err)
{
    return ft_fail(err, FT_EFORMAT, "%s: " FT_SELFTEST_ENTRY ": %s", label, reason);
}

static int find_kind(const char *name)
{
    for (int i = 0; i < FT_SELFTEST_TENSORS; i++)
        if (strcmp(kinds[i].name, name) == 0)
            return i;
    return -1;
}

static ft_status copy_tensor(ft_selftest *out, const ft_named_tensor *named, const char *label,
                             ft_error *err)
{
    const ft_tensor *tensor = &named->tensor;
    int kind = find_kind(named->name);
    if (kind < 0 || tensor->dtype != kinds[kind].dtype || tensor->ndim != kinds[kind].ndim ||
        ft_tensor_numel(tensor) == 0)
        return ft_fail(err, FT_EFORMAT,
                       "%s: " FT_SELFTEST_ENTRY ": %s: not a tensor of a self-test", label,
                       named->name);
    FT_TRY(ft_selftest_add(out, (ft_selftest_tensor) kind, tensor->dtype, tensor->ndim, tensor->dim,
                           err));
    memcpy(out->tensor[kind].data, tensor->data, ft_tensor_bytes(tensor));
    return FT_OK;
}

static bool has(const ft_selftest *test, ft_selftest_tensor which)
{
    return test->tensor[which].data != NULL;
}

/* Whether two matrices have the same shape, or the second one is absent. */
static bool same_shape(const ft_selftest *test, ft_selftest_tensor a, ft_selftest_tensor b)
{
    const ft_tensor *x = &test->tensor[a], *y = &test->tensor[b];
    return y->data == NULL || (x->data != NULL && x->dim[0] == y->dim[0] && x->dim[1] == y->dim[1]);
}

static bool is_short(const ft_selftest *test, ft_selftest_tensor which)
{
    const ft_tensor *t = &test->tensor[which];
    return t->data == NULL || (t->dim[0] <= FT_SELFTEST_SAMPLES && t->dim[1] <= FT_SELFTEST_TOKENS);
}

static ft_status check_inputs(const ft_selftest *test, const char *label, ft_error *err)
{
    bool has_text = has(test, FT_SELFTEST_IDS) && has(test, FT_SELFTEST_MASK);
    bool has_images = has(test, FT_SELFTEST_PIXEL_VALUES) && has(test, FT_SELFTEST_PIXEL_SCALE);
    if (has_text == has_images)
        return fail_entry(label, "expected either tokens or images", err);
    if (!same_shape(test, FT_SELFTEST_IDS, FT_SELFTEST_MASK) ||
        !same_shape(test, FT_SELFTEST_IDS, FT_SELFTEST_TYPES) ||
        !same_shape(test, FT_SELFTEST_TARGET_IDS, FT_SELFTEST_TARGET_MASK))
        return fail_entry(label, "inputs of different shapes", err);
    if (!is_short(test, FT_SELFTEST_IDS) || !is_short(test, FT_SELFTEST_TARGET_IDS) ||
        (has_images && test->tensor[FT_SELFTEST_PIXEL_VALUES].dim[0] > FT_SELFTEST_SAMPLES))
        return fail_entry(label, "expected at most 4 samples of at most 64 tokens", err);
    return FT_OK;
}

static ft_status check_outputs(const ft_selftest *test, const char *label, ft_error *err)
{
    if (!has(test, FT_SELFTEST_EXPECTED) || !has(test, FT_SELFTEST_FLOAT) ||
        !has(test, FT_SELFTEST_DIGEST) || !has(test, FT_SELFTEST_TOLERANCE) ||
        !same_shape(test, FT_SELFTEST_EXPECTED, FT_SELFTEST_FLOAT))
        return fail_entry(label, "expected float, expected, digest and tolerance", err);
    float tolerance = *(const float *) test->tensor[FT_SELFTEST_TOLERANCE].data;
    if (test->tensor[FT_SELFTEST_DIGEST].dim[0] != FT_SHA256_BYTES ||
        !(tolerance >= 0.0f && tolerance <= 1.0f))
        return fail_entry(label, "expected a digest of 32 bytes and a tolerance of 0 to 1", err);
    for (int which = FT_SELFTEST_FLOAT; which <= FT_SELFTEST_EXPECTED; which++)
        for (size_t i = 0; i < ft_tensor_numel(&test->tensor[which]); i++)
            if (!isfinite(((const float *) test->tensor[which].data)[i]))
                return fail_entry(label, "an output is not finite", err);
    return FT_OK;
}

static ft_status copy_all(ft_selftest *out, const ft_safetensors *file, const char *label,
                          ft_error *err)
{
    for (size_t i = 0; i < ft_safetensors_count(file); i++)
        FT_TRY(copy_tensor(out, ft_safetensors_at(file, i), label, err));
    FT_TRY(check_inputs(out, label, err));
    return check_outputs(out, label, err);
}

ft_status ft_selftest_parse(ft_selftest *out, const char *label, const void *bytes, size_t size,
                            ft_error *err)
{
    ft_safetensors *file;
    ft_error reason;
    *out = (ft_selftest){ 0 };
    if (size > FT_SELFTEST_MAX_BYTES)
        return fail_entry(label, "larger than 256 KiB", err);
    if (ft_safetensors_parse(&file, FT_SELFTEST_ENTRY, bytes, size, &reason) != FT_OK)
        return ft_fail(err, reason.code, "%s: %s", label, reason.text);
    ft_status status = copy_all(out, file, label, err);
    ft_safetensors_close(file);
    if (status != FT_OK)
        ft_selftest_fini(out);
    return status;
}
