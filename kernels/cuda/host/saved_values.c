/*
 * saved_values.c - copies of values in device memory, for ft_backend.save and restore.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cuda/host/exec.h"
#include "runtime/error.h"

ft_status ft_cuda_alloc_saved(ft_exec *exec, void **out, size_t bytes, ft_error *err)
{
    return ft_cuda_alloc(out, &exec->device->props, bytes, "activation checkpoints", err);
}

void ft_cuda_free_saved(void *saved)
{
    (void) cudaFree(saved);
}

static size_t row_bytes(const ft_value *value, size_t rows)
{
    return rows * (size_t) value->cols * ft_dtype_size(value->dtype);
}

/* Puts a copy on the stream of the forward passes. */
static ft_status copy(const ft_exec *exec, const ft_value *v, void *to, const void *from,
                      size_t bytes, ft_error *err)
{
    int code = (int) cudaSetDevice(exec->device->props.index);
    if (code == 0)
        code = (int) cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, exec->stream);
    return code == 0 ? FT_OK : ft_cuda_fail(err, &exec->device->props, code, v->name);
}

ft_status ft_cuda_save(const ft_exec *exec, int value, void *to, size_t rows, ft_error *err)
{
    const ft_value *v = &exec->plan->value[value];
    size_t bytes = row_bytes(v, rows);
    if (v->dynamic)
        FT_TRY(copy(exec, v, (char *) to + ft_round_up(bytes, 64), ft_cuda_row_scales(exec, v),
                    rows * sizeof(float), err));
    return copy(exec, v, to, exec->arena + v->offset, bytes, err);
}

ft_status ft_cuda_restore(ft_exec *exec, int value, const void *from, size_t rows, ft_error *err)
{
    const ft_value *v = &exec->plan->value[value];
    size_t bytes = row_bytes(v, rows);
    if (v->dynamic)
        FT_TRY(copy(exec, v, ft_cuda_row_scales(exec, v),
                    (const char *) from + ft_round_up(bytes, 64), rows * sizeof(float), err));
    return copy(exec, v, exec->arena + v->offset, from, bytes, err);
}
