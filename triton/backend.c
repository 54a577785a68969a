/*
 * backend.c - what Triton Inference Server calls: models, their instances and requests to them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "triton/ft_triton.h"

#include "runtime/mem.h"

#include <stdlib.h>

#pragma GCC visibility push(default)

/* ---- The backend --------------------------------------------------------------------------- */

TRITON(BACKEND_Initialize, TRITONBACKEND_Backend *backend)
{
    uint32_t major, minor;
    ft_error err;
    (void) backend;
    TRITONSERVER_Error *error = TRITONBACKEND_ApiVersion(&major, &minor);
    if (error != NULL || (major == TRITON_API_MAJOR && minor >= TRITON_API_MINOR))
        return error;
    (void) ft_fail(&err, FT_EUNSUPPORTED,
                   "found backend API %u.%u of the server, expected %d.%d or a later minor version",
                   major, minor, TRITON_API_MAJOR, TRITON_API_MINOR);
    return ft_triton_error(&err);
}

/* Without an instance_group a model runs on all GPUs, or on the CPU if there are none. */
TRITON(BACKEND_GetBackendAttribute, TRITONBACKEND_Backend *backend,
       TRITONBACKEND_BackendAttribute *attributes)
{
    ft_device_info devices[2];
    (void) backend;
    bool has_gpu = ft_devices(devices, 2) > 1 && devices[1].usable;
    return TRITONBACKEND_BackendAttributeAddPreferredInstanceGroup(
        attributes, has_gpu ? TRITON_KIND_GPU : TRITON_KIND_CPU, 1, NULL, 0);
}

/* ---- Models -------------------------------------------------------------------------------- */

TRITON(BACKEND_ModelInitialize, TRITONBACKEND_Model *model)
{
    ft_serving_model *opened;
    ft_error err;
    if (ft_triton_model_open(&opened, model, &err) == FT_OK)
        return TRITONBACKEND_ModelSetState(model, opened);
    ft_serving_model_close(opened);
    return ft_triton_error(&err);
}

TRITON(BACKEND_ModelFinalize, TRITONBACKEND_Model *model)
{
    void *state = NULL;
    TRITONSERVER_Error *error = TRITONBACKEND_ModelState(model, &state);
    ft_serving_model_close(state);
    return error;
}

/* ---- Instances ----------------------------------------------------------------------------- */

static ft_status open_instance(ft_serving_instance **out, TRITONBACKEND_ModelInstance *handle,
                               ft_error *err)
{
    TRITONBACKEND_Model *model;
    TRITONSERVER_Kind kind;
    void *shared;
    int32_t device;
    *out = NULL;
    FT_TRY(ft_triton_check(TRITONBACKEND_ModelInstanceModel(handle, &model), err));
    FT_TRY(ft_triton_check(TRITONBACKEND_ModelState(model, &shared), err));
    FT_TRY(ft_triton_check(TRITONBACKEND_ModelInstanceKind(handle, &kind), err));
    FT_TRY(ft_triton_check(TRITONBACKEND_ModelInstanceDeviceId(handle, &device), err));
    return ft_serving_instance_open(out, shared, kind == TRITON_KIND_GPU ? device : -1, err);
}

TRITON(BACKEND_ModelInstanceInitialize, TRITONBACKEND_ModelInstance *handle)
{
    ft_serving_instance *opened;
    ft_error err;
    if (open_instance(&opened, handle, &err) == FT_OK)
        return TRITONBACKEND_ModelInstanceSetState(handle, opened);
    ft_serving_instance_close(opened);
    return ft_triton_error(&err);
}

TRITON(BACKEND_ModelInstanceFinalize, TRITONBACKEND_ModelInstance *handle)
{
    void *instance = NULL;
    TRITONSERVER_Error *error = TRITONBACKEND_ModelInstanceState(handle, &instance);
    ft_serving_instance_close(instance);
    return error;
}

/* ---- Requests ------------------------------------------------------------------------------ */

static void execute(ft_triton_call *call)
{
    ft_error err;
    ft_status status = ft_triton_call_read(call, &err);
    ft_serving_run(&call->serving, status, &err);
}

/* Returns as soon as the engine has the requests, which the calls own; after an error Triton does.
 */
TRITON(BACKEND_ModelInstanceExecute, TRITONBACKEND_ModelInstance *handle,
       TRITONBACKEND_Request **requests, const uint32_t count)
{
    void *instance;
    TRITONSERVER_Error *error = TRITONBACKEND_ModelInstanceState(handle, &instance);
    ft_triton_call **calls = ft_calloc(count, sizeof *calls);
    bool complete = error == NULL && calls != NULL;
    for (uint32_t i = 0; i < count && complete; i++)
        complete = (calls[i] = ft_triton_call_new(handle, instance, requests[i])) != NULL;
    for (uint32_t i = 0; i < count && calls != NULL; i++) {
        if (complete)
            execute(calls[i]);
        else
            free(calls[i]);
    }
    free(calls);
    return complete || error != NULL
               ? error
               : TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_UNAVAILABLE, "no memory for requests");
}
