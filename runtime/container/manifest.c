/*
 * manifest.c - write and parse manifest.json.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/container/manifest.h"

#include "kernels/layout.h"
#include "runtime/container/features.h"
#include "runtime/error.h"
#include "runtime/base/json_build.h"
#include "runtime/base/json_reader.h"
#include "runtime/mem.h"
#include "runtime/tensor.h"
#include "runtime/container/zip_directory.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char *const states[] = {
    [FT_ARTIFACT_FLOAT] = "float",
    [FT_ARTIFACT_GROUPWISE] = "blocks",
    [FT_ARTIFACT_INT8] = "int8",
};

const char *ft_artifact_state_name(ft_artifact_state state)
{
    return (size_t) state < FT_COUNT(states) ? states[state] : NULL;
}

bool ft_artifact_state_allows(ft_artifact_state state, const ft_artifact_tensor *t)
{
    if (t->dtype == FT_I8)
        return state == FT_ARTIFACT_INT8;
    return t->layout != FT_PANEL32 || state != FT_ARTIFACT_FLOAT;
}

/* ---- Sizes -------------------------------------------------------------------------------- */

/* 0 on overflow. */
static size_t stored_bytes(const ft_artifact_tensor *t)
{
    ft_tensor plain = { .dtype = t->dtype, .ndim = t->ndim };
    memcpy(plain.dim, t->dim, sizeof plain.dim);
    if (t->layout == FT_ROW)
        return ft_tensor_bytes(&plain);
    size_t bytes, rows = (size_t) t->dim[0], cols = (size_t) t->dim[1];
    if (rows > SIZE_MAX / 2 || cols > SIZE_MAX / 2 ||
        !ft_checked_mul(ft_layout_rows(t->layout, rows), ft_layout_cols(t->layout, cols), &bytes))
        return 0;
    return t->dtype == FT_U4 ? bytes / 2 : bytes;
}

/* Check which dtypes and shapes a layout supports. */
static ft_status check_layout(const char *label, const ft_artifact_tensor *t, const char *shape,
                              ft_error *err)
{
    bool groupwise = t->layout == FT_PANEL32, quantized = t->layout != FT_ROW;
    bool fits = groupwise ? ft_groupwise_bits(t->dtype) != 0 : t->dtype == FT_I8;
    if (quantized && (!fits || t->ndim != 2))
        return ft_fail(err, FT_EFORMAT, "%s: %s: layout %s is for %s matrices, not for %s %s",
                       label, t->name, ft_layout_name(t->layout), groupwise ? "U4 and U8" : "I8",
                       ft_dtype_name(t->dtype), shape);
    if (!groupwise && t->dtype == FT_U4)
        return ft_fail(err, FT_EFORMAT, "%s: %s: U4 in layout %s, expected %s", label, t->name,
                       ft_layout_name(t->layout), ft_layout_name(FT_PANEL32));
    if (groupwise && (t->groupwise.group < 0 || t->groupwise.group % 32 != 0))
        return ft_fail(err, FT_EFORMAT, "%s: %s: groups of %d columns, expected a multiple of 32",
                       label, t->name, t->groupwise.group);
    return FT_OK;
}

ft_status ft_artifact_tensor_bytes(const char *label, const ft_artifact_tensor *t, size_t *bytes,
                                   ft_error *err)
{
    char shape[FT_SHAPE_TEXT];
    ft_shape_text(shape, t->ndim, t->dim);
    for (int i = 0; i < t->ndim; i++)
        if (t->dim[i] < 1)
            return ft_fail(err, FT_EFORMAT, "%s: %s: shape %s has a dimension below 1", label,
                           t->name, shape);
    FT_TRY(check_layout(label, t, shape, err));
    if (t->dtype == FT_I8 && t->ndim == 0)
        return ft_fail(err, FT_EFORMAT, "%s: %s: I8 without channels to scale", label, t->name);
    *bytes = stored_bytes(t);
    if (*bytes == 0)
        return ft_fail(err, FT_ELIMIT, "%s: %s: %s is too large", label, t->name, shape);
    return FT_OK;
}

/* ---- Writing ------------------------------------------------------------------------------ */

static json_t *shape_json(const ft_artifact_tensor *t)
{
    json_t *shape = json_array();
    for (int i = 0; i < t->ndim; i++)
        ft_json_append(&shape, json_integer(t->dim[i]));
    return shape;
}

/* Groupwise matrices with dynamically quantized int8 activations. */
#define INT8_ACTIVATIONS "int8"

static json_t *tensor_json(const ft_artifact_tensor *t)
{
    char digest[FT_SHA256_HEX_SIZE];
    json_t *json = json_pack("{ss, ss, ss, so, ss, ss+, sI, sI, ss}", "name", t->name, "role",
                             t->role, "dtype", ft_dtype_name(t->dtype), "shape", shape_json(t),
                             "layout", ft_layout_name(t->layout), "entry", FT_WEIGHT_PREFIX,
                             t->name, "offset", (json_int_t) t->offset, "bytes",
                             (json_int_t) t->bytes, "sha256", ft_sha256_to_hex(digest, t->sha256));
    if (t->dtype == FT_I8 || t->layout == FT_PANEL32)
        ft_json_set(&json, "scale", json_pack("s+", FT_SCALE_PREFIX, t->name));
    if (t->has_zero_points)
        ft_json_set(&json, "zero", json_pack("s+", FT_ZERO_PREFIX, t->name));
    if (t->layout == FT_PANEL32)
        ft_json_set(&json, "group", json_integer(t->groupwise.group));
    if (t->groupwise.int8_activations)
        ft_json_set(&json, "activations", json_string(INT8_ACTIVATIONS));
    return json;
}

static json_t *file_json(const ft_artifact_entry *f)
{
    char digest[FT_SHA256_HEX_SIZE];
    return json_pack("{ss, sI, ss}", "name", f->name, "bytes", (json_int_t) f->bytes, "sha256",
                     ft_sha256_to_hex(digest, f->sha256));
}

ft_status ft_manifest_format(const ft_manifest *m, char **text, size_t *bytes, ft_error *err)
{
    const ft_artifact_header *h = &m->header;
    json_t *tensors = json_array(), *files = json_array();
    for (size_t i = 0; i < m->n_tensors; i++)
        ft_json_append(&tensors, tensor_json(&m->tensor[i]));
    for (size_t i = 0; i < m->n_files; i++)
        ft_json_append(&files, file_json(&m->file[i]));

    json_t *json = json_pack(
        "{ss, si, sO*, ss, s{ss, ss}, ss, sO, sO*, sO*, so, so}", "format", "ft", "version",
        FT_ARTIFACT_VERSION, "requires", h->required, "state", ft_artifact_state_name(h->state),
        "tool", "name", h->tool, "version", ft_version(), "family", h->family, "config", h->config,
        "recipe", h->recipe, "provenance", h->provenance, "tensors", tensors, "files", files);
    *text = ft_json_dump(json, JSON_INDENT(1), bytes);
    json_decref(json);
    if (*text == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for a manifest of %zu tensors", m->n_tensors);
    return FT_OK;
}

/* ---- Reading ------------------------------------------------------------------------------ */

static ft_status read_identifier(const ft_json_reader *o, const char *key, const char **out)
{
    FT_TRY(ft_json_read_string(o, key, out));
    return ft_identifier_is_valid(*out)
               ? FT_OK
               : ft_json_fail_member(o, key, "at most 31 visible ASCII characters");
}

static ft_status read_size(const ft_json_reader *o, const char *key, size_t *out)
{
    int64_t value;
    FT_TRY(ft_json_read_integer(o, key, 0, PTRDIFF_MAX, &value));
    *out = (size_t) value;
    return FT_OK;
}

static ft_status read_digest(const ft_json_reader *o, uint8_t digest[FT_SHA256_BYTES])
{
    const char *text;
    FT_TRY(ft_json_read_string(o, "sha256", &text));
    return ft_sha256_from_hex(text, digest)
               ? FT_OK
               : ft_json_fail_member(o, "sha256", "64 hexadecimal digits");
}

static ft_status read_shape(const ft_json_reader *o, ft_artifact_tensor *t)
{
    const json_t *shape = json_object_get(o->json, "shape");
    if (!json_is_array(shape) || json_array_size(shape) > FT_MAX_DIMS)
        return ft_json_fail_member(o, "shape", "at most 8 dimensions");
    t->ndim = (int) json_array_size(shape);
    for (int i = 0; i < t->ndim; i++) {
        const json_t *dim = json_array_get(shape, (size_t) i);
        if (!json_is_integer(dim))
            return ft_json_fail_member(o, "shape", "integers");
        t->dim[i] = json_integer_value(dim);
    }
    return FT_OK;
}

/* The value of `key` must be prefix + name: the entry's name follows from the tensor's. */
static ft_status check_entry(const ft_json_reader *o, const char *key, const char *prefix,
                             const char *name)
{
    const char *entry;
    size_t skip = strlen(prefix);
    FT_TRY(ft_json_read_string(o, key, &entry));
    if (strncmp(entry, prefix, skip) != 0 || strcmp(entry + skip, name) != 0)
        return ft_json_fail(o, FT_EFORMAT,
                            FT_MANIFEST_ENTRY ": %s: \"%s\": found %.255s, expected %s%s", name,
                            key, entry, prefix, name);
    return FT_OK;
}

static ft_status check_size(const ft_json_reader *o, const ft_artifact_tensor *t)
{
    size_t expected;
    FT_TRY(ft_artifact_tensor_bytes(o->file, t, &expected, o->err));
    if (t->bytes == expected)
        return FT_OK;
    char shape[FT_SHAPE_TEXT];
    return ft_json_fail(o, FT_EFORMAT, "%s: %zu bytes, but %s %s %s has %zu", t->name, t->bytes,
                        ft_dtype_name(t->dtype), ft_shape_text(shape, t->ndim, t->dim),
                        ft_layout_name(t->layout), expected);
}

/* Keys of group-wise matrices, which no other tensor may have. */
static ft_status parse_groupwise(const ft_json_reader *o, ft_artifact_tensor *t)
{
    static const char *const keys[] = { "group", "zero", "activations" };
    bool groupwise = t->layout == FT_PANEL32;
    for (size_t i = 0; i < FT_COUNT(keys) && !groupwise; i++)
        if (json_object_get(o->json, keys[i]) != NULL)
            return ft_json_fail(o, FT_EFORMAT, "%s: %s %s with \"%s\"", t->name,
                                ft_dtype_name(t->dtype), ft_layout_name(t->layout), keys[i]);
    if (!groupwise)
        return FT_OK;
    FT_TRY(ft_json_to_int32(o, "group", json_object_get(o->json, "group"), 0, INT32_MAX,
                            &t->groupwise.group));
    t->has_zero_points = json_object_get(o->json, "zero") != NULL;
    t->groupwise.int8_activations = json_object_get(o->json, "activations") != NULL;
    if (t->groupwise.int8_activations) {
        const char *text;
        FT_TRY(ft_json_read_string(o, "activations", &text));
        if (strcmp(text, INT8_ACTIVATIONS) != 0)
            return ft_json_fail_member(o, "activations", "\"" INT8_ACTIVATIONS "\"");
    }
    return t->has_zero_points ? check_entry(o, "zero", FT_ZERO_PREFIX, t->name) : FT_OK;
}

static ft_status parse_tensor(const ft_json_reader *o, ft_artifact_state state,
                              ft_artifact_tensor *t)
{
    const char *text;
    FT_TRY(ft_json_read_string(o, "name", &t->name));
    if (strlen(t->name) > FT_ARTIFACT_NAME_MAX || !ft_zip_name_is_valid(t->name, strlen(t->name)))
        return ft_json_fail_member(o, "name", "a path of visible ASCII characters");
    FT_TRY(read_identifier(o, "role", &t->role));
    FT_TRY(ft_json_read_string(o, "dtype", &text));
    if (!ft_dtype_parse(text, &t->dtype))
        return ft_json_fail_member(o, "dtype", "a known dtype");
    FT_TRY(read_shape(o, t));
    FT_TRY(ft_json_read_string(o, "layout", &text));
    if (!ft_layout_parse(text, &t->layout))
        return ft_json_fail_member(o, "layout", "a known layout");
    FT_TRY(check_entry(o, "entry", FT_WEIGHT_PREFIX, t->name));
    FT_TRY(read_size(o, "offset", &t->offset));
    FT_TRY(read_size(o, "bytes", &t->bytes));
    FT_TRY(read_digest(o, t->sha256));
    FT_TRY(parse_groupwise(o, t));
    FT_TRY(check_size(o, t));

    bool has_scale = json_object_get(o->json, "scale") != NULL;
    if (!ft_artifact_state_allows(state, t))
        return ft_json_fail(o, FT_EFORMAT, "%s: %s in an artifact of state %s", t->name,
                            ft_dtype_name(t->dtype), ft_artifact_state_name(state));
    if (has_scale != (t->dtype == FT_I8 || t->layout == FT_PANEL32))
        return ft_json_fail(o, FT_EFORMAT, "%s: %s %s scale", t->name, ft_dtype_name(t->dtype),
                            has_scale ? "with a" : "without");
    return has_scale ? check_entry(o, "scale", FT_SCALE_PREFIX, t->name) : FT_OK;
}

static ft_status parse_file(const ft_json_reader *o, ft_artifact_entry *f)
{
    FT_TRY(ft_json_read_string(o, "name", &f->name));
    FT_TRY(read_size(o, "bytes", &f->bytes));
    return read_digest(o, f->sha256);
}

/* The array `key` of the manifest; all elements must be objects. */
static ft_status read_objects(const ft_json_reader *root, const char *key, size_t *count)
{
    json_t *array;
    FT_TRY(ft_json_read_array(root, key, &array));
    *count = json_array_size(array);
    for (size_t i = 0; i < *count; i++)
        if (!json_is_object(json_array_get(array, i)))
            return ft_json_fail_member(root, key, "an array of objects");
    return FT_OK;
}

/* A quantized state needs at least one tensor quantized that way. */
static ft_status check_state_tensors(const ft_manifest *m, const ft_json_reader *root)
{
    ft_artifact_state state = m->header.state;
    bool found = state == FT_ARTIFACT_FLOAT;
    for (size_t i = 0; i < m->n_tensors && !found; i++)
        found = state == FT_ARTIFACT_INT8 ? m->tensor[i].dtype == FT_I8
                                          : m->tensor[i].layout == FT_PANEL32;
    return found ? FT_OK
                 : ft_json_fail(root, FT_EFORMAT, "state %s, but no tensor is %s",
                                ft_artifact_state_name(state),
                                state == FT_ARTIFACT_INT8 ? "I8" : "in blocks");
}

static ft_status parse_lists(ft_manifest *m, const ft_json_reader *root)
{
    FT_TRY(read_objects(root, "tensors", &m->n_tensors));
    FT_TRY(read_objects(root, "files", &m->n_files));
    m->tensor = ft_calloc(m->n_tensors, sizeof *m->tensor);
    m->file = ft_calloc(m->n_files, sizeof *m->file);
    if (m->tensor == NULL || m->file == NULL)
        return ft_json_fail(root, FT_ENOMEM, "no memory for %zu tensors", m->n_tensors);
    for (size_t i = 0; i < m->n_tensors; i++) {
        ft_json_reader o = ft_json_read_element(root, "tensors", i);
        FT_TRY(parse_tensor(&o, m->header.state, &m->tensor[i]));
    }
    for (size_t i = 0; i < m->n_files; i++) {
        ft_json_reader o = ft_json_read_element(root, "files", i);
        FT_TRY(parse_file(&o, &m->file[i]));
    }
    return check_state_tensors(m, root);
}

static bool parse_state(const char *text, ft_artifact_state *state)
{
    for (size_t i = 0; i < FT_COUNT(states); i++)
        if (strcmp(text, states[i]) == 0) {
            *state = (ft_artifact_state) i;
            return true;
        }
    return false;
}

static ft_status parse_head(ft_artifact_header *h, const ft_json_reader *root)
{
    const char *text;
    size_t version;
    FT_TRY(ft_json_read_string(root, "format", &text));
    if (strcmp(text, "ft") != 0)
        return ft_json_fail_member(root, "format", "\"ft\"");
    FT_TRY(read_size(root, "version", &version));
    if (version != FT_ARTIFACT_VERSION)
        return ft_json_fail(root, FT_EUNSUPPORTED,
                            "format version %zu, this program reads version %d", version,
                            FT_ARTIFACT_VERSION);
    /* Before anything that such a feature may have changed. */
    const json_t *writer = json_object_get(json_object_get(root->json, "tool"), "version");
    h->required = json_object_get(root->json, "requires");
    FT_TRY(ft_features_check(h->required, ft_features, root->file, json_string_value(writer),
                             root->err));
    ft_json_reader tool, config;
    FT_TRY(ft_json_read_string(root, "state", &text));
    if (!parse_state(text, &h->state))
        return ft_json_fail_member(root, "state", "\"float\", \"blocks\" or \"int8\"");
    FT_TRY(ft_json_read_object(root, "tool", &tool));
    FT_TRY(read_identifier(&tool, "name", &h->tool));
    FT_TRY(read_identifier(root, "family", &h->family));
    FT_TRY(ft_json_read_object(root, "config", &config));
    h->config = config.json;
    h->recipe = json_object_get(root->json, "recipe");
    if (h->state != FT_ARTIFACT_FLOAT ? !json_is_object(h->recipe) : h->recipe != NULL)
        return ft_json_fail_member(root, "recipe",
                                   h->recipe == NULL ? "an object" : "none in a float artifact");
    h->provenance = json_object_get(root->json, "provenance");
    if (h->provenance != NULL && !json_is_object(h->provenance))
        return ft_json_fail_member(root, "provenance", "an object");
    return FT_OK;
}

ft_status ft_manifest_parse(ft_manifest *m, const char *label, const void *text, size_t bytes,
                            ft_error *err)
{
    *m = (ft_manifest){ 0 };
    ft_json_reader root = { .file = label, .err = err, .path = FT_MANIFEST_ENTRY ": " };
    FT_TRY(ft_json_load(&root, JSON_OBJECT, text, bytes, FT_ARTIFACT_MANIFEST_MAX_BYTES));
    m->json = root.json;
    ft_status rc = parse_head(&m->header, &root);
    if (rc == FT_OK)
        rc = parse_lists(m, &root);
    if (rc != FT_OK)
        ft_manifest_fini(m);
    return rc;
}

void ft_manifest_fini(ft_manifest *m)
{
    free(m->tensor);
    free(m->file);
    json_decref(m->json);
    *m = (ft_manifest){ 0 };
}
