/*
 * cuda.h - inside the CUDA backend: what an operation gets, and who launches what.
 *
 * Pointers called data, x, y, w, ... are to device memory.  A launcher never synchronizes and never
 * allocates; it returns cudaError_t as int, 0 for success.  int8 plans give the bits of the CPU
 * backend: kernels use kernels/quant.h and kernels/activation.h and add floats in the CPU's order.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_CUDA_H
#define FT_KERNELS_CUDA_CUDA_H

#include "kernels/op.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Devices ------------------------------------------------------------------------------ */

/* What kernels and their launchers ask about the device they run on. */
typedef struct ft_cuda_chip {
    int index;      /* of the CUDA runtime */
    int capability; /* 75, 80, 86, 89, 90, ... */
    int multiprocessors;
    size_t shared;  /* bytes of shared memory that one block may ask for */
    bool has_wgmma; /* sm_90a code is in this build and the device runs it */
    bool overlaps;  /* launches may begin before their predecessor ends (from sm_90 on) */
    bool has_imma;  /* cuBLASLt multiplies COL32 by COL4_4R2_8C: ft_cuda_gemm_lt_probe() */
} ft_cuda_chip;

/*
 * The architecture that the code for the current device was compiled for, 75, 80, ...; it is older
 * than the device's where the driver has translated it.  cudaErrorNoKernelImageForDevice: none is.
 */
int ft_cuda_probe(int *built_for);

/* ---- Int8 products ------------------------------------------------------------------------ */

enum { FT_CUDA_PARTS = 3 };

/*
 * y = act(x . w^T * (x_scale * w_scale) + bias) [+ residual], exact int32 sums, then floats or
 * codes.  The bits are those of kernels/cpu/gemm/int8/i8_epilogue.h.
 *
 * With parts > 1 the columns are cut into that many matrices, each with its own y and scale:
 * queries, keys and values are one product, also where keys and values have fewer heads.
 */
typedef struct ft_cuda_product {
    size_t m, n, k;
    const int8_t *x;       /* [m, k], rows k bytes apart */
    const int8_t *w;       /* [n, k] in COL4_4R2_8C, or NULL: only `tiles` is there */
    const int8_t *tiles;   /* the same codes in the order of wgmma_gemm.cu, or NULL */
    float x_scale;         /* of all of x ... */
    const float *x_scales; /* ... or, not NULL, of each row: [m] */
    const float *w_scale;  /* [n] */
    const float *bias;     /* [n], or NULL */
    ft_activation activation;
    ft_dtype y_dtype;               /* FT_I8: codes; FT_F32 or FT_F16: real values */
    int parts;                      /* 1 .. FT_CUDA_PARTS */
    size_t width[FT_CUDA_PARTS];    /* columns of each part; together n */
    void *y[FT_CUDA_PARTS];         /* each [m, width] */
    float y_inverse[FT_CUDA_PARTS]; /* FT_I8: 1 / scale of each y; else 0 */
    const void *residual; /* [m, n] of y_dtype (F32, F16), added after the activation, or NULL */
    void *blas;           /* cublasHandle_t, or NULL: then FT_CUDA_GEMM_LT takes nothing */
    void *scratch;        /* ft_cuda_gemm_scratch() bytes, 256-byte aligned, or NULL */
    size_t scratch_bytes;
} ft_cuda_product;

/* The ways to compute a product, in the order of ft_cuda_gemm_name(). */
typedef enum ft_cuda_gemm {
    FT_CUDA_GEMM_PLAIN,    /* simt.cu: any shape, any device; the reference of the others */
    FT_CUDA_GEMM_MMA,      /* mma_gemm.cu: mma.sync on COL4_4R2_8C, from sm_80 on */
    FT_CUDA_GEMM_LT,       /* cublaslt.cu: cuBLASLt, COL32 x COL4_4R2_8C, sm_75 to sm_89 */
    FT_CUDA_GEMM_WGMMA,    /* wgmma_gemm.cu: both operands in shared memory, sm_90a */
    FT_CUDA_GEMM_WGMMA_RS, /* wgmma_register_a.cu: weights in registers, from COL4_4R2_8C, sm_90a */
    FT_CUDA_GEMM_STREAM,   /* gemv.cu: up to 8 rows, tiles stream through, sm_90a */
    FT_CUDA_GEMMS
} ft_cuda_gemm;

/* Whether the parts are 1 .. FT_CUDA_PARTS and their widths make n. */
bool ft_cuda_product_adds_up(const ft_cuda_product *p);

/* Whether this way takes the product on this chip, and its launch. */
bool ft_cuda_gemm_plain_takes(const ft_cuda_chip *chip, const ft_cuda_product *p);
int ft_cuda_gemm_plain(const ft_cuda_chip *chip, void *stream, const ft_cuda_product *p);
bool ft_cuda_gemm_mma_takes(const ft_cuda_chip *chip, const ft_cuda_product *p);
int ft_cuda_gemm_mma(const ft_cuda_chip *chip, void *stream, const ft_cuda_product *p);
bool ft_cuda_gemm_lt_takes(const ft_cuda_chip *chip, const ft_cuda_product *p);
int ft_cuda_gemm_lt(const ft_cuda_chip *chip, void *stream, const ft_cuda_product *p);
bool ft_cuda_gemm_wgmma_takes(const ft_cuda_chip *chip, const ft_cuda_product *p);
int ft_cuda_gemm_wgmma(const ft_cuda_chip *chip, void *stream, const ft_cuda_product *p);
bool ft_cuda_gemm_wgmma_rs_takes(const ft_cuda_chip *chip, const ft_cuda_product *p);
int ft_cuda_gemm_wgmma_rs(const ft_cuda_chip *chip, void *stream, const ft_cuda_product *p);
bool ft_cuda_gemm_stream_takes(const ft_cuda_chip *chip, const ft_cuda_product *p);
int ft_cuda_gemm_stream(const ft_cuda_chip *chip, void *stream, const ft_cuda_product *p);

/*
 * The product of a faked plan: x [m, k] and w [n, k] hold whole codes in float, row-major (p->x and
 * p->w are not read); y of FT_F32 holds codes where y_inverse > 0, else real values.
 */
int ft_cuda_gemm_faked(void *stream, const ft_cuda_product *p, const float *x, const float *w);

/* Whether cuBLASLt takes the product of COL32 and COL4_4R2_8C on this handle's device. */
bool ft_cuda_gemm_lt_probe(void *blas);

/* Scratch of FT_CUDA_GEMM_LT, for up to m rows. */
size_t ft_cuda_gemm_lt_scratch(const ft_cuda_chip *chip, size_t m, size_t n, size_t k);

/* The tiles of mma_gemm.cu: how many, and a launch with one of them; tests try each. */
int ft_cuda_gemm_mma_tiles(void);
int ft_cuda_gemm_mma_with(int tile, const ft_cuda_chip *chip, void *stream,
                          const ft_cuda_product *p);

/*
 * The weights of wgmma_gemm.cu: bytes, and the shuffle that makes them from COL4_4R2_8C.  Matrices
 * of equal n (a multiple of 32) and k that follow each other are one matrix to it.
 */
size_t ft_cuda_tiles_bytes(size_t n, size_t k);
int ft_cuda_tile(void *stream, int8_t *tiles, const int8_t *w, size_t n, size_t k);

/* The same formula for the host: offset of element (row, col). */
size_t ft_cuda_tiles_offset(size_t row, size_t col, size_t n, size_t k);

/* The fastest way for this shape on this chip, or what FT_CUDA_GEMM names (gemm.cu). */
ft_cuda_gemm ft_cuda_gemm_choose(const ft_cuda_chip *chip, const ft_cuda_product *p);

/* Whether FT_CUDA_GEMM names a way that takes this product: *how. */
bool ft_cuda_gemm_asked(const ft_cuda_chip *chip, const ft_cuda_product *p, ft_cuda_gemm *how);

/* The choice in words: "mma", or "plain: FT_CUDA_GEMM=wgmma does not take it"; always terminated.
 */
void ft_cuda_gemm_explain(const ft_cuda_chip *chip, const ft_cuda_product *p, char *text,
                          size_t size);

/* Scratch that any way chosen for up to m rows may ask for; 0 where none does. */
size_t ft_cuda_gemm_scratch(const ft_cuda_chip *chip, size_t m, size_t n, size_t k);
int ft_cuda_gemm_run(ft_cuda_gemm how, const ft_cuda_chip *chip, void *stream,
                     const ft_cuda_product *p);
const char *ft_cuda_gemm_name(ft_cuda_gemm how);

/* ---- Float products ----------------------------------------------------------------------- */

/* y = act(x . w^T + bias): x [m, k], w [n, k], y [m, n], all row-major. */
typedef struct ft_cuda_float_product {
    size_t m, n, k;
    const void *x, *w;
    ft_dtype x_dtype, w_dtype, y_dtype; /* each FT_F32, FT_F16 or FT_BF16 */
    const float *bias;                  /* [n], or NULL */
    ft_activation activation;
    void *y;
} ft_cuda_float_product;

/*
 * A row of y depends on its row of x alone: it has the same bits whatever m is and wherever the row
 * stands.  (The library behind ft_cuda_linear does not promise that.)  Sums are in float, in one
 * order, that of the tensor cores' instruction where x and w are of one type of 16 bits (on sm_90a
 * in ranges of k, wgmma_f16_gemm.h), and that of linear_gemv.cu elsewhere.
 */
int ft_cuda_float_steady(const ft_cuda_chip *chip, void *stream, const ft_cuda_float_product *p);

/* ---- Attention ---------------------------------------------------------------------------- */

enum {
    FT_CUDA_QUERIES = 64,     /* rows of a block of queries */
    FT_CUDA_WIDEST_HEAD = 256 /* elements of a head */
};

/* Up to FT_CUDA_QUERIES queries of one sequence; length 0: nothing to do. */
typedef struct ft_cuda_queries {
    int32_t first, length; /* rows of the sequence */
    int32_t query;         /* first query, relative to `first` */
    int32_t sequence;
} ft_cuda_queries;

/* softmax(q . k^T * scale) . v per block and head.  q, k, v, y: [tokens, heads * head_size]. */
typedef struct ft_cuda_heads {
    const ft_cuda_queries *blocks;
    size_t nblocks;
    int heads, head_size;
    ft_dtype dtype; /* of q, k, v: FT_I8, FT_F32, FT_F16, FT_BF16 */
    const void *q, *k, *v;
    void *y;           /* of the same dtype; FT_F32 too when dtype is FT_I8 and y_inverse is 0 */
    float score_scale; /* scores times it are the exponents; contains the scales of q and k */
    float value_scale; /* codes: scale of v */
    float y_inverse;   /* codes: 1 / scale of y; 0: y is F32 */
    const struct ft_cuda_counts *counts; /* count the probabilities (FT_F32 only), or NULL */
} ft_cuda_heads;

int ft_cuda_attend_heads(const ft_cuda_chip *chip, void *stream, const ft_cuda_heads *a);

/* ---- Counters ----------------------------------------------------------------------------- */

/* Of one calibration point, in device memory.  Every magnitude goes by its key: no tail. */
typedef struct ft_cuda_counts {
    unsigned long long *key;     /* [FT_COUNT_KEYS] */
    unsigned long long *special; /* zeros, NaNs, infinities */
    uint32_t *largest;           /* float bits of the largest finite magnitude */
} ft_cuda_counts;

int ft_cuda_count(void *stream, const ft_cuda_counts *counts, const float *x, size_t n);

/* ---- Operations --------------------------------------------------------------------------- */

/* A value while an operation runs; rows lie one after the other, cols elements apart. */
typedef struct ft_cuda_view {
    void *data; /* NULL: not there */
    size_t rows, cols;
    ft_dtype dtype;
    float scale;
    float *scales; /* of dynamic codes: [rows]; else NULL */
} ft_cuda_view;

/* The sequences of a run.  Rows beyond those of the batch exist, up to the run's bucket. */
typedef struct ft_cuda_batch {
    size_t tokens, sequences;
    const int32_t *start; /* [sequences + 1]; sequences beyond the batch are empty */
    const ft_cuda_queries *blocks;
    size_t nblocks;

    /* Plans with a cache: arrays of ft_batch, on the device; zeros elsewhere. */
    const int32_t *owner, *past, *reach, *seat, *pages;
    size_t most_pages;
    size_t context;  /* upper bound of the run's bucket: sequences tell their own length by past */
    size_t capacity; /* tokens that a seat has room for: ft_limits.context */
    bool step;       /* each sequence has one row, its token was chosen before: ft_batch */
    bool steady;     /* products of floats must not depend on how many rows there are */
    size_t selected;
    const int32_t *select;
    const ft_choice *choice;      /* NULL: nothing is chosen */
    const struct ft_beams *beams; /* [groups]; those beyond the batch have no seat */
    size_t groups, widest;        /* lanes of the widest group */

    /* Encoder-decoders. */
    const int32_t *memory_last; /* [sequences]: place of the last token of each one's source */
    const int32_t *memory_pages;
    size_t most_memory_pages;
    size_t memory; /* upper bound of the run's bucket: tokens of the longest source */
    size_t lanes;  /* of neighbouring sequences that share their tokens; 0 or 1: none do */
} ft_cuda_batch;

/* A token that was chosen, and the number of the run that chose it.  Each half is written at once. */
typedef struct ft_cuda_answer {
    int32_t token;
    uint32_t run;
    float logprob;
    uint32_t same_run;
} ft_cuda_answer;

/* Where the host looks for the tokens of a run while the next one may be running. */
typedef struct ft_cuda_answers {
    ft_cuda_answer *row; /* pinned, [2][most]: of even and of odd runs; NULL: nobody looks */
    size_t most;
    const uint32_t *run; /* on the device: the number of this run */
} ft_cuda_answers;

typedef struct ft_cuda_args {
    const ft_cuda_chip *chip;
    void *stream; /* cudaStream_t */
    void *blas;   /* cublasHandle_t, bound to the stream */
    const ft_op *op;
    ft_cuda_view in[FT_MAX_IN], out, codes, second;
    ft_cuda_view state[FT_MAX_STATES];       /* with all the rows that there are */
    ft_rows per;                             /* what the rows of in[0] are */
    const ft_weight *weight[FT_MAX_WEIGHTS]; /* device pointers in them; NULL: not there */
    const ft_cuda_batch *batch;
    const ft_cuda_counts *counts; /* of the observed point (OBSERVE, or inner), or NULL */
    void *scratch;
    size_t scratch_bytes;
    uint32_t *counters; /* zeros between any two kernels: who counts in them leaves zeros */
    ft_cuda_answers answers;
} ft_cuda_args;

/*
 * Copy the inputs of a run from pinned memory of the host (`from`, 16-byte aligned, `bytes` a
 * multiple of 16) to the device.  Then *count, on the device, becomes one more, and *taken, pinned,
 * the same: the host may write `from` again.
 */
typedef struct ft_cuda_inputs {
    void *to;
    const void *from;
    size_t bytes;
    uint32_t *count; /* [2]: runs, and blocks of this run that are done */
    uint32_t *taken;
} ft_cuda_inputs;

int ft_cuda_take_inputs(const ft_cuda_chip *chip, void *stream, const ft_cuda_inputs *inputs);

/* Every operation: int ft_cuda_norm(const ft_cuda_args *). */
#define X(NAME, name) int ft_cuda_##name(const ft_cuda_args *args);
#include "kernels/ops.def"
#undef X

/*
 * Up to FT_CUDA_PARTS linears of one input and one shape in one launch, where their weights lie
 * side by side; cudaErrorNotSupported, and nothing is launched, where they do not.
 */
int ft_cuda_linear_group(const ft_cuda_args *const *args, int count);

/*
 * How these linears are computed, in the words of ft_cuda_gemm_explain(): returns `count`
 * where ft_cuda_linear_group() makes one product of them, else 1, and speaks of the first.  0, and
 * an empty text, for what is no int8 product and has no weights in blocks.
 */
int ft_cuda_linear_explain(const ft_cuda_args *const *args, int count, char *text, size_t size);

/* Device scratch bytes that an operation needs for a run within these limits. */
size_t ft_cuda_linear_scratch(const ft_cuda_chip *chip, const ft_plan *plan, const ft_op *op,
                              size_t rows);
size_t ft_cuda_attention_scratch(const ft_plan *plan, const ft_op *op, size_t tokens);
size_t ft_cuda_conv_scratch(const ft_cuda_chip *chip, const ft_plan *plan, const ft_op *op,
                            size_t images);
size_t ft_cuda_attend_scratch(const ft_plan *plan, const ft_op *op, size_t sequences,
                              size_t context);

/* How many counters an operation needs. */
size_t ft_cuda_linear_counters(const ft_plan *plan, const ft_op *op);
size_t ft_cuda_attend_counters(const ft_op *op, size_t sequences);

/* ---- Arrays ------------------------------------------------------------------------------- */

/* codes[i] = ft_quantize(x[i], inverse_scale), n elements. */
int ft_cuda_quantize_array(void *stream, int8_t *codes, const float *x, float inverse_scale,
                           size_t n);

/* out[i] = codes[i] * scale, n elements. */
int ft_cuda_dequantize_array(void *stream, float *out, const int8_t *codes, float scale, size_t n);

/*
 * Move an int8 matrix [rows, cols] from one layout to another; out has ft_layout_bytes(to, ...)
 * bytes, and its pads become zeros.
 */
int ft_cuda_relayout(void *stream, int8_t *out, ft_layout to, const int8_t *in, ft_layout from,
                     size_t rows, size_t cols);

/* Read `bytes` of memory, a multiple of 16: how fast this is bounds whatever streams weights. */
int ft_cuda_read_array(const ft_cuda_chip *chip, void *stream, const void *data, size_t bytes,
                       uint32_t *sink);

#ifdef __cplusplus
}
#endif
#endif
