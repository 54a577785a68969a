/*
 * tuning.c - read and write the tuning file.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/tuning/tuning.h"

#include "runtime/base/atomic_file.h"
#include "runtime/base/json_build.h"
#include "runtime/base/json_reader.h"
#include "runtime/base/read_file.h"
#include "runtime/error.h"
#include "runtime/mem.h"
#include "runtime/tensor.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { FORMAT = 2, MAX_DIMENSION = INT32_MAX, MAX_LINEARS = 16 };

static const char expected_file[] = "a tuning file of ft-bench --tune";

/* ---- Place -------------------------------------------------------------------------------- */

static ft_status join(char **out, const char *folder, const char *name, ft_error *err)
{
    size_t bytes = strlen(folder) + strlen(name) + 1;
    *out = malloc(bytes);
    if (*out == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for the path of the tuning file");
    snprintf(*out, bytes, "%s%s", folder, name);
    return FT_OK;
}

ft_status ft_tuning_path(char **out, bool *is_default, const char *given, ft_error *err)
{
    const char *path = given != NULL ? given : getenv("FT_TUNING"), *cache, *home;
    *out = NULL;
    *is_default = path == NULL;
    if (path != NULL)
        return *path != '\0' ? join(out, path, "", err) : FT_OK;
    cache = getenv("XDG_CACHE_HOME");
    if (cache != NULL && *cache == '/') /* others are ignored: XDG Base Directory Specification */
        return join(out, cache, "/ft/tuning.json", err);
    home = getenv("HOME");
    return home != NULL && *home == '/' ? join(out, home, "/.cache/ft/tuning.json", err) : FT_OK;
}

/* Create the folder of a file and the folder of that, where they are missing. */
static void make_folders(const char *path)
{
    char *folder = ft_strdup(path);
    char *name = folder != NULL ? strrchr(folder, '/') : NULL;
    if (name != NULL && name != folder) {
        *name = '\0';
        char *last = strrchr(folder, '/');
        if (last != NULL && last != folder) {
            *last = '\0';
            (void) mkdir(folder, 0700);
            *last = '/';
        }
        (void) mkdir(folder, 0700);
    }
    free(folder);
}

/* ---- Reading ------------------------------------------------------------------------------ */

/* The root and its format; the caller calls json_decref(root->json), also on failure. */
static ft_status load(ft_json_reader *root, const char *path, ft_error *err)
{
    char *text = NULL;
    size_t bytes = 0;
    int64_t format;
    *root = (ft_json_reader){ .file = path, .err = err };
    ft_status status = ft_file_read(&text, &bytes, path, FT_JSON_MAX_BYTES, err);
    if (status == FT_OK)
        status = ft_json_load(root, JSON_OBJECT, text, bytes, FT_JSON_MAX_BYTES);
    free(text);
    FT_TRY(status);
    if (ft_json_get(root, "format") == NULL || ft_json_get(root, "devices") == NULL)
        return ft_json_fail(root, FT_EFORMAT, "is not %s", expected_file);
    FT_TRY(ft_json_read_integer(root, "format", 0, INT64_MAX, &format));
    if (format != FORMAT)
        return ft_json_fail(root, FT_EUNSUPPORTED,
                            "format: found %lld, expected %d: remove the file and run ft-bench "
                            "--tune again",
                            (long long) format, FORMAT);
    return FT_OK;
}

static ft_status read_dimension(const ft_json_reader *in, const char *key, size_t *out)
{
    int64_t value = 0;
    FT_TRY(ft_json_read_integer(in, key, 1, MAX_DIMENSION, &value));
    *out = (size_t) value;
    return FT_OK;
}

static ft_status read_dtype(const ft_json_reader *in, const char *key, ft_dtype *out)
{
    const char *name;
    FT_TRY(ft_json_read_string(in, key, &name));
    return ft_dtype_parse(name, out) ? FT_OK : ft_json_fail_member(in, key, "a dtype");
}

static ft_status read_problem(ft_gemm_problem *p, const ft_json_reader *in)
{
    const char *activation;
    int64_t group, linears;
    FT_TRY(read_dimension(in, "rows", &p->m));
    FT_TRY(read_dimension(in, "n", &p->n));
    FT_TRY(read_dimension(in, "k", &p->k));
    FT_TRY(ft_json_read_integer(in, "linears", 1, MAX_LINEARS, &linears));
    FT_TRY(read_dtype(in, "x", &p->x));
    FT_TRY(read_dtype(in, "w", &p->w));
    FT_TRY(read_dtype(in, "out", &p->y));
    FT_TRY(ft_json_read_integer(in, "group", 0, MAX_DIMENSION, &group));
    FT_TRY(ft_json_read_bool(in, "zero_points", &p->zero_points));
    FT_TRY(ft_json_read_bool(in, "int8_activations", &p->int8_activations));
    FT_TRY(ft_json_read_bool(in, "batch_invariant", &p->batch_invariant));
    FT_TRY(ft_json_read_string(in, "activation", &activation));
    p->linears = (int) linears;
    p->group = (int32_t) group;
    return ft_activation_parse(activation, &p->activation)
               ? FT_OK
               : ft_json_fail_member(in, "activation", "an activation");
}

static ft_status read_gemm(ft_tuned_gemm *t, const ft_json_reader *in)
{
    const char *kernel;
    FT_TRY(read_problem(&t->problem, in));
    FT_TRY(ft_json_read_string(in, "kernel", &kernel));
    snprintf(t->kernel, sizeof t->kernel, "%s", kernel);
    return FT_OK;
}

static ft_status read_gemms(ft_tuning *out, const ft_json_reader *device)
{
    json_t *gemms;
    FT_TRY(ft_json_read_array(device, "gemms", &gemms));
    size_t count = json_array_size(gemms);
    out->gemm = ft_calloc(count, sizeof *out->gemm);
    if (out->gemm == NULL && count > 0)
        return ft_json_fail_no_memory(device);
    for (out->count = 0; out->count < count; out->count++) {
        const ft_json_reader in = ft_json_read_element(device, "gemms", out->count);
        FT_TRY(read_gemm(&out->gemm[out->count], &in));
    }
    return FT_OK;
}

/* Whether an element is for the device, with whatever driver; *driver and *version are its. */
static ft_status is_for(const ft_json_reader *in, const ft_device_identity *device, bool *found,
                        const char **driver, const char **version)
{
    const char *name;
    FT_TRY(ft_json_read_string(in, "device", &name));
    FT_TRY(ft_json_read_string(in, "driver", driver));
    FT_TRY(ft_json_read_string(in, "version", version));
    *found = strcmp(name, device->name) == 0;
    return FT_OK;
}

static ft_status find_device(ft_tuning *out, const ft_json_reader *root,
                             const ft_device_identity *device)
{
    json_t *devices;
    const char *driver, *version;
    bool found = false;
    FT_TRY(ft_json_read_array(root, "devices", &devices));
    for (size_t i = 0; i < json_array_size(devices); i++) {
        const ft_json_reader in = ft_json_read_element(root, "devices", i);
        FT_TRY(is_for(&in, device, &found, &driver, &version));
        if (!found)
            continue;
        if (strcmp(driver, device->driver) == 0 && strcmp(version, ft_version()) == 0)
            return read_gemms(out, &in);
        return ft_json_fail(root, FT_EUNSUPPORTED,
                            "is for %.95s with driver %.31s and FT %.31s, but this is %s and FT "
                            "%s: run ft-bench --tune again",
                            device->name, driver, version, device->driver, ft_version());
    }
    return ft_json_fail(root, FT_EUNSUPPORTED, "has no kernels for %s", device->name);
}

ft_status ft_tuning_read(ft_tuning *out, const char *path, const ft_device_identity *device,
                         ft_error *err)
{
    ft_json_reader root;
    *out = (ft_tuning){ .count = 0 };
    ft_status status = load(&root, path, err);
    if (status == FT_OK)
        status = find_device(out, &root, device);
    json_decref(root.json);
    if (status != FT_OK)
        ft_tuning_fini(out);
    return status;
}

void ft_tuning_fini(ft_tuning *tuning)
{
    free(tuning->gemm);
    *tuning = (ft_tuning){ .count = 0 };
}

/* ---- Writing ------------------------------------------------------------------------------ */

static json_t *json_of_gemm(const ft_tuned_gemm *gemm)
{
    const ft_gemm_problem *p = &gemm->problem;
    return json_pack("{sI, sI, sI, si, ss, ss, ss, si, sb, sb, sb, ss, ss}", "rows",
                     (json_int_t) p->m, "n", (json_int_t) p->n, "k", (json_int_t) p->k, "linears",
                     p->linears, "x", ft_dtype_name(p->x), "w", ft_dtype_name(p->w), "out",
                     ft_dtype_name(p->y), "group", (int) p->group, "zero_points", p->zero_points,
                     "int8_activations", p->int8_activations, "batch_invariant", p->batch_invariant,
                     "activation", ft_activation_name(p->activation), "kernel", gemm->kernel);
}

static bool has_shape(const ft_tuning *tuning, const ft_gemm_problem *p)
{
    for (size_t i = 0; i < tuning->count; i++)
        if (ft_gemm_problem_same_shape(&tuning->gemm[i].problem, p))
            return true;
    return false;
}

/* Of the kernels from before, those of other shapes stay. */
static json_t *json_of(const ft_tuning *before, const ft_tuning *tuning,
                       const ft_device_identity *device)
{
    json_t *gemms = json_array();
    for (size_t i = 0; i < before->count; i++)
        if (!has_shape(tuning, &before->gemm[i].problem))
            ft_json_append(&gemms, json_of_gemm(&before->gemm[i]));
    for (size_t i = 0; i < tuning->count; i++)
        ft_json_append(&gemms, json_of_gemm(&tuning->gemm[i]));
    return json_pack("{ss, ss, ss, so}", "device", device->name, "driver", device->driver,
                     "version", ft_version(), "gemms", gemms);
}

static bool is_missing(const char *path)
{
    struct stat about;
    return stat(path, &about) != 0 && errno == ENOENT;
}

/* The file's entries for other devices. */
static ft_status other_devices(json_t **out, const char *path, const ft_device_identity *device,
                               ft_error *err)
{
    ft_json_reader root;
    json_t *devices = NULL;
    ft_status status = load(&root, path, err);
    if (status == FT_OK)
        status = ft_json_read_array(&root, "devices", &devices);
    for (size_t i = 0; status == FT_OK && i < json_array_size(devices); i++) {
        const ft_json_reader in = ft_json_read_element(&root, "devices", i);
        const char *driver, *version;
        bool found = false;
        status = is_for(&in, device, &found, &driver, &version);
        if (status == FT_OK && !found)
            ft_json_append(out, json_incref(in.json));
    }
    json_decref(root.json);
    return status;
}

/* What the file has for this and for other devices; nothing if there is no file. */
static ft_status read_before(ft_tuning *before, json_t **others, const char *path,
                             const ft_device_identity *device, ft_error *err)
{
    *before = (ft_tuning){ .count = 0 };
    *others = json_array();
    if (is_missing(path))
        return FT_OK;
    FT_TRY(other_devices(others, path, device, err));
    ft_status status = ft_tuning_read(before, path, device, err);
    return status == FT_EUNSUPPORTED ? FT_OK : status; /* of another driver: they go */
}

static ft_status write_text(const char *path, const char *text, ft_error *err)
{
    ft_atomic_file *file;
    make_folders(path);
    FT_TRY(ft_atomic_file_open(&file, path, true, err));
    FILE *stream = ft_atomic_file_stream(file);
    ft_status status =
        stream != NULL ? FT_OK : ft_fail(err, FT_ENOMEM, "%s: no memory to write it", path);
    if (status == FT_OK) {
        fprintf(stream, "%s\n", text);
        status = ft_atomic_file_commit(file, err);
    }
    ft_atomic_file_close(file);
    return status;
}

ft_status ft_tuning_write(const ft_tuning *tuning, const char *path,
                          const ft_device_identity *device, ft_error *err)
{
    ft_tuning before;
    json_t *devices;
    ft_status status = read_before(&before, &devices, path, device, err);
    ft_json_append(&devices, json_of(&before, tuning, device));
    ft_tuning_fini(&before);
    json_t *root = json_pack("{si, so}", "format", FORMAT, "devices", devices);
    char *text = ft_json_dump(root, JSON_INDENT(1), NULL);
    if (status == FT_OK)
        status = text != NULL ? write_text(path, text, err)
                              : ft_fail(err, FT_ENOMEM, "%s: no memory to write it", path);
    free(text);
    json_decref(root);
    return status;
}

/* ---- Use ---------------------------------------------------------------------------------- */

static ft_status apply(const ft_backend *backend, ft_device *device, const char *path,
                       ft_error *err)
{
    ft_tuning tuning = { .count = 0 };
    ft_device_identity identity;
    FT_TRY(backend->identify(device, &identity, err));
    FT_TRY(ft_tuning_read(&tuning, path, &identity, err));
    ft_status status = backend->use_tuned(device, tuning.gemm, tuning.count, err);
    ft_tuning_fini(&tuning);
    return status;
}

void ft_tuning_apply(const ft_backend *backend, ft_device *device, const char *given,
                     char note[FT_TUNING_NOTE])
{
    char *path = NULL;
    bool is_default;
    ft_error err;
    note[0] = '\0';
    if (backend->use_tuned == NULL)
        return;
    ft_status status = ft_tuning_path(&path, &is_default, given, &err);
    bool is_absent = path == NULL || (is_default && is_missing(path));
    if (status == FT_OK && !is_absent)
        status = apply(backend, device, path, &err);
    if (status != FT_OK)
        snprintf(note, FT_TUNING_NOTE, "%.480s; ignored", err.text);
    free(path);
}
