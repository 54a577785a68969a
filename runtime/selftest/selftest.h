/*
 * selftest.h - the entry selftest/samples.safetensors of an artifact, and how it is computed again.
 *
 * The entry is a safetensors file with these tensors:
 *
 *   the inputs of a forward pass of at most 4 samples, of at most 64 tokens each, as for
 *   ft_session_set(): input_ids, attention_mask, token_type_ids, decoder_input_ids,
 *   decoder_attention_mask; I32
 *   or pixel_values, I8 [N, channels, h, w], and pixel_scale, F32 [1]: pixels are scale * q, and
 * each stands for a square of pixels if h and w are smaller than the model's image float      F32
 * [R, C]  outputs of the float model expected   F32 [R, C]  outputs of the quantized model on a CPU
 *   digest     U8 [32]     SHA-256 of all outputs of the quantized model, F32
 *   tolerance  F32 [1]     see ft_selftest_tolerance()
 *
 * The output is the one by which ft-calibrate judges a model: logits (of generative models those of
 * the last token), else the embedding, else the last hidden state. Of large outputs, [R, C] is
 * every n-th row and every m-th column.
 *
 * CPUs compute the same bits with any instruction set and number of threads, so the digest decides
 * there; GPUs compute the same bits where the tolerance is 0.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_SELFTEST_SELFTEST_H
#define FT_RUNTIME_SELFTEST_SELFTEST_H

#include "runtime/base/sha256.h"
#include "runtime/model/model.h"

#pragma GCC visibility push(default) /* linked by the tools: FT_PRIVATE */

#define FT_SELFTEST_ENTRY "selftest/samples.safetensors"

enum {
    FT_SELFTEST_SAMPLES = 4,
    FT_SELFTEST_TOKENS = 64,
    FT_SELFTEST_PIXELS = 160 * 1024,    /* pixel values of all images */
    FT_SELFTEST_COLUMNS = 1024,         /* of a row of the stored outputs */
    FT_SELFTEST_VALUES = 12 * 1024,     /* stored outputs */
    FT_SELFTEST_MAX_BYTES = 256 * 1024, /* of the entry */
};

/* The tensors of the entry, in the order of its header. */
typedef enum ft_selftest_tensor {
    FT_SELFTEST_IDS,
    FT_SELFTEST_MASK,
    FT_SELFTEST_TYPES,
    FT_SELFTEST_TARGET_IDS,
    FT_SELFTEST_TARGET_MASK,
    FT_SELFTEST_PIXEL_SCALE,
    FT_SELFTEST_FLOAT,
    FT_SELFTEST_EXPECTED,
    FT_SELFTEST_TOLERANCE,
    FT_SELFTEST_DIGEST,
    FT_SELFTEST_PIXEL_VALUES,
    FT_SELFTEST_TENSORS,
} ft_selftest_tensor;

/* Tensors own their data; data NULL: absent. Zero-initialized means empty. */
typedef struct ft_selftest {
    ft_tensor tensor[FT_SELFTEST_TENSORS];
} ft_selftest;

/* Copies the tensors of an entry. FT_EFORMAT, with `label`, for anything that is not one. */
FT_MUST_USE ft_status ft_selftest_parse(ft_selftest *out, const char *label, const void *bytes,
                                        size_t size, ft_error *err);

/* Formats an entry; deterministic. The caller frees *bytes. FT_ENOMEM; FT_ELIMIT: too large. */
FT_MUST_USE ft_status ft_selftest_format(const ft_selftest *test, char **bytes, size_t *size,
                                         ft_error *err);
void ft_selftest_fini(ft_selftest *test);

/* Allocates a zeroed tensor. FT_ENOMEM. */
FT_MUST_USE ft_status ft_selftest_add(ft_selftest *test, ft_selftest_tensor which, ft_dtype dtype,
                                      int ndim, const int64_t *dim, ft_error *err);

/* ---- Computing ------------------------------------------------------------------------------ */

/* Stores the outputs of a model for the inputs of the test as `which`, and their SHA-256. */
FT_MUST_USE ft_status ft_selftest_compute(ft_selftest *test, ft_selftest_tensor which,
                                          uint8_t digest[FT_SHA256_BYTES], const ft_model *model,
                                          ft_error *err);

/*
 * The largest difference that a GPU may have from a CPU, relative to the norm of the outputs: 0 if
 * all sums are of integers; 0.1 % if sums of floats only follow the int8 matrices, as in heads;
 * else 2 %, because a group-wise GEMM rounds activations in another way on a GPU, and a float that
 * differs in its last bit may become another int8 value.
 */
#define FT_SELFTEST_FLOAT_HEAD 0.001f
#define FT_SELFTEST_FLOAT_INSIDE 0.02f
float ft_selftest_tolerance(const ft_model *model);

typedef struct ft_selftest_result {
    const char *output; /* "logits" */
    size_t samples;
    bool passed, same_bits;
    double difference;   /* from the expected outputs, relative to their norm */
    double tolerance;    /* that applies to this device */
    double quantization; /* difference of the expected outputs from those of the float model */
    size_t row, column;  /* of the stored value that differs most: found, expected */
    float found, expected;
} ft_selftest_result;

/*
 * Computes the self-test of an open model again. FT_EUNSUPPORTED if its artifact has none, or if
 * its KV cache has another dtype than by default; FT_EFORMAT if it does not fit the model; the
 * errors of sessions. A result that differs is no error.
 */
FT_MUST_USE ft_status ft_selftest_run(ft_selftest_result *out, const ft_model *model,
                                      ft_error *err);

/* The result as a sentence without full stop, which says what differs by how much. */
enum { FT_SELFTEST_TEXT = 400 };
char *ft_selftest_describe(char text[FT_SELFTEST_TEXT], const ft_selftest_result *result);

#pragma GCC visibility pop

#endif
