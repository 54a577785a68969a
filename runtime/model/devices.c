/*
 * devices.c - the list of backends.  The only file that depends on HAVE_CUDA.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/model/devices.h"

#include "runtime/error.h"
#include "runtime/mem.h"

#include <stdlib.h>
#include <string.h>

static const ft_backend *const backends[] = {
    &ft_backend_cpu,
#ifdef HAVE_CUDA
    &ft_backend_cuda,
#endif
};

size_t ft_devices(ft_device_info *out, size_t capacity)
{
    size_t count = 0;
    ft_device_info info;
    if (out == NULL)
        capacity = 0;
    for (size_t b = 0; b < FT_COUNT(backends); b++) {
        bool more = true;
        for (int index = 0; more; index++) {
            memset(&info, 0, sizeof info);
            more = backends[b]->describe(index, &info);
            /* A backend without devices gives the reason in a single entry. */
            if ((more || index == 0) && count++ < capacity)
                out[count - 1] = info;
        }
    }
#ifndef HAVE_CUDA
    info = (ft_device_info){ "cuda", "this build has no CUDA backend", false };
    if (count++ < capacity)
        out[count - 1] = info;
#endif
    return count;
}

/* Split "cuda:1" into backend name and index; false for an invalid index. */
static bool parse_name(const char *name, size_t *length, int *index)
{
    *length = strcspn(name, ":");
    *index = 0;
    if (name[*length] == '\0')
        return true;
    char *end;
    long number = strtol(name + *length + 1, &end, 10);
    *index = (int) number;
    return end != name + *length + 1 && *end == '\0' && number >= 0 && number < 1024;
}

static bool equals(const char *name, size_t length, const char *word)
{
    return strlen(word) == length && strncmp(name, word, length) == 0;
}

ft_status ft_device_name_check(const char *name, ft_error *err)
{
    size_t length;
    int index;
    if (parse_name(name, &length, &index) &&
        (equals(name, length, "cpu") || equals(name, length, "cuda")))
        return FT_OK;
    return ft_fail(err, FT_EARG, "device %s: unknown, expected \"cpu\" or \"cuda:N\"", name);
}

ft_status ft_device_open(const ft_backend **backend, ft_device **device, const char *name,
                         ft_error *err)
{
    size_t length;
    int index;
    if (name == NULL)
        name = "cpu";
    FT_TRY(ft_device_name_check(name, err));
    parse_name(name, &length, &index);
    for (size_t b = 0; b < FT_COUNT(backends); b++)
        if (equals(name, length, backends[b]->name)) {
            *backend = backends[b];
            return backends[b]->open(device, index, err);
        }
    return ft_fail(err, FT_EDEVICE,
                   "device %s: this build has no CUDA backend; install the CUDA Toolkit (nvcc, "
                   "cuBLAS, cuRAND), then run configure --with-cuda and make",
                   name);
}
