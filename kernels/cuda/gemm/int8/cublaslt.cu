/*
 * cublaslt.cu - INT8 GEMM with cuBLASLt, COL32 x COL4_4R2_8C = COL32: an alternative to mma.sync on
 * Turing, Ampere and Ada.
 *
 * cuBLASLt writes int32 accumulators. A kernel before it converts x to COL32, one after it applies
 * the epilogue. Devices from sm_90 on do not support these layouts. There FT_CUDA_GEMM=cublaslt
 * runs an emulation for tests: x and w are converted to row-major and a row-major cuBLASLt GEMM
 * writes the accumulators in COL32, so that both kernels of this file are tested. It is slow.
 *
 * Descriptors are on the stack, nothing is allocated, and cuBLASLt gets no workspace.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/common.cuh"
#include "kernels/cuda/cuda.h"
#include "kernels/cuda/gemm/int8/store_out.cuh"
#include "kernels/layout.h"

#include <cublasLt.h>

enum { THREADS = 256 };

static size_t padded(size_t cols)
{
    return ft_layout_cols(FT_COL32, cols);
}

/* ---- Kernels before and after cuBLASLt ----------------------------------------------------- */

/*
 * x, row-major, to zero-padded COL32. A thread moves 16 values of one row; blockDim.x = 256; grid =
 * ceil(m * padded k / 16 / 256).
 */
__global__ void __launch_bounds__(THREADS)
    to_col32_kernel(int8_t *__restrict__ out, const int8_t *__restrict__ x, size_t m, size_t k,
                    bool aligned)
{
    size_t i = (size_t) blockIdx.x * THREADS + threadIdx.x;
    size_t row = i / 2 % m, col = i / 2 / m * 32 + i % 2 * 16;
    ft_pdl_wait();
    if (i / 2 / m * 32 >= k)
        return;
    if (aligned) {
        uint4 quantized = make_uint4(0, 0, 0, 0);
        if (col < k)
            quantized = *(const uint4 *) (x + row * k + col);
        *(uint4 *) (out + 16 * i) = quantized;
        return;
    }
    for (size_t j = 0; j < 16; j++)
        out[16 * i + j] = col + j < k ? x[row * k + col + j] : (int8_t) 0;
}

/*
 * Accumulators in COL32 to y. A thread computes 8 columns of one row; blockDim.x = 256; grid =
 * ceil(m * n / 8 / 256), n a multiple of 32.
 */
template <ft_epilogue epilogue>
__global__ void __launch_bounds__(THREADS)
    from_col32_kernel(const __grid_constant__ ft_cuda_gemm_args p, const int32_t *__restrict__ acc,
                      const ft_output_layout shape)
{
    size_t i = (size_t) blockIdx.x * THREADS + threadIdx.x;
    uint32_t row = (uint32_t) (i / 4 % p.m), col = (uint32_t) (i / 4 / p.m * 32 + i % 4 * 8);
    ft_output_x8 out;
    ft_pdl_wait();
    ft_pdl_launch_dependents();
    if (col >= p.n)
        return;
#pragma unroll
    for (uint32_t j = 0; j < 8; j++) {
        out.scale[j] = ft_column_scale(p, col + j);
        out.bias[j] = ft_column_bias(p, col + j);
    }
    int4 low = *(const int4 *) (acc + 8 * i), high = *(const int4 *) (acc + 8 * i + 4);
    const int32_t sum[8] = { low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w };
    ft_output_x8_init(out, p, shape, col);
    ft_output_x8_store<epilogue>(out, p, shape, row, sum);
}

/* ---- cuBLASLt ---------------------------------------------------------------------------- */

/* A matrix layout descriptor. */
typedef struct matrix {
    cublasLtMatrixLayoutOpaque_t layout;
    cublasStatus_t status;
} matrix;

static matrix describe(cudaDataType type, cublasLtOrder_t order, size_t rows, size_t cols,
                       size_t stride)
{
    matrix m;
    int32_t value = order;
    m.status = cublasLtMatrixLayoutInit(&m.layout, type, rows, cols, (int64_t) stride);
    if (m.status == CUBLAS_STATUS_SUCCESS)
        m.status = cublasLtMatrixLayoutSetAttribute(&m.layout, CUBLASLT_MATRIX_LAYOUT_ORDER, &value,
                                                    sizeof value);
    return m;
}

static matrix describe_col32(cudaDataType type, size_t rows, size_t cols)
{
    return describe(type, CUBLASLT_ORDER_COL32, rows, cols, 32 * rows);
}

static matrix describe_col4(size_t rows, size_t cols)
{
    return describe(CUDA_R_8I, CUBLASLT_ORDER_COL4_4R2_8C, rows, cols,
                    32 * ft_layout_rows(FT_COL4_4R2_8C, rows));
}

static matrix describe_row(cudaDataType type, size_t rows, size_t cols)
{
    return describe(type, CUBLASLT_ORDER_ROW, rows, cols, cols);
}

/* Exact int32 accumulation: c = a . b^T, or c = a^T . b if `first`. */
static cublasStatus_t describe_matmul(cublasLtMatmulDescOpaque_t *product, bool transpose_a)
{
    int32_t transposed = CUBLAS_OP_T;
    cublasStatus_t status = cublasLtMatmulDescInit(product, CUBLAS_COMPUTE_32I, CUDA_R_32I);
    if (status != CUBLAS_STATUS_SUCCESS)
        return status;
    return cublasLtMatmulDescSetAttribute(
        product, transpose_a ? CUBLASLT_MATMUL_DESC_TRANSA : CUBLASLT_MATMUL_DESC_TRANSB,
        &transposed, sizeof transposed);
}

static cublasStatus_t multiply(void *blas, void *stream, bool transpose_a, const int8_t *a,
                               matrix *a_matrix, const int8_t *b, matrix *b_matrix, int32_t *c,
                               matrix *c_matrix)
{
    cublasLtMatmulDescOpaque_t product;
    const int32_t one = 1, zero = 0;
    const matrix *all[] = { a_matrix, b_matrix, c_matrix };
    for (const matrix *m : all) {
        if (m->status != CUBLAS_STATUS_SUCCESS)
            return m->status;
    }
    cublasStatus_t status = describe_matmul(&product, transpose_a);
    if (status != CUBLAS_STATUS_SUCCESS)
        return status;
    return cublasLtMatmul((cublasLtHandle_t) blas, &product, &one, a, &a_matrix->layout, b,
                          &b_matrix->layout, &zero, c, &c_matrix->layout, c, &c_matrix->layout,
                          NULL, NULL, 0, (cudaStream_t) stream);
}

/* Layout conversion; values are scaled by 1 in float, which is exact for int8. */
static cublasStatus_t transform(void *blas, void *stream, void *out, matrix to, const void *in,
                                matrix from)
{
    cublasLtMatrixTransformDescOpaque_t desc;
    const float one = 1.0f, zero = 0.0f;
    cublasStatus_t status = to.status != CUBLAS_STATUS_SUCCESS ? to.status : from.status;
    if (status == CUBLAS_STATUS_SUCCESS)
        status = cublasLtMatrixTransformDescInit(&desc, CUDA_R_32F);
    if (status != CUBLAS_STATUS_SUCCESS)
        return status;
    return cublasLtMatrixTransform((cublasLtHandle_t) blas, &desc, &one, in, &from.layout, &zero,
                                   NULL, NULL, out, &to.layout, (cudaStream_t) stream);
}

/* ---- Scratch ------------------------------------------------------------------------------ */

/* COL32 copies of x and of the accumulators; row-major copies of x and w for the emulation only. */
typedef struct buffers {
    int8_t *x, *x_row, *w_row;
    int32_t *acc;
    size_t bytes;
} buffers;

/* The next buffer, 256-byte aligned; with `base` NULL only the size is counted. */
static char *carve(char *base, size_t *used, size_t bytes)
{
    char *memory = base == NULL ? NULL : base + *used;
    *used += (bytes + 255) / 256 * 256;
    return memory;
}

static buffers layout_scratch(void *scratch, bool has_imma, size_t m, size_t n, size_t k)
{
    buffers b = {};
    char *base = (char *) scratch;
    size_t used = 0;
    b.x = (int8_t *) carve(base, &used, m * padded(k));
    b.acc = (int32_t *) carve(base, &used, m * n * sizeof *b.acc);
    if (!has_imma) {
        b.x_row = (int8_t *) carve(base, &used, m * padded(k));
        b.w_row = (int8_t *) carve(base, &used, n * padded(k));
    }
    b.bytes = used;
    return b;
}

extern "C" size_t ft_cuda_gemm_cublaslt_scratch(const ft_cuda_device_props *props, size_t m,
                                                size_t n, size_t k)
{
    return layout_scratch(NULL, props->has_imma, m, n, k).bytes;
}

/* ---- GEMM ---------------------------------------------------------------------------------- */

static cublasStatus_t gemm_col32(void *stream, const ft_cuda_gemm_args *p, const buffers *b)
{
    matrix x = describe_col32(CUDA_R_8I, p->m, padded(p->k));
    matrix w = describe_col4(p->n, padded(p->k));
    matrix acc = describe_col32(CUDA_R_32I, p->m, p->n);
    return multiply(p->blas, stream, false, b->x, &x, p->w, &w, b->acc, &acc);
}

/* `count` matrices of one layout, `stride` elements apart. */
static void set_batch(matrix *m, size_t count, size_t stride)
{
    int32_t batch = (int32_t) count;
    int64_t offset = (int64_t) stride;
    if (m->status == CUBLAS_STATUS_SUCCESS)
        m->status = cublasLtMatrixLayoutSetAttribute(&m->layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT,
                                                     &batch, sizeof batch);
    if (m->status == CUBLAS_STATUS_SUCCESS)
        m->status = cublasLtMatrixLayoutSetAttribute(
            &m->layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &offset, sizeof offset);
}

/*
 * Emulation for devices without COL32 GEMM. They do not transform COL4_4R2_8C to row-major either,
 * so ft_cuda_relayout() does. Row-major matrices are transposed column-major ones, and a COL32
 * result is n / 32 row-major matrices of 32 columns, which a strided batch writes in place.
 */
static cublasStatus_t gemm_col32_emulated(void *stream, const ft_cuda_gemm_args *p,
                                          const buffers *b)
{
    size_t m = p->m, n = p->n, k = padded(p->k);
    matrix w = describe(CUDA_R_8I, CUBLASLT_ORDER_COL, k, 32, k);
    matrix x = describe(CUDA_R_8I, CUBLASLT_ORDER_COL, k, m, k);
    matrix acc = describe(CUDA_R_32I, CUBLASLT_ORDER_COL, 32, m, 32);
    set_batch(&w, n / 32, 32 * k);
    set_batch(&x, n / 32, 0);
    set_batch(&acc, n / 32, 32 * m);
    cublasStatus_t status = transform(p->blas, stream, b->x_row, describe_row(CUDA_R_8I, m, k),
                                      b->x, describe_col32(CUDA_R_8I, m, k));
    if (status == CUBLAS_STATUS_SUCCESS &&
        ft_cuda_relayout(stream, b->w_row, FT_ROW, p->w, FT_COL4_4R2_8C, n, k) != 0)
        status = CUBLAS_STATUS_EXECUTION_FAILED;
    if (status == CUBLAS_STATUS_SUCCESS)
        status = multiply(p->blas, stream, true, b->w_row, &w, b->x_row, &x, b->acc, &acc);
    return status;
}

/* Launched without PDL: cuBLASLt kernels do not wait for their predecessors. */
static int launch_to_col32(void *stream, const ft_cuda_gemm_args *p, const buffers *b)
{
    bool aligned = p->k % 16 == 0 && (uintptr_t) p->x % 16 == 0;
    return ft_launch(to_col32_kernel, dim3(ft_ceil_div(p->m * padded(p->k) / 16, THREADS)), THREADS,
                     0, stream, false, 1, b->x, p->x, p->m, p->k, aligned);
}

static int launch_from_col32(void *stream, const ft_cuda_gemm_args *p, const buffers *b)
{
    static void (*const kernel[])(const ft_cuda_gemm_args, const int32_t *,
                                  const ft_output_layout) = {
        from_col32_kernel<FT_EPILOGUE_NONE>,
        from_col32_kernel<FT_EPILOGUE_GELU>,
        from_col32_kernel<FT_EPILOGUE_ANY>,
    };
    return ft_launch(kernel[ft_epilogue_of(p->activation)],
                     dim3(ft_ceil_div(p->m * p->n / 8, THREADS)), THREADS, 0, stream, false, 1, *p,
                     b->acc, ft_output_layout_of(p));
}

static int error_of(cublasStatus_t status)
{
    switch (status) {
    case CUBLAS_STATUS_SUCCESS:
        return (int) cudaSuccess;
    case CUBLAS_STATUS_NOT_SUPPORTED:
    case CUBLAS_STATUS_ARCH_MISMATCH:
        return (int) cudaErrorNotSupported;
    case CUBLAS_STATUS_INVALID_VALUE:
        return (int) cudaErrorInvalidValue;
    default:
        return (int) cudaErrorUnknown;
    }
}

/* ------------------------------------------------------------------------------------------ */

extern "C" bool ft_cuda_gemm_cublaslt_probe(void *blas)
{
    enum { SIZE = 64 };
    cublasLtMatmulDescOpaque_t product;
    cublasLtMatmulPreferenceOpaque_t preference;
    cublasLtMatmulHeuristicResult_t result;
    int found = 0;
    matrix x = describe_col32(CUDA_R_8I, SIZE, SIZE), w = describe_col4(SIZE, SIZE);
    matrix acc = describe_col32(CUDA_R_32I, SIZE, SIZE);
    return x.status == CUBLAS_STATUS_SUCCESS && w.status == CUBLAS_STATUS_SUCCESS &&
           acc.status == CUBLAS_STATUS_SUCCESS &&
           describe_matmul(&product, false) == CUBLAS_STATUS_SUCCESS &&
           cublasLtMatmulPreferenceInit(&preference) == CUBLAS_STATUS_SUCCESS &&
           cublasLtMatmulAlgoGetHeuristic((cublasLtHandle_t) blas, &product, &x.layout, &w.layout,
                                          &acc.layout, &acc.layout, &preference, 1, &result,
                                          &found) == CUBLAS_STATUS_SUCCESS &&
           found > 0 && result.state == CUBLAS_STATUS_SUCCESS;
}

extern "C" bool ft_cuda_gemm_cublaslt_supports(const ft_cuda_device_props *props,
                                               const ft_cuda_gemm_args *p)
{
    return p->w != NULL && p->blas != NULL && p->n % 32 == 0 && p->scratch != NULL &&
           ft_cuda_gemm_cublaslt_scratch(props, p->m, p->n, p->k) <= p->scratch_bytes;
}

extern "C" int ft_cuda_gemm_cublaslt(const ft_cuda_device_props *props, void *stream,
                                     const ft_cuda_gemm_args *p)
{
    buffers b = layout_scratch(p->scratch, props->has_imma, p->m, p->n, p->k);
    int status = launch_to_col32(stream, p, &b);
    if (status == 0)
        status = error_of(props->has_imma ? gemm_col32(stream, p, &b)
                                          : gemm_col32_emulated(stream, p, &b));
    return status == 0 ? launch_from_col32(stream, p, &b) : status;
}
