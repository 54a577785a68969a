/*
 * backend.h - what a device must be able to do to run plans: one table of functions.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_BACKEND_H
#define FT_KERNELS_BACKEND_H

#include "kernels/kv_cache.h"
#include "kernels/op.h"
#include "runtime/mem.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ft_device ft_device; /* one open device of a backend */
typedef struct ft_exec ft_exec;     /* one plan made ready to run, with its memory */

typedef struct ft_limits {
    size_t tokens, sequences; /* of one run */
    int threads;              /* CPU only */

    /* Plans with a cache; zeros elsewhere. */
    size_t selected; /* rows of one run that results are wanted of */
    size_t context;  /* tokens of one sequence, a multiple of FT_PAGE_TOKENS */
    size_t pages;    /* of the cache */

    /* Encoder-decoders; zeros elsewhere. */
    size_t cross_kv;       /* tokens of one source, a multiple of FT_PAGE_TOKENS */
    size_t cross_kv_pages; /* of all */
} ft_limits;

/* Rows that a value has room for; false when they are more than size_t holds. */
static inline bool ft_limits_checked_rows(const ft_limits *limits, ft_rows rows, size_t *out)
{
    size_t of_kind[FT_NUM_ROW_KINDS] = {
        [FT_TOKENS] = limits->tokens,
        [FT_SEQUENCES] = limits->sequences,
        [FT_SELECTED] = limits->selected,
        [FT_SLOTS] = limits->sequences,
    };
    *out = of_kind[rows];
    if (rows == FT_SLOT_POSITIONS)
        return ft_checked_mul(limits->sequences, limits->context, out);
    if (rows == FT_CROSS_KV)
        return ft_checked_mul(limits->cross_kv_pages, FT_PAGE_TOKENS, out);
    return rows != FT_KV_CACHE || ft_checked_mul(limits->pages, FT_PAGE_TOKENS, out);
}

/* The same once a plan has been laid out for these limits: then there are so many. */
static inline size_t ft_limits_rows(const ft_limits *limits, ft_rows rows)
{
    size_t count;
    (void) ft_limits_checked_rows(limits, rows, &count);
    return count;
}

/* Where the scales of a value's rows lie, if it is dynamic: bytes from its first element. */
static inline size_t ft_row_scales_offset(const ft_value *value, const ft_limits *limits)
{
    size_t rows = ft_limits_rows(limits, value->rows);
    return ft_round_up(rows * (size_t) value->cols * ft_dtype_size(value->dtype), 64);
}

/* An int8 product y [m, n] = act(x [m, k] . w [n, k]^T), y in codes, F32 or F16. */
typedef struct ft_gemm_problem {
    size_t m, n, k;
    ft_dtype y;
    ft_activation activation;
} ft_gemm_problem;

/* One way to compute it, and the time it takes. */
typedef struct ft_gemm_candidate {
    char name[32]; /* "mma"; "cuBLASLt ..." for a library, which may compute less */
    double seconds;
    bool chosen; /* plans go this way */
} ft_gemm_candidate;

enum { FT_MAX_GEMM_CANDIDATES = 16 };

typedef struct ft_backend {
    const char *name; /* "cpu", "cuda" */

    /* Float plans of a half-precision model keep their values in its precision; else in F32. */
    bool f16_activations;

    /* run() returns before the run has ended, and the next one may be begun then. */
    bool runs_async;

    /* Describe device `index`; false when there is none, with the reason in out->detail. */
    bool (*describe)(int index, ft_device_info *out);

    ft_status (*open)(ft_device **out, int index, ft_error *err);
    void (*close)(ft_device *device);

    /*
     * Make all weights of a model usable on the device; their pointers may become the device's.  On
     * the CPU they are used where they lie.  Weights of a fusion group of `plan` are laid one
     * behind the other where the group says so; NULL: there are no groups.
     */
    ft_status (*upload)(ft_device *device, const ft_plan *plan, ft_weight *weights, int count,
                        ft_error *err);

    /*
     * Refuse an operation that ft_op_check() has passed and this backend does not compute; `what`
     * opens the text.  NULL: it computes them all.
     */
    ft_status (*supports_op)(const ft_plan *plan, const ft_op *op, const char *what, ft_error *err);

    /* Allocate all memory that running `plan` within `limits` takes; the plan stays borrowed. */
    ft_status (*prepare)(ft_exec **out, ft_device *device, const ft_plan *plan,
                         const ft_limits *limits, ft_error *err);
    void (*release)(ft_exec *exec);

    /*
     * Copy the first `rows` rows of a value to or from the device; of dynamic codes, their scales
     * too, unless `scales` is NULL.
     */
    ft_status (*write)(ft_exec *exec, int value, const void *data, size_t rows, ft_error *err);
    ft_status (*read)(const ft_exec *exec, int value, void *data, float *scales, size_t rows,
                      ft_error *err);

    /*
     * Run the whole plan; it may still be running on return, reading a value waits for it.
     * `counts` (one per value, or NULL) receives what OBSERVE sees, at the latest in collect().
     */
    ft_status (*run)(ft_exec *exec, const ft_batch *batch, ft_counts *const *counts, ft_error *err);

    /*
     * The first `rows` tokens that the last run chose, or the one before it where `back` is 1, and
     * their logprobs; it waits for that run alone.  Where runs do not go on, there is no one
     * before.
     */
    ft_status (*chosen)(ft_exec *exec, unsigned back, int32_t *token, float *logprob, size_t rows,
                        ft_error *err);

    /* Run one operation of it again, on what the last run left: for timing. */
    ft_status (*run_op)(ft_exec *exec, const ft_batch *batch, int op, ft_error *err);

    /*
     * Say how run() computes the int8 product that operation `op` is, for the rows of this batch:
     * which way, and why not the one that somebody asked for.  Returns how many operations from
     * `op` on are one product; 0 where it is no int8 product, and the text is empty.
     */
    int (*describe_gemm)(ft_exec *exec, const ft_batch *batch, int op, char *text, size_t size);

    /* Return when everything has been computed. */
    ft_status (*wait)(ft_exec *exec, ft_error *err);

    /* Add to `counts` what the device has counted and not yet handed over. */
    ft_status (*collect)(ft_exec *exec, ft_counts *const *counts, ft_error *err);

    /*
     * Time all ways to compute a product, and those of the vendor's library, in turns, on operands
     * that are in no cache.  NULL: there is one way.
     */
    ft_status (*benchmark_gemm)(ft_device *device, const ft_gemm_problem *match,
                                ft_gemm_candidate out[FT_MAX_GEMM_CANDIDATES], int *count,
                                ft_error *err);
} ft_backend;

extern const ft_backend ft_backend_cpu;
extern const ft_backend ft_backend_cuda;

#ifdef __cplusplus
}
#endif

#endif
