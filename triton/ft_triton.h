/*
 * ft_triton.h - declarations shared by the files of the backend.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_TRITON_FT_TRITON_H
#define FT_TRITON_FT_TRITON_H

#include "runtime/serving/serving.h"
#include "triton/triton_api.h"

/* Take over the result of a call of Triton; NULL is FT_OK. */
FT_MUST_USE ft_status ft_triton_check(TRITONSERVER_Error *error, ft_error *err);

/* The same where a failure can be neither reported nor undone. */
void ft_triton_ignore(TRITONSERVER_Error *error);

/* A new error of Triton: a full queue is UNAVAILABLE, what the client got wrong INVALID_ARG. */
TRITONSERVER_Error *ft_triton_error(const ft_error *err);

/* Open the artifact of a version of a model and complete the configuration. On failure *out is not
 * complete, but is to be closed. */
FT_MUST_USE ft_status ft_triton_model_open(ft_serving_model **out, TRITONBACKEND_Model *handle,
                                           ft_error *err);

/* Add missing settings to the configuration.  FT_EARG: it contradicts the artifact. */
FT_MUST_USE ft_status ft_triton_complete(json_t *config, const ft_serving_signature *model,
                                         ft_error *err);

/* A request of Triton. */
typedef struct ft_triton_call {
    ft_serving_call serving; /* the first member */
    TRITONBACKEND_ModelInstance *instance;
    TRITONBACKEND_Request *request;
    TRITONBACKEND_ResponseFactory *factory;
    uint64_t began; /* nanoseconds of the monotonic clock */
} ft_triton_call;

/* NULL: no memory.  The end of a call that runs frees it. */
ft_triton_call *ft_triton_call_new(TRITONBACKEND_ModelInstance *handle,
                                   ft_serving_instance *instance, TRITONBACKEND_Request *request);

/* Read inputs, parameters, sequence and wanted outputs. */
FT_MUST_USE ft_status ft_triton_call_read(ft_triton_call *call, ft_error *err);

#endif
