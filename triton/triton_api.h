/*
 * triton_api.h - what the backend uses of the C API of Triton Inference Server, version 1.19.
 *
 * The server ships no header that C compiles.  It defines these functions and calls those of
 * backend.c, so names, types and values are its own.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_TRITON_TRITON_API_H
#define FT_TRITON_TRITON_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TRITON_API_MAJOR = 1, TRITON_API_MINOR = 19 };

typedef struct TRITONSERVER_Error TRITONSERVER_Error;
typedef struct TRITONSERVER_Message TRITONSERVER_Message;
typedef struct TRITONBACKEND_BackendAttribute TRITONBACKEND_BackendAttribute;
typedef struct TRITONBACKEND_Backend TRITONBACKEND_Backend;
typedef struct TRITONBACKEND_Model TRITONBACKEND_Model;
typedef struct TRITONBACKEND_ModelInstance TRITONBACKEND_ModelInstance;
typedef struct TRITONBACKEND_Request TRITONBACKEND_Request;
typedef struct TRITONBACKEND_Input TRITONBACKEND_Input;
typedef struct TRITONBACKEND_Output TRITONBACKEND_Output;
typedef struct TRITONBACKEND_Response TRITONBACKEND_Response;
typedef struct TRITONBACKEND_ResponseFactory TRITONBACKEND_ResponseFactory;

typedef enum TRITONSERVER_Error_Code {
    TRITONSERVER_ERROR_INTERNAL = 1,
    TRITONSERVER_ERROR_INVALID_ARG = 3,
    TRITONSERVER_ERROR_UNAVAILABLE = 4,
    TRITONSERVER_ERROR_UNSUPPORTED = 5,
    TRITONSERVER_ERROR_CANCELLED = 7,
} TRITONSERVER_Error_Code;

typedef enum TRITONSERVER_DataType {
    TRITONSERVER_TYPE_BOOL = 1,
    TRITONSERVER_TYPE_UINT64 = 5,
    TRITONSERVER_TYPE_INT32 = 8,
    TRITONSERVER_TYPE_INT64 = 9,
    TRITONSERVER_TYPE_FP32 = 11,
    TRITONSERVER_TYPE_BYTES = 13,
} TRITONSERVER_DataType;

typedef enum TRITONSERVER_ParameterType {
    TRITONSERVER_PARAMETER_STRING,
    TRITONSERVER_PARAMETER_INT,
    TRITONSERVER_PARAMETER_BOOL,
    TRITONSERVER_PARAMETER_DOUBLE,
} TRITONSERVER_ParameterType;

typedef enum TRITONSERVER_MemoryType { TRITONSERVER_MEMORY_GPU = 2 } TRITONSERVER_MemoryType;
typedef enum TRITONSERVER_Kind { TRITON_KIND_CPU = 1, TRITON_KIND_GPU = 2 } TRITONSERVER_Kind;
typedef enum TRITONBACKEND_ArtifactType { TRITON_FOLDER } TRITONBACKEND_ArtifactType;

enum { TRITON_SEQUENCE_START = 1, TRITON_SEQUENCE_END = 2 }; /* flags of a request */
enum { TRITON_RELEASE_ALL = 1, TRITON_RESPONSE_FINAL = 1 };

TRITONSERVER_Error *TRITONSERVER_ErrorNew(TRITONSERVER_Error_Code code, const char *text);
TRITONSERVER_Error_Code TRITONSERVER_ErrorCode(TRITONSERVER_Error *error);
const char *TRITONSERVER_ErrorMessage(TRITONSERVER_Error *error);
void TRITONSERVER_ErrorDelete(TRITONSERVER_Error *error);

/* All others return NULL, or an error that the caller owns. */
#define TRITON(function, ...) TRITONSERVER_Error *TRITON##function(__VA_ARGS__)

TRITON(SERVER_MessageNewFromSerializedJson, TRITONSERVER_Message **, const char *, size_t);
TRITON(SERVER_MessageSerializeToJson, TRITONSERVER_Message *, const char **, size_t *bytes);
TRITON(SERVER_MessageDelete, TRITONSERVER_Message *);

TRITON(BACKEND_ApiVersion, uint32_t *major, uint32_t *minor);
TRITON(BACKEND_BackendAttributeAddPreferredInstanceGroup, TRITONBACKEND_BackendAttribute *,
       TRITONSERVER_Kind, uint64_t count, const uint64_t *devices, uint64_t num_devices);

TRITON(BACKEND_ModelVersion, TRITONBACKEND_Model *, uint64_t *);
TRITON(BACKEND_ModelRepository, TRITONBACKEND_Model *, TRITONBACKEND_ArtifactType *, const char **);
TRITON(BACKEND_ModelAutoCompleteConfig, TRITONBACKEND_Model *, bool *);
TRITON(BACKEND_ModelConfig, TRITONBACKEND_Model *, uint32_t version, TRITONSERVER_Message **);
TRITON(BACKEND_ModelSetConfig, TRITONBACKEND_Model *, uint32_t version, TRITONSERVER_Message *);
TRITON(BACKEND_ModelState, TRITONBACKEND_Model *, void **);
TRITON(BACKEND_ModelSetState, TRITONBACKEND_Model *, void *);

TRITON(BACKEND_ModelInstanceModel, TRITONBACKEND_ModelInstance *, TRITONBACKEND_Model **);
TRITON(BACKEND_ModelInstanceKind, TRITONBACKEND_ModelInstance *, TRITONSERVER_Kind *);
TRITON(BACKEND_ModelInstanceDeviceId, TRITONBACKEND_ModelInstance *, int32_t *);
TRITON(BACKEND_ModelInstanceState, TRITONBACKEND_ModelInstance *, void **);
TRITON(BACKEND_ModelInstanceSetState, TRITONBACKEND_ModelInstance *, void *);

/* Times are nanoseconds of the monotonic clock. */
TRITON(BACKEND_ModelInstanceReportStatistics, TRITONBACKEND_ModelInstance *,
       TRITONBACKEND_Request *, bool success, uint64_t start, uint64_t compute_start,
       uint64_t compute_end, uint64_t end);
TRITON(BACKEND_ModelInstanceReportBatchStatistics, TRITONBACKEND_ModelInstance *, uint64_t size,
       uint64_t start, uint64_t compute_start, uint64_t compute_end, uint64_t end);

TRITON(BACKEND_RequestIsCancelled, TRITONBACKEND_Request *, bool *);
TRITON(BACKEND_RequestCorrelationId, TRITONBACKEND_Request *, uint64_t *);
TRITON(BACKEND_RequestCorrelationIdString, TRITONBACKEND_Request *, const char **);
TRITON(BACKEND_RequestFlags, TRITONBACKEND_Request *, uint32_t *);
TRITON(BACKEND_InferenceRequestTimeoutMicroseconds, TRITONBACKEND_Request *, uint64_t *);
TRITON(BACKEND_RequestParameterCount, TRITONBACKEND_Request *, uint32_t *);
TRITON(BACKEND_RequestParameter, TRITONBACKEND_Request *, uint32_t index, const char **name,
       TRITONSERVER_ParameterType *, const void **value);
TRITON(BACKEND_RequestInputCount, TRITONBACKEND_Request *, uint32_t *);
TRITON(BACKEND_RequestInputByIndex, TRITONBACKEND_Request *, uint32_t, TRITONBACKEND_Input **);
TRITON(BACKEND_RequestOutputCount, TRITONBACKEND_Request *, uint32_t *);
TRITON(BACKEND_RequestOutputName, TRITONBACKEND_Request *, uint32_t index, const char **);
TRITON(BACKEND_RequestRelease, TRITONBACKEND_Request *, uint32_t flags);
TRITON(BACKEND_InputProperties, TRITONBACKEND_Input *, const char **name, TRITONSERVER_DataType *,
       const int64_t **shape, uint32_t *num_dims, uint64_t *bytes, uint32_t *buffers);
TRITON(BACKEND_InputBuffer, TRITONBACKEND_Input *, uint32_t index, const void **, uint64_t *bytes,
       TRITONSERVER_MemoryType *, int64_t *device);

TRITON(BACKEND_ResponseFactoryNew, TRITONBACKEND_ResponseFactory **, TRITONBACKEND_Request *);
TRITON(BACKEND_ResponseFactoryDelete, TRITONBACKEND_ResponseFactory *);
TRITON(BACKEND_ResponseFactorySendFlags, TRITONBACKEND_ResponseFactory *, uint32_t flags);
TRITON(BACKEND_ResponseNewFromFactory, TRITONBACKEND_Response **, TRITONBACKEND_ResponseFactory *);
TRITON(BACKEND_ResponseDelete, TRITONBACKEND_Response *);
TRITON(BACKEND_ResponseOutput, TRITONBACKEND_Response *, TRITONBACKEND_Output **, const char *name,
       TRITONSERVER_DataType, const int64_t *shape, uint32_t num_dims);
TRITON(BACKEND_OutputBuffer, TRITONBACKEND_Output *, void **, uint64_t bytes,
       TRITONSERVER_MemoryType *, int64_t *device);
TRITON(BACKEND_ResponseSend, TRITONBACKEND_Response *, uint32_t flags, TRITONSERVER_Error *);

/* ---- What the server calls ----------------------------------------------------------------- */

TRITON(BACKEND_Initialize, TRITONBACKEND_Backend *);
TRITON(BACKEND_GetBackendAttribute, TRITONBACKEND_Backend *, TRITONBACKEND_BackendAttribute *);
TRITON(BACKEND_ModelInitialize, TRITONBACKEND_Model *);
TRITON(BACKEND_ModelFinalize, TRITONBACKEND_Model *);
TRITON(BACKEND_ModelInstanceInitialize, TRITONBACKEND_ModelInstance *);
TRITON(BACKEND_ModelInstanceFinalize, TRITONBACKEND_ModelInstance *);
TRITON(BACKEND_ModelInstanceExecute, TRITONBACKEND_ModelInstance *, TRITONBACKEND_Request **,
       const uint32_t count);

#endif
