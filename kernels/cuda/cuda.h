/*
 * cuda.h - internal interface of the CUDA backend: operation arguments and kernel launchers.
 *
 * Pointers named data, x, y, w, ... point to device memory. A launcher never synchronizes and never
 * allocates; it returns a cudaError_t as int, 0 on success. INT8 plans produce the same bits as the
 * CPU backend: kernels use kernels/quant.h and kernels/activation.h and add floats in the CPU's
 * order.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_CUDA_H
#define FT_KERNELS_CUDA_CUDA_H

#include "kernels/limits.h"
#include "kernels/view.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Devices ------------------------------------------------------------------------------ */

/* Weights, their scales, zero points and biases begin at multiples of so many bytes. */
enum { FT_CUDA_WEIGHT_ALIGN = 256 };

struct ft_cuda_tuned_gemm;

/* What kernels and their launchers ask about the device they run on. */
typedef struct ft_cuda_device_props {
    int index;      /* device index of the CUDA runtime */
    int capability; /* compute capability: 75, 80, 86, 89, 90, ... */
    int sm_count;
    size_t smem_bytes; /* bytes of shared memory that one thread block may request */
    bool has_wgmma;    /* this build contains sm_90a code and the device runs it */
    bool has_pdl;      /* programmatic dependent launch: sm_90 and later */
    bool has_imma;     /* cuBLASLt multiplies COL32 by COL4_4R2_8C: ft_cuda_gemm_cublaslt_probe() */
    const struct ft_cuda_tuned_gemm *tuned; /* [num_tuned]: of a tuning file */
    size_t num_tuned;
} ft_cuda_device_props;

/*
 * Stores in *built_for the architecture (75, 80, ...) that the code running on the current device
 * was compiled for. It is older than the device where the driver JIT-compiled PTX. Returns
 * cudaErrorNoKernelImageForDevice where no code fits.
 */
int ft_cuda_probe_arch(int *built_for);

/* ---- INT8 GEMM ---------------------------------------------------------------------------- */

enum { FT_CUDA_MAX_FUSED = 3 };

/*
 * y = act(x . w^T * (x_scale * w_scale) + bias) [+ residual]: exact int32 accumulation, then a
 * float or a requantized int8 output. The bits are those of kernels/cpu/gemm/int8/i8_epilogue.h.
 *
 * With several outputs the n columns are split into that many matrices, each with its own y and
 * scale. Query, key and value projections run as one GEMM this way, also with grouped-query
 * attention.
 */
typedef struct ft_cuda_gemm_args {
    size_t m, n, k;
    const int8_t *x;         /* [m, k] row-major, k bytes per row */
    const int8_t *w;         /* [n, k] in COL4_4R2_8C, or NULL: only the prepacked copy exists */
    const int8_t *prepacked; /* the same weights prepacked for wgmma (wgmma_gemm.cu), or NULL */
    float x_scale;           /* per-tensor scale of x ... */
    const float *x_scales;   /* ... or, not NULL, one scale per row: [m] */
    const float *w_scale;    /* [n] */
    const float *bias;       /* [n], or NULL */
    ft_activation activation;
    ft_dtype y_dtype;                     /* FT_I8: quantized; FT_F32 or FT_F16: float */
    int n_outputs;                        /* number of outputs, 1 .. FT_CUDA_MAX_FUSED */
    size_t width[FT_CUDA_MAX_FUSED];      /* columns of each output; they add up to n */
    void *y[FT_CUDA_MAX_FUSED];           /* each [m, width] */
    float y_inv_scale[FT_CUDA_MAX_FUSED]; /* FT_I8: 1 / scale of each y; else 0 */
    const void *residual; /* [m, n] of y_dtype (F32, F16), added after the activation, or NULL */
    void *blas;           /* cublasHandle_t, or NULL: then FT_CUDA_GEMM_CUBLASLT supports nothing */
    void *scratch;        /* ft_cuda_gemm_scratch() bytes, 256-byte aligned, or NULL */
    size_t scratch_bytes;
} ft_cuda_gemm_args;

/* INT8 GEMM kernels, in the order of ft_cuda_gemm_name(). */
typedef enum ft_cuda_gemm_kernel {
    FT_CUDA_GEMM_SIMT,     /* simt.cu: any shape, any device; reference for the other kernels */
    FT_CUDA_GEMM_MMA,      /* mma_gemm.cu: mma.sync on COL4_4R2_8C, from sm_80 on */
    FT_CUDA_GEMM_CUBLASLT, /* cublaslt.cu: cuBLASLt, COL32 x COL4_4R2_8C, sm_75 to sm_89 */
    FT_CUDA_GEMM_WGMMA,    /* wgmma_gemm.cu: both operands in shared memory, sm_90a */
    FT_CUDA_GEMM_GEMV,     /* gemv.cu: up to 8 rows, streams the prepacked weights once, sm_90a */
    FT_CUDA_GEMM_KERNELS
} ft_cuda_gemm_kernel;

/* Whether there are 1 .. FT_CUDA_MAX_FUSED outputs and their widths add up to n. */
bool ft_cuda_gemm_args_valid(const ft_cuda_gemm_args *p);

/* Whether each kernel supports this GEMM on this device, and its launcher. */
bool ft_cuda_gemm_simt_supports(const ft_cuda_device_props *props, const ft_cuda_gemm_args *p);
int ft_cuda_gemm_simt(const ft_cuda_device_props *props, void *stream, const ft_cuda_gemm_args *p);
bool ft_cuda_gemm_mma_supports(const ft_cuda_device_props *props, const ft_cuda_gemm_args *p);
int ft_cuda_gemm_mma(const ft_cuda_device_props *props, void *stream, const ft_cuda_gemm_args *p);
bool ft_cuda_gemm_cublaslt_supports(const ft_cuda_device_props *props, const ft_cuda_gemm_args *p);
int ft_cuda_gemm_cublaslt(const ft_cuda_device_props *props, void *stream,
                          const ft_cuda_gemm_args *p);
bool ft_cuda_gemm_wgmma_supports(const ft_cuda_device_props *props, const ft_cuda_gemm_args *p);
int ft_cuda_gemm_wgmma(const ft_cuda_device_props *props, void *stream, const ft_cuda_gemm_args *p);
bool ft_cuda_gemm_gemv_supports(const ft_cuda_device_props *props, const ft_cuda_gemm_args *p);
int ft_cuda_gemm_gemv(const ft_cuda_device_props *props, void *stream, const ft_cuda_gemm_args *p);

/*
 * GEMM of a fake-quantized plan: x [m, k] and w [n, k], row-major, hold quantized integers as float
 * (p->x and p->w are ignored). y of FT_F32 holds quantized values where y_inverse > 0, else
 * dequantized values.
 */
int ft_cuda_gemm_fake_quantized(void *stream, const ft_cuda_gemm_args *p, const float *x,
                                const float *w);

/* Whether cuBLASLt multiplies COL32 by COL4_4R2_8C on the device of this handle. */
bool ft_cuda_gemm_cublaslt_probe(void *blas);

/* Scratch bytes of FT_CUDA_GEMM_CUBLASLT for up to m rows. */
size_t ft_cuda_gemm_cublaslt_scratch(const ft_cuda_device_props *props, size_t m, size_t n,
                                     size_t k);

/*
 * Tile shapes of mma_gemm.cu: their number, and a launch with a given one; tests run every shape.
 */
int ft_cuda_gemm_mma_tile_count(void);
int ft_cuda_gemm_mma_launch_tile(int tile, const ft_cuda_device_props *props, void *stream,
                                 const ft_cuda_gemm_args *p);
void ft_cuda_gemm_mma_tile_size(int tile, int *tokens, int *columns);

/* The fastest of these tiles for this GEMM by a cost model, or -1. */
int ft_cuda_gemm_mma_select_tile(const ft_cuda_device_props *props, const ft_cuda_gemm_args *p);

/* Whether a thread block of this tile fits into the shared memory of the device. */
bool ft_cuda_gemm_mma_tile_fits(int tile, const ft_cuda_device_props *props);

/*
 * Prepacked weights of wgmma_gemm.cu: their size in bytes, and the kernel that packs them from
 * COL4_4R2_8C. Consecutive matrices of equal k whose n is a multiple of 32 form one matrix.
 */
size_t ft_cuda_prepacked_bytes(size_t n, size_t k);
int ft_cuda_prepack(void *stream, int8_t *prepacked, const int8_t *w, size_t n, size_t k);

/* The same layout on the host: byte offset of element (row, col). */
size_t ft_cuda_prepacked_offset(size_t row, size_t col, size_t n, size_t k);

/*
 * The fastest kernel for this shape on this device by the tuning file or else by a table, or the
 * one named by FT_CUDA_GEMM (gemm.cu).
 */
ft_cuda_gemm_kernel ft_cuda_gemm_select(const ft_cuda_device_props *props,
                                        const ft_cuda_gemm_args *p);

/* Whether FT_CUDA_GEMM names a kernel that supports this GEMM; it is stored in *how. */
bool ft_cuda_gemm_requested(const ft_cuda_device_props *props, const ft_cuda_gemm_args *p,
                            ft_cuda_gemm_kernel *kernel);

/*
 * The selection as text: "mma", or "plain: FT_CUDA_GEMM=wgmma does not support it"; always
 * NUL-terminated.
 */
void ft_cuda_gemm_explain(const ft_cuda_device_props *props, const ft_cuda_gemm_args *p, char *text,
                          size_t size);

/* Scratch bytes that any kernel selected for up to m rows may need; 0 where none does. */
size_t ft_cuda_gemm_scratch(const ft_cuda_device_props *props, size_t m, size_t n, size_t k);
bool ft_cuda_gemm_supports(ft_cuda_gemm_kernel kernel, const ft_cuda_device_props *props,
                           const ft_cuda_gemm_args *p);

/* With the tile of the tuning file, if it names this kernel, or the one that the kernel selects. */
int ft_cuda_gemm_launch(ft_cuda_gemm_kernel kernel, const ft_cuda_device_props *props, void *stream,
                        const ft_cuda_gemm_args *p);

/* ... and always with the latter. */
int ft_cuda_gemm_launch_kernel(ft_cuda_gemm_kernel kernel, const ft_cuda_device_props *props,
                               void *stream, const ft_cuda_gemm_args *p);
const char *ft_cuda_gemm_name(ft_cuda_gemm_kernel kernel);

/* ---- Float GEMM --------------------------------------------------------------------------- */

/* y = act(x . w^T + bias): x [m, k], w [n, k], y [m, n], all row-major. */
typedef struct ft_cuda_float_gemm_args {
    size_t m, n, k;
    const void *x, *w;
    ft_dtype x_dtype, w_dtype, y_dtype; /* each FT_F32, FT_F16 or FT_BF16 */
    const float *bias;                  /* [n], or NULL */
    ft_activation activation;
    void *y;
} ft_cuda_float_gemm_args;

/*
 * Batch-invariant GEMM: a row of y depends on its row of x alone and has the same bits whatever m
 * is and wherever the row is. (cuBLAS, which ft_cuda_linear uses, does not guarantee this.)
 * Accumulation is in float, in one fixed order: that of the tensor core instruction where x and w
 * share a 16-bit type (on sm_90a with split-K, wgmma_f16_gemm.h), that of linear_gemv.cu elsewhere.
 */
int ft_cuda_float_gemm_batch_invariant(const ft_cuda_device_props *props, void *stream,
                                       const ft_cuda_float_gemm_args *p);

/* ---- Attention ---------------------------------------------------------------------------- */

enum {
    FT_CUDA_QUERY_TILE = 64,    /* queries per tile */
    FT_CUDA_MAX_HEAD_SIZE = 256 /* elements of a head */
};

/* A tile of up to FT_CUDA_QUERY_TILE queries of one sequence; length 0: empty. */
typedef struct ft_cuda_query_tile {
    int32_t first, length; /* rows of the sequence */
    int32_t query;         /* first query, relative to `first` */
    int32_t sequence;
} ft_cuda_query_tile;

/* softmax(q . k^T * scale) . v per query tile and head. q, k, v, y: [tokens, heads * head_size]. */
typedef struct ft_cuda_attention_args {
    const ft_cuda_query_tile *blocks;
    size_t n_query_tiles;
    int heads, head_size;
    ft_dtype dtype; /* of q, k, v: FT_I8, FT_F32, FT_F16, FT_BF16 */
    size_t tokens, sequences; /* rows of q, k, v and y, and sequences that they belong to */
    const void *q, *k, *v;
    void *y;           /* of the same dtype; also FT_F32 when dtype is FT_I8 and y_inverse is 0 */
    float score_scale; /* multiplies the scores; includes the scales of q and k */
    float value_scale; /* INT8: scale of v */
    float y_inv_scale; /* INT8: 1 / scale of y; 0: y is F32 */
    const struct ft_cuda_counts *counts; /* histogram of the probabilities (FT_F32 only), or NULL */
} ft_cuda_attention_args;

int ft_cuda_attention_launch(const ft_cuda_device_props *props, void *stream,
                             const ft_cuda_attention_args *a);

/* ---- Counters ----------------------------------------------------------------------------- */

/*
 * Histogram of one calibration point in device memory. Every magnitude is counted by its key; there
 * is no exact tail.
 */
typedef struct ft_cuda_counts {
    unsigned long long *key;     /* [FT_COUNT_KEYS] */
    unsigned long long *special; /* zeros, NaNs, infinities */
    uint32_t *largest;           /* float bits of the largest finite magnitude */
} ft_cuda_counts;

int ft_cuda_count(void *stream, const ft_cuda_counts *counts, const float *x, size_t n);

/* ---- Operations --------------------------------------------------------------------------- */

/* The sequences of a forward pass. Rows beyond the batch, up to the bucket size, are padding. */
typedef struct ft_cuda_batch {
    size_t tokens, sequences;
    const int32_t *start; /* [sequences + 1]; padding sequences are empty */
    const ft_cuda_query_tile *blocks;
    size_t n_query_tiles;

    /* Plans with a KV cache: arrays of ft_batch on the device; zeros elsewhere. */
    const int32_t *seq_id, *n_past, *n_tokens, *slot, *pages;
    size_t max_pages;
    size_t context;  /* upper bound of the bucket; past holds the exact length of each sequence */
    size_t capacity; /* tokens per cache slot: ft_limits.context */
    bool decode_step;     /* one row per sequence, its token was sampled before: ft_batch */
    bool batch_invariant; /* float GEMMs must be batch-invariant */
    bool few_kv_pages;    /* prompts see at most ft_cuda_prefill_pages() */
    size_t selected;
    const int32_t *selected_rows;
    const ft_sampling_params *sampling; /* NULL: no sampling */
    const struct ft_beam_params *beams; /* [groups]; padding groups have no slot */
    size_t groups, widest;              /* beams of the widest group */

    /* Encoder-decoders. */
    const int32_t *cross_kv_last; /* [sequences]: index of the last source token of each sequence */
    const int32_t *cross_kv_pages;
    size_t max_cross_kv_pages;
    size_t cross_kv; /* upper bound of the bucket: tokens of the longest source */
    size_t beam_width; /* neighbouring sequences (beams) that share source tokens; 0 or 1: none */
} ft_cuda_batch;

/*
 * A sampled token and the number of the forward pass that produced it. Each 8-byte half is written
 * atomically.
 */
typedef struct ft_cuda_mailbox_entry {
    int32_t token;
    uint32_t run;
    float logprob;
    uint32_t run_copy;
} ft_cuda_mailbox_entry;

/* Mailbox in which the host polls for the tokens of a pass while the next one may already run. */
typedef struct ft_cuda_token_mailbox {
    ft_cuda_mailbox_entry *row; /* pinned, [2][capacity]: even and odd passes; NULL: disabled */
    size_t capacity;
    const uint32_t *run; /* device: number of this pass */
} ft_cuda_token_mailbox;

typedef struct ft_cuda_args {
    const ft_cuda_device_props *props;
    void *stream; /* cudaStream_t */
    void *blas;   /* cublasHandle_t, bound to the stream */
    const ft_op *op;
    ft_view in[FT_MAX_IN], out, quantized, second;
    ft_view state[FT_MAX_STATES];            /* all rows of the state */
    ft_rows per;                             /* what a row of in[0] is: token, sequence, ... */
    const ft_weight *weight[FT_MAX_WEIGHTS]; /* with device pointers; NULL: absent */
    const ft_cuda_batch *batch;
    const ft_cuda_counts *counts; /* histogram of the observed point (OBSERVE, or inner), or NULL */
    void *scratch;
    size_t scratch_bytes;
    uint32_t *counters; /* zero between kernels: a kernel that uses them resets them to zero */
    ft_cuda_token_mailbox mailbox;
} ft_cuda_args;

/*
 * Copy the inputs of a forward pass from pinned host memory (`from`, 16-byte aligned, `bytes` a
 * multiple of 16) to the device. Then increment *count on the device and store the same number in
 * *taken, which is pinned: the host may overwrite `from` again.
 */
typedef struct ft_cuda_inputs {
    void *to;
    const void *from;
    size_t bytes;
    uint32_t *count; /* [2]: passes, and finished thread blocks of this pass */
    uint32_t *consumed;
} ft_cuda_inputs;

int ft_cuda_copy_inputs(const ft_cuda_device_props *props, void *stream,
                        const ft_cuda_inputs *inputs);

/* Every operation: int ft_cuda_norm(const ft_cuda_args *). */
#define X(NAME, name, ...) int ft_cuda_##name(const ft_cuda_args *args);
#include "kernels/ops.def"
#undef X

/*
 * What an operation needs for a run within `limits`: ft_cuda_linear_workspace() and so on where
 * ops.def says OWN.
 */
typedef ft_workspace ft_cuda_workspace_fn(const ft_cuda_device_props *props, const ft_plan *plan,
                                          const ft_op *op, const ft_limits *limits);
#define FT_CUDA_DECLARE_OWN(name) ft_cuda_workspace_fn ft_cuda_##name##_workspace;
#define FT_CUDA_DECLARE_NONE(name)
#define X(NAME, name, READS, WRITES, STORAGE, WORK, RUNS, CPU, CUDA) FT_CUDA_DECLARE_##CUDA(name)
#include "kernels/ops.def"
#undef X

/* Pages of an int8 KV cache that a forward pass over prompts can copy to scratch memory. */
size_t ft_cuda_prefill_pages(const ft_limits *limits);

/* ---- Arrays ------------------------------------------------------------------------------- */

/* quantized[i] = ft_quantize(x[i], inverse_scale), n elements. */
int ft_cuda_quantize_array(void *stream, int8_t *quantized, const float *x, float inv_scale,
                           size_t n);

/* out[i] = quantized[i] * scale, n elements. */
int ft_cuda_dequantize_array(void *stream, float *out, const int8_t *quantized, float scale,
                             size_t n);

/*
 * Convert an int8 matrix [rows, cols] from one layout to another; out has ft_layout_bytes(to, ...)
 * bytes, padding is set to zero.
 */
int ft_cuda_relayout(void *stream, int8_t *out, ft_layout to, const int8_t *in, ft_layout from,
                     size_t rows, size_t cols);

/*
 * Read `bytes` of device memory, a multiple of 16. The achieved bandwidth is the roofline of
 * kernels that stream weights.
 */
int ft_cuda_read_bandwidth(const ft_cuda_device_props *props, void *stream, const void *data,
                           size_t bytes, uint32_t *sink);

#ifdef __cplusplus
}
#endif
#endif
