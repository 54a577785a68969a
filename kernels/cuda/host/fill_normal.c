/*
 * fill_normal.c - normally distributed numbers from cuRAND's Philox4x32-10.
 *
 * The device generator fills a buffer, which is copied to the caller.  cuRAND's host generator
 * gives the same numbers, but takes 22 ns for each, where ft-bench's own generator takes 5.  It
 * serves only where no device is open: in tests.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cuda/host/device.h"
#include "runtime/error.h"

#include <curand.h>
#include <stdlib.h>
#include <string.h>

/* Numbers of one call: even, because the Box-Muller transform makes pairs. */
enum { CAPACITY = 4 << 20 };

struct ft_cuda_generator {
    const ft_cuda_device_props *props; /* NULL: a host generator */
    curandGenerator_t curand;
    float *buffer; /* [CAPACITY], in device memory; a host generator: in host memory */
};

const char *ft_cuda_explain_curand(int status)
{
    switch ((curandStatus_t) status) {
    case CURAND_STATUS_SUCCESS:
        return "no error";
    case CURAND_STATUS_VERSION_MISMATCH:
        return "the library has another version than the header of this build";
    case CURAND_STATUS_NOT_INITIALIZED:
        return "the generator was not created";
    case CURAND_STATUS_ALLOCATION_FAILED:
        return "out of memory";
    case CURAND_STATUS_TYPE_ERROR:
        return "the library does not have this generator";
    case CURAND_STATUS_OUT_OF_RANGE:
        return "an argument is out of range";
    case CURAND_STATUS_LENGTH_NOT_MULTIPLE:
        return "the count is not even";
    case CURAND_STATUS_DOUBLE_PRECISION_REQUIRED:
        return "the device has no double precision";
    case CURAND_STATUS_LAUNCH_FAILURE:
        return "a kernel failed";
    case CURAND_STATUS_PREEXISTING_FAILURE:
        return "an earlier kernel failed";
    case CURAND_STATUS_INITIALIZATION_FAILED:
        return "CUDA could not be initialized";
    case CURAND_STATUS_ARCH_MISMATCH:
        return "the library has no code for the architecture of the device";
    case CURAND_STATUS_INTERNAL_ERROR:
        return "internal error of the library";
    }
    return "unknown error of the library";
}

ft_status ft_cuda_fail_curand(ft_error *err, const ft_cuda_device_props *props, int status,
                              const char *what)
{
    char device[32] = "cuda";
    if (props != NULL)
        snprintf(device, sizeof device, "cuda:%d", props->index);
    return ft_fail(err, status == CURAND_STATUS_ALLOCATION_FAILED ? FT_ENOMEM : FT_EDEVICE,
                   "%s: %s: cuRAND status %d: %s", device, what, status,
                   ft_cuda_explain_curand(status));
}

void ft_cuda_generator_free(ft_cuda_generator *generator)
{
    if (generator == NULL)
        return;
    if (generator->curand != NULL)
        (void) curandDestroyGenerator(generator->curand);
    if (generator->props == NULL)
        free(generator->buffer);
    else
        (void) cudaFree(generator->buffer);
    free(generator);
}

static ft_status allocate_buffer(ft_cuda_generator *generator, ft_error *err)
{
    size_t bytes = CAPACITY * sizeof *generator->buffer;
    if (generator->props != NULL)
        return ft_cuda_alloc((void **) &generator->buffer, generator->props, bytes,
                             "random numbers", err);
    generator->buffer = malloc(bytes);
    return generator->buffer != NULL
               ? FT_OK
               : ft_fail(err, FT_ENOMEM, "no memory for %d random numbers", CAPACITY);
}

static ft_status create(ft_cuda_generator *generator, ft_error *err)
{
    const curandRngType_t type = CURAND_RNG_PSEUDO_PHILOX4_32_10;
    FT_TRY(allocate_buffer(generator, err));
    curandStatus_t status = generator->props != NULL
                                ? curandCreateGenerator(&generator->curand, type)
                                : curandCreateGeneratorHost(&generator->curand, type);
    return status == CURAND_STATUS_SUCCESS
               ? FT_OK
               : ft_cuda_fail_curand(err, generator->props, (int) status, "random numbers");
}

static ft_status open_generator(ft_cuda_generator **out, const ft_cuda_device_props *props,
                                ft_error *err)
{
    ft_cuda_generator *generator = calloc(1, sizeof *generator);
    if (generator == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for a random number generator");
    generator->props = props;
    ft_status status = create(generator, err);
    if (status == FT_OK)
        *out = generator;
    else
        ft_cuda_generator_free(generator);
    return status;
}

/* The next `count` numbers, at most CAPACITY. */
static ft_status generate(const ft_cuda_generator *generator, float *out, size_t count, float mean,
                          float deviation, ft_error *err)
{
    size_t even = count + count % 2;
    curandStatus_t status =
        curandGenerateNormal(generator->curand, generator->buffer, even, mean, deviation);
    if (status != CURAND_STATUS_SUCCESS)
        return ft_cuda_fail_curand(err, generator->props, (int) status, "random numbers");
    if (generator->props == NULL) {
        memcpy(out, generator->buffer, count * sizeof *out);
        return FT_OK;
    }
    cudaError_t code =
        cudaMemcpy(out, generator->buffer, count * sizeof *out, cudaMemcpyDeviceToHost);
    return code == cudaSuccess ? FT_OK
                               : ft_cuda_fail(err, generator->props, (int) code, "random numbers");
}

static ft_status fill(const ft_cuda_generator *generator, float *out, size_t count, float mean,
                      float deviation, uint64_t seed, ft_error *err)
{
    curandStatus_t status = curandSetPseudoRandomGeneratorSeed(generator->curand, seed);
    if (status == CURAND_STATUS_SUCCESS)
        status = curandSetGeneratorOffset(generator->curand, 0);
    if (status != CURAND_STATUS_SUCCESS)
        return ft_cuda_fail_curand(err, generator->props, (int) status, "random numbers");
    for (size_t first = 0; first < count; first += CAPACITY)
        FT_TRY(generate(generator, out + first, ft_min_size(count - first, CAPACITY), mean,
                        deviation, err));
    return FT_OK;
}

ft_status ft_cuda_fill_normal(ft_device *device, float *out, size_t count, float mean,
                              float deviation, uint64_t seed, ft_error *err)
{
    if (device == NULL) {
        ft_cuda_generator *host;
        FT_TRY(open_generator(&host, NULL, err));
        ft_status status = fill(host, out, count, mean, deviation, seed, err);
        ft_cuda_generator_free(host);
        return status;
    }
    cudaError_t code = cudaSetDevice(device->props.index);
    if (code != cudaSuccess)
        return ft_cuda_fail(err, &device->props, (int) code, "random numbers");
    if (device->generator == NULL)
        FT_TRY(open_generator(&device->generator, &device->props, err));
    return fill(device->generator, out, count, mean, deviation, seed, err);
}
