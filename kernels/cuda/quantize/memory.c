/*
 * memory.c - device memory of a weight quantizer, its copies, and its errors.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cuda/quantize/quantizer.h"
#include "runtime/error.h"

static const char what[] = "quantization of weights";

ft_status ft_quantizer_check(const ft_quantizer *q, int code, ft_error *err)
{
    return code == 0 ? FT_OK : ft_cuda_fail(err, &q->device->props, code, what);
}

ft_status ft_quantizer_select(const ft_quantizer *q, ft_error *err)
{
    return ft_quantizer_check(q, (int) cudaSetDevice(q->device->props.index), err);
}

ft_status ft_quantizer_reserve(const ft_quantizer *q, ft_cuda_buffer *buffer, size_t bytes,
                               ft_error *err)
{
    if (buffer->bytes >= bytes)
        return FT_OK;
    (void) cudaFree(buffer->data); /* waits for kernels that use it */
    *buffer = (ft_cuda_buffer){ 0 };
    FT_TRY(ft_cuda_alloc(&buffer->data, &q->device->props, bytes, what, err));
    buffer->bytes = bytes;
    return FT_OK;
}

ft_status ft_quantizer_upload(const ft_quantizer *q, void *to, const void *from, size_t bytes,
                              ft_error *err)
{
    return ft_quantizer_check(
        q, (int) cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, q->stream), err);
}

ft_status ft_quantizer_download(const ft_quantizer *q, void *to, const void *from, size_t bytes,
                                ft_error *err)
{
    int code = (int) cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, q->stream);
    if (code == 0)
        code = (int) cudaStreamSynchronize(q->stream);
    return ft_quantizer_check(q, code, err);
}

ft_status ft_quantizer_fill(const ft_quantizer *q, void *to, int byte, size_t bytes, ft_error *err)
{
    return ft_quantizer_check(q, (int) cudaMemsetAsync(to, byte, bytes, q->stream), err);
}
