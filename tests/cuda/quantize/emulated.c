/*
 * emulated.c - the functions of CUDA, of cuBLAS and of launch.cu that the quantizer calls, on the
 * host.
 *
 * Device memory is host memory of exactly the requested size, filled with garbage, so that address
 * sanitizers and the comparison with the CPU find wrong indices. Threads of a kernel run backwards,
 * since no order is promised. The program's definitions take precedence over those of the shared
 * libraries.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#ifdef HAVE_CUDA

#include "kernels/cuda/quantize/launch.h"
#include "kernels/half.h"
#include "tests/tap/tap.h"

#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <stdlib.h>
#include <string.h>

/* ---- Kernels ------------------------------------------------------------------------------ */

#define X(name, threads)                                                                           \
    int ft_cuda_launch_##name(void *stream, const ft_cuda_##name##_args *args, size_t count)       \
    {                                                                                              \
        (void) stream;                                                                             \
        for (size_t index = count; index-- > 0;)                                                   \
            ft_cuda_##name##_at(args, index);                                                      \
        return 0;                                                                                  \
    }
#include "kernels/cuda/quantize/kernels.def"
#undef X

int ft_cuda_launch_cholesky(void *stream, const ft_cuda_cholesky_args *args)
{
    (void) stream;
    for (size_t col = 0; col <= args->count; col++) {
        for (size_t row = FT_CUDA_CHOLESKY_BLOCK; row-- > 0;)
            ft_cuda_cholesky_update(args, col, row);
        for (size_t row = FT_CUDA_CHOLESKY_BLOCK; row-- > 0 && col < args->count;)
            ft_cuda_cholesky_divide(args, col, row);
    }
    return 0;
}

/* ---- CUDA --------------------------------------------------------------------------------- */

#undef cudaMalloc
cudaError_t cudaMalloc(void **out, size_t bytes)
{
    *out = malloc(bytes);
    if (*out != NULL)
        memset(*out, 0xa5, bytes);
    return *out != NULL ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t cudaFree(void *memory)
{
    free(memory);
    return cudaSuccess;
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind)
{
    (void) kind;
    memcpy(to, from, bytes);
    return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
                            cudaStream_t stream)
{
    (void) stream;
    return cudaMemcpy(to, from, bytes, kind);
}

cudaError_t cudaMemsetAsync(void *to, int byte, size_t bytes, cudaStream_t stream)
{
    (void) stream;
    memset(to, byte, bytes);
    return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t *available, size_t *total)
{
    *available = *total = 0;
    return cudaSuccess;
}

cudaError_t cudaSetDevice(int device)
{
    (void) device;
    return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize(void)
{
    return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out, unsigned flags)
{
    (void) flags;
    *out = NULL;
    return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    (void) stream;
    return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    (void) stream;
    return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags)
{
    (void) stream, (void) event, (void) flags;
    return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *out, unsigned flags)
{
    (void) flags;
    *out = NULL;
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    (void) event, (void) stream;
    return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    (void) event;
    return cudaSuccess;
}

cudaError_t cudaGetLastError(void)
{
    return cudaSuccess;
}

const char *cudaGetErrorString(cudaError_t code)
{
    (void) code;
    return "an emulated error";
}

/* ---- cuBLAS: column-major ----------------------------------------------------------------- */

cublasStatus_t cublasCreate(cublasHandle_t *out)
{
    *out = NULL;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasDestroy(cublasHandle_t blas)
{
    (void) blas;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetStream(cublasHandle_t blas, cudaStream_t stream)
{
    (void) blas, (void) stream;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetWorkspace(cublasHandle_t blas, void *memory, size_t bytes)
{
    (void) blas, (void) memory, (void) bytes;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetAtomicsMode(cublasHandle_t blas, cublasAtomicsMode_t mode)
{
    (void) blas, (void) mode;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetMathMode(cublasHandle_t blas, cublasMath_t mode)
{
    (void) blas, (void) mode;
    return CUBLAS_STATUS_SUCCESS;
}

const char *cublasGetStatusString(cublasStatus_t status)
{
    (void) status;
    return "an emulated error";
}

static void must_not_be_transposed(cublasOperation_t a, cublasOperation_t b)
{
    if (a != CUBLAS_OP_N || b != CUBLAS_OP_N)
        bail_out("the emulated product does not transpose");
}

cublasStatus_t cublasDgemm(cublasHandle_t blas, cublasOperation_t op_a, cublasOperation_t op_b,
                           int m, int n, int k, const double *alpha, const double *a, int lda,
                           const double *b, int ldb, const double *beta, double *c, int ldc)
{
    (void) blas;
    must_not_be_transposed(op_a, op_b);
    for (size_t j = 0; j < (size_t) n; j++) {
        double *column = c + j * (size_t) ldc;
        for (int i = 0; i < m; i++)
            column[i] = *beta == 0.0 ? 0.0 : *beta * column[i];
        for (size_t l = 0; l < (size_t) k; l++)
            for (int i = 0; i < m; i++)
                column[i] += *alpha * a[l * (size_t) lda + (size_t) i] * b[j * (size_t) ldb + l];
    }
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSgemm(cublasHandle_t blas, cublasOperation_t op_a, cublasOperation_t op_b,
                           int m, int n, int k, const float *alpha, const float *a, int lda,
                           const float *b, int ldb, const float *beta, float *c, int ldc)
{
    (void) blas;
    must_not_be_transposed(op_a, op_b);
    for (size_t j = 0; j < (size_t) n; j++) {
        float *column = c + j * (size_t) ldc;
        for (int i = 0; i < m; i++)
            column[i] = *beta == 0.0f ? 0.0f : *beta * column[i];
        for (size_t l = 0; l < (size_t) k; l++)
            for (int i = 0; i < m; i++)
                column[i] += *alpha * a[l * (size_t) lda + (size_t) i] * b[j * (size_t) ldb + l];
    }
    return CUBLAS_STATUS_SUCCESS;
}

static float element(const void *data, cudaDataType type, size_t i)
{
    return ft_cuda_load_float(data,
                              type == CUDA_R_32F   ? FT_F32
                              : type == CUDA_R_16F ? FT_F16
                                                   : FT_BF16,
                              i);
}

/* c [m, n] = a [m, k] . b [n, k]^T, floats. */
cublasStatus_t cublasGemmEx(cublasHandle_t blas, cublasOperation_t op_a, cublasOperation_t op_b,
                            int m, int n, int k, const void *alpha, const void *a,
                            cudaDataType a_type, int lda, const void *b, cudaDataType b_type,
                            int ldb, const void *beta, void *c, cudaDataType c_type, int ldc,
                            cublasComputeType_t compute, cublasGemmAlgo_t algorithm)
{
    (void) blas, (void) alpha, (void) beta, (void) algorithm;
    if (op_a != CUBLAS_OP_N || op_b != CUBLAS_OP_T || a_type != b_type || c_type != CUDA_R_32F ||
        compute != CUBLAS_COMPUTE_32F)
        bail_out("the emulated product multiplies by a transpose, in float32");
    float *row = malloc((size_t) m * sizeof *row);
    for (size_t j = 0; j < (size_t) n; j++)
        memset((float *) c + j * (size_t) ldc, 0, (size_t) m * sizeof(float));
    for (size_t l = 0; l < (size_t) k; l++) {
        for (size_t i = 0; i < (size_t) m; i++)
            row[i] = element(a, a_type, l * (size_t) lda + i);
        for (size_t j = 0; j < (size_t) n; j++) {
            float factor = element(b, b_type, l * (size_t) ldb + j);
            float *column = (float *) c + j * (size_t) ldc;
            for (int i = 0; i < m; i++)
                column[i] += row[i] * factor;
        }
    }
    free(row);
    return CUBLAS_STATUS_SUCCESS;
}

/* c [n, n] += alpha a [n, k] a^T, the lower triangle. */
cublasStatus_t cublasDsyrk(cublasHandle_t blas, cublasFillMode_t fill, cublasOperation_t op, int n,
                           int k, const double *alpha, const double *a, int lda, const double *beta,
                           double *c, int ldc)
{
    (void) blas;
    if (fill != CUBLAS_FILL_MODE_LOWER || op != CUBLAS_OP_N || *beta < 1.0 || *beta > 1.0)
        bail_out("the emulated product adds to a lower triangle");
    for (size_t l = 0; l < (size_t) k; l++)
        for (size_t j = 0; j < (size_t) n; j++)
            for (size_t i = j; i < (size_t) n; i++)
                c[j * (size_t) ldc + i] +=
                    *alpha * a[l * (size_t) lda + i] * a[l * (size_t) lda + j];
    return CUBLAS_STATUS_SUCCESS;
}

/* One column of b becomes t^-1 b or t^-T b, for a lower triangle t [n, n]; `step` between elements.
 */
static void solve_column(const double *t, size_t ldt, size_t n, bool transposed, double *b,
                         size_t step)
{
    for (size_t at = 0; at < n; at++) {
        size_t i = transposed ? n - 1 - at : at;
        double sum = b[i * step];
        for (size_t l = transposed ? i + 1 : 0; l < (transposed ? n : i); l++)
            sum -= (transposed ? t[i * ldt + l] : t[l * ldt + i]) * b[l * step];
        b[i * step] = sum / t[i * ldt + i];
    }
}

/* b [m, n] = t^-1 b or t^-T b, or from the right b t^-T, which is the transpose of t^-1 b^T. */
cublasStatus_t cublasDtrsm(cublasHandle_t blas, cublasSideMode_t side, cublasFillMode_t fill,
                           cublasOperation_t op, cublasDiagType_t diagonal, int m, int n,
                           const double *alpha, const double *t, int ldt, double *b, int ldb)
{
    (void) blas, (void) alpha;
    bool right = side == CUBLAS_SIDE_RIGHT;
    if (fill != CUBLAS_FILL_MODE_LOWER || diagonal != CUBLAS_DIAG_NON_UNIT ||
        (right && op != CUBLAS_OP_T))
        bail_out("the emulated solver does not have this case");
    for (int i = 0; i < (right ? m : n); i++)
        solve_column(t, (size_t) ldt, (size_t) (right ? n : m), !right && op == CUBLAS_OP_T,
                     right ? b + i : b + (size_t) i * (size_t) ldb, right ? (size_t) ldb : 1);
    return CUBLAS_STATUS_SUCCESS;
}

#endif
