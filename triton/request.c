/*
 * request.c - what a request says: texts and settings as JSON, tensors, and the outputs it wants.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "triton/ft_triton.h"

#include "runtime/mem.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Takes over the value, which is NULL for what JSON does not have. */
static ft_status set_value(ft_triton_call *call, const char *name, json_t *value, ft_error *err)
{
    return json_object_set_new(call->serving.values, name, value) == 0
               ? FT_OK
               : ft_fail(err, FT_EARG, "%s: is neither a finite number nor valid UTF-8", name);
}

static ft_status read_parameter(ft_triton_call *call, uint32_t index, ft_error *err)
{
    const char *name;
    const void *value;
    TRITONSERVER_ParameterType type;
    FT_TRY(ft_triton_check(
        TRITONBACKEND_RequestParameter(call->request, index, &name, &type, &value), err));
    if (strncmp(name, "triton_", strlen("triton_")) == 0)
        return FT_OK;
    return set_value(call, name,
                     type == TRITONSERVER_PARAMETER_INT    ? json_integer(*(const int64_t *) value)
                     : type == TRITONSERVER_PARAMETER_BOOL ? json_boolean(*(const bool *) value)
                     : type == TRITONSERVER_PARAMETER_DOUBLE ? json_real(*(const double *) value)
                                                             : json_string(value),
                     err);
}

/* ---- Inputs -------------------------------------------------------------------------------- */

typedef struct input {
    const char *name;
    TRITONSERVER_DataType type;
    ft_tensor tensor; /* without data: I32, I64, F32 or BOOL, which texts ignore */
    ft_serving_buffer content;
} input;

static ft_status read_buffer(input *in, TRITONBACKEND_Input *from, uint32_t index, ft_error *err)
{
    TRITONSERVER_MemoryType memory = 0;
    const void *data;
    uint64_t bytes;
    int64_t device = 0;
    FT_TRY(ft_triton_check(TRITONBACKEND_InputBuffer(from, index, &data, &bytes, &memory, &device),
                           err));
    if (memory == TRITONSERVER_MEMORY_GPU)
        return ft_fail(err, FT_EUNSUPPORTED, "%s: found memory of a GPU, expected CPU", in->name);
    return ft_serving_append(&in->content, data, bytes, err);
}

static ft_status read_content(input *in, TRITONBACKEND_Input *from, ft_error *err)
{
    const int64_t *shape;
    uint32_t num_dims, buffers;
    FT_TRY(ft_triton_check(TRITONBACKEND_InputProperties(from, &in->name, &in->type, &shape,
                                                         &num_dims, NULL, &buffers),
                           err));
    in->tensor.dtype = in->type == TRITONSERVER_TYPE_INT32   ? FT_I32
                       : in->type == TRITONSERVER_TYPE_INT64 ? FT_I64
                       : in->type == TRITONSERVER_TYPE_FP32  ? FT_F32
                                                             : FT_BOOL;
    for (uint32_t i = 0; i < num_dims && i < FT_MAX_DIMS; i++)
        in->tensor.dim[in->tensor.ndim++] = shape[i];
    for (uint32_t i = 0; i < buffers; i++)
        FT_TRY(read_buffer(in, from, i, err));
    if (in->type == TRITONSERVER_TYPE_BYTES || ft_tensor_bytes(&in->tensor) == in->content.bytes)
        return FT_OK;
    return ft_fail(err, FT_ESHAPE, "%s: found %zu bytes, expected %zu", in->name, in->content.bytes,
                   ft_tensor_bytes(&in->tensor));
}

static ft_status texts_of(json_t **out, const input *in, ft_error *err)
{
    const char *at = in->content.data, *end = at + in->content.bytes;
    *out = json_array();
    while (at < end) {
        size_t length = end - at < 4 ? SIZE_MAX : ft_load_le32(at);
        if (length > (size_t) (end - at) - 4)
            return ft_fail(err, FT_ESHAPE, "%s: a text is cut off", in->name);
        if (json_array_append_new(*out, json_stringn(at + 4, length)) != 0)
            return ft_fail(err, FT_EFORMAT, "%s: text %zu is not valid UTF-8", in->name,
                           json_array_size(*out));
        at += 4 + length;
    }
    return FT_OK;
}

static ft_status number_of(json_t **out, const input *in, ft_error *err)
{
    const void *data = in->content.data;
    if (ft_tensor_numel(&in->tensor) != 1)
        return ft_fail(err, FT_ESHAPE, "%s: found %zu elements, expected 1", in->name,
                       ft_tensor_numel(&in->tensor));
    *out = in->tensor.dtype == FT_F32   ? json_real((double) *(const float *) data)
           : in->tensor.dtype == FT_I32 ? json_integer(*(const int32_t *) data)
           : in->tensor.dtype == FT_I64 ? json_integer(*(const int64_t *) data)
                                        : json_boolean(*(const bool *) data);
    return FT_OK;
}

/* A tensor for the engine, or a value; a sequence batcher adds inputs that are neither. */
static ft_status use_input(ft_triton_call *call, input *in, ft_error *err)
{
    json_t *value = NULL;
    for (int i = 0; i < FT_IN_COUNT; i++)
        if (strcmp(ft_serving_tensor_name[i], in->name) == 0) {
            call->serving.input[i] = in->tensor;
            call->serving.input[i].data = in->content.data;
            in->content.data = NULL;
            return FT_OK;
        }
    if (ft_serving_find(call->serving.instance->shared->signature.inputs, in->name) < 0)
        return FT_OK;
    ft_status status =
        (in->type == TRITONSERVER_TYPE_BYTES ? texts_of : number_of)(&value, in, err);
    if (status == FT_OK)
        return set_value(call, in->name, value, err);
    json_decref(value);
    return status;
}

static ft_status read_input(ft_triton_call *call, uint32_t index, ft_error *err)
{
    input in = { .content.bytes = 0 };
    TRITONBACKEND_Input *from;
    FT_TRY(ft_triton_check(TRITONBACKEND_RequestInputByIndex(call->request, index, &from), err));
    ft_status status = read_content(&in, from, err);
    if (status == FT_OK)
        status = use_input(call, &in, err);
    free(in.content.data);
    return status;
}

/* Triton names all outputs for a client that names none. */
static ft_status read_output(ft_triton_call *call, uint32_t index, ft_error *err)
{
    const char *name;
    FT_TRY(ft_triton_check(TRITONBACKEND_RequestOutputName(call->request, index, &name), err));
    int found = ft_serving_find(call->serving.instance->shared->signature.outputs, name);
    call->serving.wanted |= found >= 0 ? 1u << found : 0;
    return FT_OK;
}

/* ---- Sequence and time --------------------------------------------------------------------- */

/* The correlation id as text; "": there is none. */
static void read_sequence(ft_serving_call *call, TRITONBACKEND_Request *request)
{
    const char *name = "";
    uint64_t number = 0;
    ft_triton_ignore(TRITONBACKEND_RequestCorrelationId(request, &number));
    if (number == 0)
        ft_triton_ignore(TRITONBACKEND_RequestCorrelationIdString(request, &name));
    if (number != 0)
        snprintf(call->sequence, sizeof call->sequence, "%" PRIu64, number);
    else
        snprintf(call->sequence, sizeof call->sequence, "%s", name);
}

static ft_status read_rest(ft_triton_call *call, ft_error *err)
{
    uint32_t flags;
    uint64_t timeout = 0;
    ft_triton_ignore(TRITONBACKEND_InferenceRequestTimeoutMicroseconds(call->request, &timeout));
    FT_TRY(ft_triton_check(TRITONBACKEND_RequestFlags(call->request, &flags), err));
    call->serving.timeout = (double) timeout * 1e-6;
    call->serving.starts_sequence = (flags & TRITON_SEQUENCE_START) != 0;
    call->serving.ends_sequence = (flags & TRITON_SEQUENCE_END) != 0;
    if (call->serving.instance->shared->signature.generates)
        read_sequence(&call->serving, call->request);
    return FT_OK;
}

ft_status ft_triton_call_read(ft_triton_call *call, ft_error *err)
{
    uint32_t inputs, parameters, outputs;
    FT_TRY(ft_triton_check(TRITONBACKEND_ResponseFactoryNew(&call->factory, call->request), err));
    FT_TRY(ft_triton_check(TRITONBACKEND_RequestInputCount(call->request, &inputs), err));
    FT_TRY(ft_triton_check(TRITONBACKEND_RequestParameterCount(call->request, &parameters), err));
    FT_TRY(ft_triton_check(TRITONBACKEND_RequestOutputCount(call->request, &outputs), err));
    call->serving.values = json_object();
    for (uint32_t i = 0; i < inputs; i++)
        FT_TRY(read_input(call, i, err));
    for (uint32_t i = 0; i < parameters; i++)
        FT_TRY(read_parameter(call, i, err));
    for (uint32_t i = 0; i < outputs; i++)
        FT_TRY(read_output(call, i, err));
    return read_rest(call, err);
}
