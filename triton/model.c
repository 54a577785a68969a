/*
 * model.c - a version of a model: its file, its parameters and its configuration.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "triton/ft_triton.h"

#include "runtime/mem.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* ---- The file ------------------------------------------------------------------------------ */

/* The real path of the artifact, which must lie in the real folder of the model. */
static ft_status find_artifact(char **out, TRITONBACKEND_Model *handle, const json_t *config,
                               ft_error *err)
{
    const char *name = json_string_value(json_object_get(config, "default_model_filename"));
    TRITONBACKEND_ArtifactType type;
    const char *location;
    uint64_t version;
    char path[PATH_MAX], folder[PATH_MAX];
    FT_TRY(ft_triton_check(TRITONBACKEND_ModelVersion(handle, &version), err));
    FT_TRY(ft_triton_check(TRITONBACKEND_ModelRepository(handle, &type, &location), err));
    snprintf(path, sizeof path, "%s/%" PRIu64 "/%s", location, version,
             name == NULL || name[0] == '\0' ? "model.ft" : name);
    *out = realpath(path, NULL);
    if (*out == NULL || realpath(location, folder) == NULL)
        return ft_fail_errno(err, "%s", path);
    size_t length = strlen(folder);
    if (strncmp(*out, folder, length) == 0 && (*out)[length] == '/')
        return FT_OK;
    return ft_fail(err, FT_EARG, "%s: found %s, expected a file in %s", path, *out, folder);
}

/* ---- The configuration --------------------------------------------------------------------- */

static ft_status read_config(json_t **out, TRITONBACKEND_Model *handle, ft_error *err)
{
    TRITONSERVER_Message *message;
    const char *text;
    size_t bytes;
    FT_TRY(ft_triton_check(TRITONBACKEND_ModelConfig(handle, 1, &message), err));
    ft_status status =
        ft_triton_check(TRITONSERVER_MessageSerializeToJson(message, &text, &bytes), err);
    *out = status == FT_OK ? json_loadb(text, bytes, 0, NULL) : NULL;
    ft_triton_ignore(TRITONSERVER_MessageDelete(message));
    return status == FT_OK && *out == NULL ? ft_fail(err, FT_ENOMEM, "no memory for config.pbtxt")
                                           : status;
}

static ft_status write_config(const json_t *config, TRITONBACKEND_Model *handle, ft_error *err)
{
    TRITONSERVER_Message *message;
    char *text = json_dumps(config, 0);
    if (text == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for config.pbtxt");
    ft_status status = ft_triton_check(
        TRITONSERVER_MessageNewFromSerializedJson(&message, text, strlen(text)), err);
    free(text);
    FT_TRY(status);
    status = ft_triton_check(TRITONBACKEND_ModelSetConfig(handle, 1, message), err);
    ft_triton_ignore(TRITONSERVER_MessageDelete(message));
    return status;
}

/* The texts of `parameters`, by name. */
static json_t *parameters_of(const json_t *config)
{
    const char *name;
    json_t *parameter, *texts = json_object();
    json_object_foreach(json_object_get(config, "parameters"), name, parameter)
    {
        const char *text = json_string_value(json_object_get(parameter, "string_value"));
        json_object_set_new(texts, name, json_string(text != NULL ? text : ""));
    }
    return texts;
}

static ft_status open_model(ft_serving_model **out, TRITONBACKEND_Model *handle, json_t *config,
                            ft_error *err)
{
    ft_serving_options options;
    char *path = NULL;
    json_t *parameters = parameters_of(config);
    ft_status status = ft_serving_options_read(&options, parameters, err);
    if (status == FT_OK)
        status = find_artifact(&path, handle, config, err);
    if (status == FT_OK)
        status = ft_serving_model_open(out, path, &options, err);
    json_decref(parameters);
    free(path);
    return status;
}

static ft_status complete(json_t *config, ft_serving_model *m, TRITONBACKEND_Model *handle,
                          ft_error *err)
{
    bool completes = false;
    FT_TRY(ft_triton_complete(config, &m->signature, err));
    m->decoupled = json_is_true(
        json_object_get(json_object_get(config, "model_transaction_policy"), "decoupled"));
    FT_TRY(ft_triton_check(TRITONBACKEND_ModelAutoCompleteConfig(handle, &completes), err));
    return completes ? write_config(config, handle, err) : FT_OK;
}

ft_status ft_triton_model_open(ft_serving_model **out, TRITONBACKEND_Model *handle, ft_error *err)
{
    json_t *config;
    *out = NULL;
    FT_TRY(read_config(&config, handle, err));
    ft_status status = open_model(out, handle, config, err);
    if (status == FT_OK)
        status = complete(config, *out, handle, err);
    json_decref(config);
    return status;
}
