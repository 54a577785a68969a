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

    json_t *json = json_pack("{ss, si, sO*, ss, s{ss, ss}, ss, sO, sO*, so, so}", "format", "ft",
                             "version", FT_ARTIFACT_VERSION, "requires", h->required, "state",
                             ft_artifact_state_name(h->state), "tool", "name", h->tool, "version",
                             ft_version(), "family", h->family, "config", h->config, "recipe",
                             h->recipe, "tensors", tensors, "files", files);
    *text = ft_json_dump(json, JSON_INDENT(1), bytes);
    json_decref(json);
    if (*text == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for a manifest of %zu tensors", m->n_tensors);
    return FT_OK;
}

/* ---- Reading ------------------------------------------------------------------------------ */

/* An object of the manifest, and its name in errors: "model.ft: manifest.json: tensors[3]". */
typedef struct {
    const json_t *json;
    const char *label;
    char where[32];
    ft_error *err;
} manifest_object;

static ft_status fail_field(const manifest_object *o, const char *key, const char *expected)
{
    return ft_fail(o->err, FT_EFORMAT, "%s: " FT_MANIFEST_ENTRY ": %s\"%s\": expected %s", o->label,
                   o->where, key, expected);
}

static ft_status get_string(const manifest_object *o, const char *key, const char **out)
{
    *out = json_string_value(json_object_get(o->json, key));
    return *out != NULL ? FT_OK : fail_field(o, key, "a string");
}

static ft_status get_word(const manifest_object *o, const char *key, const char **out)
{
    FT_TRY(get_string(o, key, out));
    return ft_identifier_is_valid(*out) ? FT_OK
                                        : fail_field(o, key, "at most 31 visible ASCII characters");
}

static ft_status get_size(const manifest_object *o, const char *key, size_t *out)
{
    const json_t *json = json_object_get(o->json, key);
    json_int_t value = json_integer_value(json);
    if (!json_is_integer(json) || value < 0 || (uintmax_t) value > SIZE_MAX)
        return fail_field(o, key, "a size");
    *out = (size_t) value;
    return FT_OK;
}

static ft_status get_digest(const manifest_object *o, uint8_t digest[FT_SHA256_BYTES])
{
    const char *text;
    FT_TRY(get_string(o, "sha256", &text));
    return ft_sha256_from_hex(text, digest) ? FT_OK
                                            : fail_field(o, "sha256", "64 hexadecimal digits");
}

static ft_status get_shape(const manifest_object *o, ft_artifact_tensor *t)
{
    const json_t *shape = json_object_get(o->json, "shape");
    if (!json_is_array(shape) || json_array_size(shape) > FT_MAX_DIMS)
        return fail_field(o, "shape", "at most 8 dimensions");
    t->ndim = (int) json_array_size(shape);
    for (int i = 0; i < t->ndim; i++) {
        const json_t *dim = json_array_get(shape, (size_t) i);
        if (!json_is_integer(dim))
            return fail_field(o, "shape", "integers");
        t->dim[i] = json_integer_value(dim);
    }
    return FT_OK;
}

/* The value of `key` must be prefix + name: the entry's name follows from the tensor's. */
static ft_status check_entry(const manifest_object *o, const char *key, const char *prefix,
                             const char *name)
{
    const char *entry;
    size_t skip = strlen(prefix);
    FT_TRY(get_string(o, key, &entry));
    if (strncmp(entry, prefix, skip) != 0 || strcmp(entry + skip, name) != 0)
        return ft_fail(o->err, FT_EFORMAT,
                       "%s: " FT_MANIFEST_ENTRY ": %s: \"%s\": found %.255s, expected %s%s",
                       o->label, name, key, entry, prefix, name);
    return FT_OK;
}

static ft_status check_size(const manifest_object *o, const ft_artifact_tensor *t)
{
    size_t expected;
    FT_TRY(ft_artifact_tensor_bytes(o->label, t, &expected, o->err));
    if (t->bytes == expected)
        return FT_OK;
    char shape[FT_SHAPE_TEXT];
    return ft_fail(o->err, FT_EFORMAT, "%s: %s: %zu bytes, but %s %s %s has %zu", o->label, t->name,
                   t->bytes, ft_dtype_name(t->dtype), ft_shape_text(shape, t->ndim, t->dim),
                   ft_layout_name(t->layout), expected);
}

/* Keys of groupwise matrices, which no other tensor may have. */
static ft_status parse_blocks(const manifest_object *o, ft_artifact_tensor *t)
{
    static const char *const keys[] = { "group", "zero", "activations" };
    bool groupwise = t->layout == FT_PANEL32;
    for (size_t i = 0; i < FT_COUNT(keys) && !groupwise; i++)
        if (json_object_get(o->json, keys[i]) != NULL)
            return ft_fail(o->err, FT_EFORMAT, "%s: %s: %s %s with \"%s\"", o->label, t->name,
                           ft_dtype_name(t->dtype), ft_layout_name(t->layout), keys[i]);
    if (!groupwise)
        return FT_OK;
    size_t group;
    FT_TRY(get_size(o, "group", &group));
    if (group > INT32_MAX)
        return fail_field(o, "group", "at most 2147483647");
    t->groupwise.group = (int32_t) group;
    t->has_zero_points = json_object_get(o->json, "zero") != NULL;
    t->groupwise.int8_activations = json_object_get(o->json, "activations") != NULL;
    if (t->groupwise.int8_activations) {
        const char *text;
        FT_TRY(get_string(o, "activations", &text));
        if (strcmp(text, INT8_ACTIVATIONS) != 0)
            return fail_field(o, "activations", "\"" INT8_ACTIVATIONS "\"");
    }
    return t->has_zero_points ? check_entry(o, "zero", FT_ZERO_PREFIX, t->name) : FT_OK;
}

static ft_status parse_tensor(const manifest_object *o, ft_artifact_state state,
                              ft_artifact_tensor *t)
{
    const char *text;
    FT_TRY(get_string(o, "name", &t->name));
    if (strlen(t->name) > FT_ARTIFACT_NAME_MAX || !ft_zip_name_is_valid(t->name, strlen(t->name)))
        return fail_field(o, "name", "a path of visible ASCII characters");
    FT_TRY(get_word(o, "role", &t->role));
    FT_TRY(get_string(o, "dtype", &text));
    if (!ft_dtype_parse(text, &t->dtype))
        return fail_field(o, "dtype", "a known dtype");
    FT_TRY(get_shape(o, t));
    FT_TRY(get_string(o, "layout", &text));
    if (!ft_layout_parse(text, &t->layout))
        return fail_field(o, "layout", "a known layout");
    FT_TRY(check_entry(o, "entry", FT_WEIGHT_PREFIX, t->name));
    FT_TRY(get_size(o, "offset", &t->offset));
    FT_TRY(get_size(o, "bytes", &t->bytes));
    FT_TRY(get_digest(o, t->sha256));
    FT_TRY(parse_blocks(o, t));
    FT_TRY(check_size(o, t));

    bool has_scale = json_object_get(o->json, "scale") != NULL;
    if (!ft_artifact_state_allows(state, t))
        return ft_fail(o->err, FT_EFORMAT, "%s: %s: %s in an artifact of state %s", o->label,
                       t->name, ft_dtype_name(t->dtype), ft_artifact_state_name(state));
    if (has_scale != (t->dtype == FT_I8 || t->layout == FT_PANEL32))
        return ft_fail(o->err, FT_EFORMAT, "%s: %s: %s %s scale", o->label, t->name,
                       ft_dtype_name(t->dtype), has_scale ? "with a" : "without");
    return has_scale ? check_entry(o, "scale", FT_SCALE_PREFIX, t->name) : FT_OK;
}

static ft_status parse_file(const manifest_object *o, ft_artifact_entry *f)
{
    FT_TRY(get_string(o, "name", &f->name));
    FT_TRY(get_size(o, "bytes", &f->bytes));
    return get_digest(o, f->sha256);
}

/* The array `key` of the manifest; all elements must be objects. */
static ft_status get_array(const manifest_object *root, const char *key, const json_t **array)
{
    *array = json_object_get(root->json, key);
    if (!json_is_array(*array))
        return fail_field(root, key, "an array");
    for (size_t i = 0; i < json_array_size(*array); i++)
        if (!json_is_object(json_array_get(*array, i)))
            return fail_field(root, key, "an array of objects");
    return FT_OK;
}

static manifest_object element(const manifest_object *root, const char *key, const json_t *array,
                               size_t index)
{
    manifest_object o = { .json = json_array_get(array, index),
                          .label = root->label,
                          .err = root->err };
    snprintf(o.where, sizeof o.where, "%s[%zu]: ", key, index);
    return o;
}

/* A quantized state needs at least one tensor quantized that way. */
static ft_status check_state_tensors(const ft_manifest *m, const manifest_object *root)
{
    ft_artifact_state state = m->header.state;
    bool found = state == FT_ARTIFACT_FLOAT;
    for (size_t i = 0; i < m->n_tensors && !found; i++)
        found = state == FT_ARTIFACT_INT8 ? m->tensor[i].dtype == FT_I8
                                          : m->tensor[i].layout == FT_PANEL32;
    return found ? FT_OK
                 : ft_fail(root->err, FT_EFORMAT, "%s: state %s, but no tensor is %s", root->label,
                           ft_artifact_state_name(state),
                           state == FT_ARTIFACT_INT8 ? "I8" : "in blocks");
}

static ft_status parse_lists(ft_manifest *m, const manifest_object *root)
{
    const json_t *tensors, *files;
    FT_TRY(get_array(root, "tensors", &tensors));
    FT_TRY(get_array(root, "files", &files));
    m->n_tensors = json_array_size(tensors);
    m->n_files = json_array_size(files);
    m->tensor = ft_calloc(m->n_tensors, sizeof *m->tensor);
    m->file = ft_calloc(m->n_files, sizeof *m->file);
    if (m->tensor == NULL || m->file == NULL)
        return ft_fail(root->err, FT_ENOMEM, "%s: no memory for %zu tensors", root->label,
                       m->n_tensors);
    for (size_t i = 0; i < m->n_tensors; i++) {
        manifest_object o = element(root, "tensors", tensors, i);
        FT_TRY(parse_tensor(&o, m->header.state, &m->tensor[i]));
    }
    for (size_t i = 0; i < m->n_files; i++) {
        manifest_object o = element(root, "files", files, i);
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

static ft_status parse_head(ft_artifact_header *h, const manifest_object *root)
{
    const char *text;
    size_t version;
    FT_TRY(get_string(root, "format", &text));
    if (strcmp(text, "ft") != 0)
        return fail_field(root, "format", "\"ft\"");
    FT_TRY(get_size(root, "version", &version));
    if (version != FT_ARTIFACT_VERSION)
        return ft_fail(root->err, FT_EUNSUPPORTED,
                       "%s: format version %zu, this program reads version %d", root->label,
                       version, FT_ARTIFACT_VERSION);
    /* Before anything that such a feature may have changed. */
    const manifest_object tool = { json_object_get(root->json, "tool"), root->label,
                                   "tool: ", root->err };
    h->required = json_object_get(root->json, "requires");
    FT_TRY(ft_features_check(h->required, ft_features, root->label,
                             json_string_value(json_object_get(tool.json, "version")), root->err));
    FT_TRY(get_string(root, "state", &text));
    if (!parse_state(text, &h->state))
        return fail_field(root, "state", "\"float\", \"blocks\" or \"int8\"");
    FT_TRY(get_word(&tool, "name", &h->tool));
    FT_TRY(get_word(root, "family", &h->family));
    h->config = json_object_get(root->json, "config");
    if (!json_is_object(h->config))
        return fail_field(root, "config", "an object");
    h->recipe = json_object_get(root->json, "recipe");
    if (h->state != FT_ARTIFACT_FLOAT ? !json_is_object(h->recipe) : h->recipe != NULL)
        return fail_field(root, "recipe",
                          h->recipe == NULL ? "an object" : "none in a float artifact");
    return FT_OK;
}

ft_status ft_manifest_parse(ft_manifest *m, const char *label, const void *text, size_t bytes,
                            ft_error *err)
{
    *m = (ft_manifest){ 0 };
    if (bytes > FT_ARTIFACT_MANIFEST_MAX_BYTES)
        return ft_fail(err, FT_ELIMIT, "%s: " FT_MANIFEST_ENTRY ": %zu bytes, at most %d", label,
                       bytes, FT_ARTIFACT_MANIFEST_MAX_BYTES);
    json_error_t why;
    m->json = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &why);
    if (m->json == NULL)
        return ft_fail(err, FT_EFORMAT, "%s: " FT_MANIFEST_ENTRY ": line %d: %s", label, why.line,
                       why.text);
    const manifest_object root = { .json = m->json, .label = label, .err = err };
    ft_status rc = FT_OK;
    if (!json_is_object(m->json))
        rc = ft_fail(err, FT_EFORMAT, "%s: " FT_MANIFEST_ENTRY ": expected an object", label);
    if (rc == FT_OK)
        rc = parse_head(&m->header, &root);
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
