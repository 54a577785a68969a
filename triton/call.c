/*
 * call.c - a request of Triton: its responses, its end and its statistics.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "triton/ft_triton.h"

#include "runtime/mem.h"

#include <stdlib.h>
#include <string.h>

static const ft_triton_call *call_of(const ft_serving_call *call)
{
    return (const ft_triton_call *) call;
}

static bool is_cancelled(const ft_serving_call *call)
{
    bool cancelled = false;
    ft_triton_ignore(TRITONBACKEND_RequestIsCancelled(call_of(call)->request, &cancelled));
    return cancelled;
}

/* ---- Responses ----------------------------------------------------------------------------- */

static bool is_wanted(const ft_serving_call *call, const char *name)
{
    const int index = ft_serving_find(call->instance->shared->signature.outputs, name);
    return index >= 0 && (call->wanted & 1u << index) != 0;
}

static ft_status put(TRITONBACKEND_Response *response, const ft_serving_output *from, ft_error *err)
{
    TRITONSERVER_MemoryType memory = 0;
    TRITONBACKEND_Output *output;
    void *buffer;
    int64_t device = 0;
    const TRITONSERVER_DataType type = from->dtype == FT_F32   ? TRITONSERVER_TYPE_FP32
                                       : from->dtype == FT_I32 ? TRITONSERVER_TYPE_INT32
                                                               : TRITONSERVER_TYPE_BYTES;
    FT_TRY(ft_triton_check(TRITONBACKEND_ResponseOutput(response, &output, from->name, type,
                                                        from->shape, (uint32_t) from->num_dims),
                           err));
    FT_TRY(ft_triton_check(
        TRITONBACKEND_OutputBuffer(output, &buffer, from->bytes, &memory, &device), err));
    if (memory == TRITONSERVER_MEMORY_GPU)
        return ft_fail(err, FT_EUNSUPPORTED, "%s: found memory of a GPU, expected CPU", from->name);
    if (from->bytes > 0)
        memcpy(buffer, from->data, from->bytes);
    return FT_OK;
}

static ft_status send(ft_serving_call *call, const ft_serving_output *outputs, size_t count,
                      bool final, ft_error *err)
{
    const uint32_t flags = final ? TRITON_RESPONSE_FINAL : 0;
    TRITONBACKEND_ResponseFactory *factory = call_of(call)->factory;
    TRITONBACKEND_Response *response;
    ft_status status = FT_OK;
    if (count == 0)
        return ft_triton_check(TRITONBACKEND_ResponseFactorySendFlags(factory, flags), err);
    FT_TRY(ft_triton_check(TRITONBACKEND_ResponseNewFromFactory(&response, factory), err));
    for (size_t i = 0; i < count && status == FT_OK; i++)
        if (is_wanted(call, outputs[i].name))
            status = put(response, &outputs[i], err);
    if (status == FT_OK)
        return ft_triton_check(TRITONBACKEND_ResponseSend(response, flags, NULL), err);
    ft_triton_ignore(TRITONBACKEND_ResponseDelete(response));
    return status;
}

static void send_failure(const ft_triton_call *call)
{
    TRITONBACKEND_Response *response;
    TRITONSERVER_Error *error = ft_triton_error(&call->serving.failure);
    ft_error ignored;
    if (call->factory != NULL &&
        ft_triton_check(TRITONBACKEND_ResponseNewFromFactory(&response, call->factory), &ignored) ==
            FT_OK)
        ft_triton_ignore(TRITONBACKEND_ResponseSend(response, TRITON_RESPONSE_FINAL, error));
    TRITONSERVER_ErrorDelete(error);
}

/* ---- The end ------------------------------------------------------------------------------- */

static void report_times(const ft_triton_call *call, bool success)
{
    const ft_serving_call *s = &call->serving;
    uint64_t start = s->submitted != 0 ? s->submitted : call->began,
             end = s->computed != 0 ? s->computed : start, now = ft_serving_now();
    ft_triton_ignore(TRITONBACKEND_ModelInstanceReportStatistics(
        call->instance, call->request, success, call->began, start, end, now));
    if (success)
        ft_triton_ignore(TRITONBACKEND_ModelInstanceReportBatchStatistics(
            call->instance, s->rows, call->began, start, end, now));
}

static void end(ft_serving_call *serving)
{
    ft_triton_call *call = (ft_triton_call *) serving;
    const bool success = serving->failure.code == FT_OK;
    if (!success)
        send_failure(call);
    report_times(call, success);
    if (call->factory != NULL)
        ft_triton_ignore(TRITONBACKEND_ResponseFactoryDelete(call->factory));
    ft_triton_ignore(TRITONBACKEND_RequestRelease(call->request, TRITON_RELEASE_ALL));
    ft_serving_call_fini(serving);
    free(call);
}

ft_triton_call *ft_triton_call_new(TRITONBACKEND_ModelInstance *handle,
                                   ft_serving_instance *instance, TRITONBACKEND_Request *request)
{
    static const ft_serving_server server = { is_cancelled, send, end };
    ft_triton_call *call = ft_calloc(1, sizeof *call);
    if (call == NULL)
        return NULL;
    call->serving.server = &server;
    call->serving.instance = instance;
    call->instance = handle;
    call->request = request;
    call->began = ft_serving_now();
    return call;
}
