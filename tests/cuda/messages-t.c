/*
 * messages-t.c - the messages where a GPU cannot be used; needs no GPU.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "tests/tap/tap.h"

#ifdef HAVE_CUDA

#include "kernels/cuda/host/device.h"
#include "runtime/error.h"
#include "runtime/graph/plan.h"

#include <string.h>

/* As large as the text of ft_device_info. */
static char text[sizeof((ft_device_info *) 0)->detail];

static void test_absence(void)
{
    char needed[64];
    snprintf(needed, sizeof needed, "this build needs %d.%d", CUDART_VERSION / 1000,
             CUDART_VERSION % 1000 / 10);
    ft_cuda_explain_no_device(cudaErrorInsufficientDriver, 11080, text, sizeof text);
    has(text, "the driver supports CUDA 11.8, ",
        "the message for an old driver names the CUDA version that it supports");
    has(text, needed, "the message for an old driver names the CUDA version that the build needs");
    ft_cuda_explain_no_device(cudaErrorInsufficientDriver, 0, text, sizeof text);
    is_str(text, "no CUDA device: no driver", "the message tells a missing driver from an old one");
    ft_cuda_explain_no_device(cudaErrorNoDevice, 13000, text, sizeof text);
    has(text, "no CUDA device: no CUDA-capable device",
        "the message for a driver without devices says so");
    ft_cuda_explain_no_device(cudaSuccess, 13000, text, sizeof text);
    is_str(text, "no CUDA device: the driver lists none",
           "the message says that no device exists even if the driver reports no error");
}

static void test_refusal(void)
{
    char name[256]; /* as long as the driver may make it */
    ft_cuda_explain_unusable("NVIDIA T4", cudaErrorNoKernelImageForDevice, text, sizeof text);
    is_str(text, "NVIDIA T4: this build has no code for its architecture",
           "the message for an architecture that was not built names the device");
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    ft_cuda_explain_unusable(name, cudaErrorIllegalAddress, text, sizeof text);
    has(text, ": the device's context is lost: this process cannot use it again",
        "the message for a lost context is complete even with the longest device name");
    ft_cuda_explain_unusable("NVIDIA T4", cudaErrorMemoryAllocation, text, sizeof text);
    is_str(text, "NVIDIA T4: out of memory", "the message for any other error quotes the driver");
}

static void test_failure(void)
{
    const ft_cuda_device_props props = { .index = 3 };
    ft_error err;
    is_int(ft_cuda_fail(&err, &props, cudaErrorLaunchFailure, "layer.0.ffn.up"), FT_EDEVICE,
           "a failed kernel returns FT_EDEVICE");
    has(err.text, "cuda:3: layer.0.ffn.up: ",
        "the message for a failed kernel names the device and the operation");
    has(err.text, "; the device's context is lost: this process cannot use it again",
        "the message for a failed kernel says that the context is lost");
    is_int(ft_cuda_fail(&err, &props, cudaErrorMemoryAllocation, "a graph"), FT_ENOMEM,
           "a failed allocation returns FT_ENOMEM");
    is_str(err.text, "cuda:3: a graph: out of memory",
           "the message for a failed allocation does not report a lost context");
    is_int(ft_cuda_fail(&err, &props, cudaErrorInvalidValue, "a run"), FT_EDEVICE,
           "a refused launch returns FT_EDEVICE");
    ok(strstr(err.text, "lost") == NULL,
       "the message for a refused launch does not report a lost context");
}

/* Whether two heads, `cols` columns in all, are supported: KV stored without queries, or attended.
 */
static ft_status accept_heads(ft_op_kind kind, int32_t cols, ft_error *err)
{
    ft_value value[2] = { { .name = "queries", .cols = cols }, { .name = "keys", .cols = cols } };
    ft_plan plan = { .value = value, .nvalue = 2 };
    ft_op op = ft_op_init(kind);
    op.attr.heads = op.attr.kv_heads = 2;
    op.in[0] = kind == FT_OP_STORE_KV ? -1 : 0;
    op.in[1] = kind == FT_OP_STORE_KV ? 1 : -1;
    return ft_backend_cuda.supports_op(&plan, &op, "a.ft", err);
}

static void test_heads(void)
{
    ft_error err;
    is_int(accept_heads(FT_OP_ATTEND_KV, 48, &err), FT_OK,
           "the CUDA backend supports attention with heads of 24 elements");
    is_int(accept_heads(FT_OP_STORE_KV, 32, &err), FT_OK,
           "the CUDA backend supports storing keys with heads of 16 elements without queries");
    is_int(accept_heads(FT_OP_ATTEND_KV, 40, &err), FT_EUNSUPPORTED,
           "the CUDA backend does not support attention with heads of 20 elements");
    is_str(err.text,
           "a.ft: attend_kv queries: heads of 20 elements, but the GPU kernels need a multiple of 8",
           "the message for unsupported heads names the operation and its queries");
    is_int(accept_heads(FT_OP_STORE_KV, 528, &err), FT_EUNSUPPORTED,
           "the CUDA backend does not support storing keys with heads of 264 elements");
    is_str(err.text,
           "a.ft: store_kv keys: heads of 264 elements, but the GPU kernels support at most 256",
           "the message for unsupported keys names the operation and its keys");
}

int main(void)
{
    test_absence();
    test_refusal();
    test_failure();
    test_heads();
    return done_testing();
}

#else

int main(void)
{
    skip_all("this build has no CUDA backend");
}

#endif
