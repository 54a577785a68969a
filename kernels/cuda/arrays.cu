/*
 * arrays.cu - arrays of floats to codes and back, by kernels/quant.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/common.cuh"
#include "kernels/cuda/cuda.h"
#include "kernels/quant.h"

enum { THREADS = 256 };

/* One thread per element; blockDim.x = 256. */
__global__ void quantize_kernel(int8_t *__restrict__ codes, const float *__restrict__ x,
                                float inverse_scale, size_t n)
{
    size_t i = (size_t) blockIdx.x * THREADS + threadIdx.x;
    if (i < n)
        codes[i] = ft_quantize(x[i], inverse_scale);
}

/* One thread per element; blockDim.x = 256. */
__global__ void dequantize_kernel(float *__restrict__ out, const int8_t *__restrict__ codes,
                                  float scale, size_t n)
{
    size_t i = (size_t) blockIdx.x * THREADS + threadIdx.x;
    if (i < n)
        out[i] = (float) codes[i] * scale;
}

/* ------------------------------------------------------------------------------------------ */

extern "C" int ft_cuda_probe(void)
{
    cudaFuncAttributes attributes;
    return (int) cudaFuncGetAttributes(&attributes, quantize_kernel);
}

extern "C" int ft_cuda_quantize_array(void *stream, int8_t *codes, const float *x,
                                      float inverse_scale, size_t n)
{
    quantize_kernel<<<ft_blocks(n, THREADS), THREADS, 0, (cudaStream_t) stream>>>(codes, x,
                                                                                  inverse_scale, n);
    return (int) cudaGetLastError();
}

extern "C" int ft_cuda_dequantize_array(void *stream, float *out, const int8_t *codes, float scale,
                                        size_t n)
{
    dequantize_kernel<<<ft_blocks(n, THREADS), THREADS, 0, (cudaStream_t) stream>>>(out, codes,
                                                                                    scale, n);
    return (int) cudaGetLastError();
}
