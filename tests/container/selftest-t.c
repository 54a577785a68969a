/*
 * selftest-t.c - the self-test of an artifact: its format, its result, and what is refused.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/selftest/selftest.h"

#include "calibrate/calibrate.h"
#include "runtime/mem.h"
#include "runtime/container/artifact_copy.h"
#include "tests/lib/models/calibrated.h"
#include "tests/lib/models/converted.h"
#include "tests/tap/tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PATH = 128 };

static calibrated made;
static ft_error err;

static void must(ft_status status)
{
    if (status != FT_OK)
        bail_out("%s", err.text);
}

/* ---- Entries ------------------------------------------------------------------------------- */

/* The self-test of the calibrated model. */
static ft_selftest read_test(void)
{
    ft_artifact *artifact;
    ft_selftest test;
    must(ft_artifact_open(&artifact, made.quantized, FT_VERIFY_STRUCTURE, &err));
    const ft_artifact_entry *entry = ft_artifact_find_file(artifact, FT_SELFTEST_ENTRY);
    if (entry == NULL)
        bail_out("no self-test");
    ok(entry->bytes <= FT_SELFTEST_MAX_BYTES, "a self-test takes at most 256 KiB");
    must(ft_selftest_parse(&test, "model", entry->data, entry->bytes, &err));
    ft_artifact_close(artifact);
    return test;
}

static void test_round_trip(const ft_selftest *test)
{
    char *bytes, *again_bytes;
    size_t size, again_size;
    ft_selftest again;
    must(ft_selftest_format(test, &bytes, &size, &err));
    is_int(ft_selftest_parse(&again, "model", bytes, size, &err), FT_OK,
           "a self-test that was written is read");
    must(ft_selftest_format(&again, &again_bytes, &again_size, &err));
    ok(size == again_size && memcmp(bytes, again_bytes, size) == 0,
       "a self-test that was read is written with the same bytes");
    is_int((long long) test->tensor[FT_SELFTEST_IDS].dim[0], 4, "a self-test has four samples");
    ft_selftest_fini(&again);
    free(bytes);
    free(again_bytes);
}

/* ---- Invalid entries ----------------------------------------------------------------------- */

static void refused_bytes(const char *bytes, size_t size, const char *part, const char *sentence)
{
    ft_selftest test;
    err.text[0] = '\0';
    ft_status status = ft_selftest_parse(&test, "model", bytes, size, &err);
    ok(status != FT_OK && strstr(err.text, part) != NULL, "%s", sentence);
    if (status == FT_OK || strstr(err.text, part) == NULL)
        diag("%s: %s", ft_status_name(status), err.text);
    if (status == FT_OK)
        ft_selftest_fini(&test);
}

/* `test` is changed by the caller. */
static void refused(const ft_selftest *test, const char *part, const char *sentence)
{
    char *bytes;
    size_t size;
    must(ft_selftest_format(test, &bytes, &size, &err));
    refused_bytes(bytes, size, part, sentence);
    free(bytes);
}

static void test_invalid(const ft_selftest *good)
{
    static char large[FT_SELFTEST_MAX_BYTES + 1];
    static uint8_t digest[FT_SHA256_BYTES + 1];
    static int32_t tokens[8 * FT_SELFTEST_TOKENS];
    float wrong;
    ft_selftest test = *good;
    refused_bytes("nonsense", 8, "selftest/samples.safetensors",
                  "bytes without a header are refused");
    refused_bytes(large, sizeof large, "larger than 256 KiB", "too large an entry is refused");

    test.tensor[FT_SELFTEST_EXPECTED].data = NULL;
    refused(&test, "expected float, expected, digest and tolerance", "missing outputs are refused");
    test = *good;
    test.tensor[FT_SELFTEST_MASK].data = NULL;
    refused(&test, "expected either tokens or images", "tokens without a mask are refused");
    test = *good;
    test.tensor[FT_SELFTEST_MASK].dim[1]--;
    refused(&test, "inputs of different shapes", "a mask of another shape is refused");
    test = *good;
    test.tensor[FT_SELFTEST_FLOAT].dim[0]--;
    refused(&test, "expected float, expected", "float outputs of another shape are refused");
    test = *good;
    test.tensor[FT_SELFTEST_TOLERANCE].data = &wrong;
    wrong = 2.0f;
    refused(&test, "a tolerance of 0 to 1", "a tolerance above 1 is refused");
    wrong = NAN;
    refused(&test, "a tolerance of 0 to 1", "a tolerance of NaN is refused");
    test = *good;
    test.tensor[FT_SELFTEST_DIGEST].data = digest;
    test.tensor[FT_SELFTEST_DIGEST].dim[0] = FT_SHA256_BYTES + 1;
    refused(&test, "a digest of 32 bytes", "a longer digest is refused");
    test = *good;
    test.tensor[FT_SELFTEST_IDS] = test.tensor[FT_SELFTEST_MASK] =
        (ft_tensor){ FT_I32, FT_ROW, 2, { 8, FT_SELFTEST_TOKENS }, tokens };
    refused(&test, "at most 4 samples of at most 64 tokens", "too many samples are refused");
    test.tensor[FT_SELFTEST_IDS].dim[0] = test.tensor[FT_SELFTEST_MASK].dim[0] = 1;
    test.tensor[FT_SELFTEST_IDS].dim[1] = test.tensor[FT_SELFTEST_MASK].dim[1] =
        FT_SELFTEST_TOKENS + 1;
    refused(&test, "at most 4 samples of at most 64 tokens", "too long a sample is refused");
    test = *good;
    test.tensor[FT_SELFTEST_EXPECTED].dtype = FT_I32;
    refused(&test, "expected: not a tensor of a self-test", "another dtype is refused");
    test = *good;
    test.tensor[FT_SELFTEST_EXPECTED].ndim = 1;
    refused(&test, "expected: not a tensor of a self-test",
            "another number of dimensions is refused");
    float *value = good->tensor[FT_SELFTEST_EXPECTED].data, kept = value[1];
    value[1] = INFINITY;
    refused(good, "an output is not finite", "an infinite output is refused");
    value[1] = kept;
}

/* ---- Results ------------------------------------------------------------------------------- */

/* Writes the artifact `from`, which has no self-test, with another one to `to`. */
static void put_test(const char *from, const ft_selftest *test, const char *to)
{
    ft_artifact *artifact;
    ft_artifact_writer *writer;
    ft_artifact_copy *copy;
    char *bytes;
    size_t size;
    must(ft_artifact_open(&artifact, from, FT_VERIFY_STRUCTURE, &err));
    must(ft_artifact_create(&writer, to, true, &err));
    must(ft_artifact_copy_new(&copy, writer, artifact, &err));
    must(ft_selftest_format(test, &bytes, &size, &err));
    must(ft_artifact_add_memory(writer, FT_SELFTEST_ENTRY, bytes, size, &err));
    must(ft_artifact_finish(writer, ft_artifact_get_header(artifact), &err));
    ft_artifact_copy_free(copy);
    ft_artifact_discard(writer);
    ft_artifact_close(artifact);
    free(bytes);
}

static void passes(const char *path, const ft_model_options *options, const char *sentence)
{
    ft_selftest_result result;
    ft_model *model = calibrated_open(path, options);
    ft_status status = ft_selftest_run(&result, model, &err);
    ok(status == FT_OK && result.passed && result.same_bits && result.difference == 0.0, "%s",
       sentence);
    ft_model_close(model);
}

static ft_status open_tested(const char *path)
{
    ft_model *model;
    err.text[0] = '\0';
    ft_status status = ft_model_open(
        &model, path, &(ft_model_options){ .size = sizeof(ft_model_options), .selftest = 1 }, &err);
    ft_model_close(model);
    return status;
}

static void test_results(const tiny *t, ft_selftest *test)
{
    char bare[PATH], bad[PATH];
    ft_report report;
    ft_selftest_result result;
    snprintf(bare, sizeof bare, "%s/bare.ft", t->folder);
    snprintf(bad, sizeof bad, "%s/bad.ft", t->folder);
    must(ft_calibrate(&(ft_calibration_options){ .input = made.real,
                                                 .output = bare,
                                                 .data = made.samples,
                                                 .method = FT_METHOD_MAX,
                                                 .no_selftest = true,
                                                 .threads = 1 },
                      NULL, &report, &err));
    ft_report_fini(&report);

    passes(made.quantized, NULL, "an int8 artifact passes its self-test with the same bits");
    passes(made.quantized, &(ft_model_options){ .no_fuse = true },
           "the unfused plan passes the self-test with the same bits");
    passes(made.quantized, &(ft_model_options){ .fake = true },
           "the fake-quantized plan passes the self-test with the same bits");
    is_int(open_tested(made.quantized), FT_OK,
           "ft_model_open() with `selftest` opens an artifact that passes");
    is_int(open_tested(bare), FT_EUNSUPPORTED,
           "ft_model_open() with `selftest` refuses an artifact without a self-test");
    has(err.text, "has no self-test; ft-calibrate stores one if it has samples",
        "the error says how an artifact gets a self-test");
    ft_model_close(calibrated_open(bare, NULL));
    ok(true, "an artifact without a self-test opens otherwise");

    ((float *) test->tensor[FT_SELFTEST_EXPECTED].data)[4] += 0.5f;
    ((uint8_t *) test->tensor[FT_SELFTEST_DIGEST].data)[0] ^= 1;
    put_test(bare, test, bad);
    ft_model *model = calibrated_open(bad, NULL);
    is_int(ft_selftest_run(&result, model, &err), FT_OK,
           "a self-test with other outputs is computed");
    ok(!result.passed && result.difference > 0.0 && result.row == 1 && result.column == 1,
       "the result names the value that differs most");
    near((double) result.expected - (double) result.found, 0.5, 1e-6,
         "the result has the value that was found and the one that was expected");
    ft_model_close(model);
    is_int(open_tested(bad), FT_EDEVICE,
           "ft_model_open() with `selftest` refuses a machine that computes something else");
    has(err.text,
        "this machine does not compute what the builder measured: logits of 4 samples differ",
        "the error names the output that differs");

    ((int32_t *) test->tensor[FT_SELFTEST_IDS].data)[0] = 1 << 20;
    put_test(bare, test, bad);
    ok(open_tested(bad) != FT_OK && strstr(err.text, "input_ids") != NULL,
       "a token id beyond the vocabulary is refused");
    ((int32_t *) test->tensor[FT_SELFTEST_IDS].data)[0] = 2;
    test->tensor[FT_SELFTEST_EXPECTED].dim[0] = test->tensor[FT_SELFTEST_FLOAT].dim[0] = 3;
    put_test(bare, test, bad);
    ok(open_tested(bad) == FT_EFORMAT && strstr(err.text, "outputs of another model") != NULL,
       "outputs of another shape are refused");
}

int main(void)
{
    tiny t;
    tiny_make_classifier(&t);
    calibrated_make(&made, &t);
    ft_selftest test = read_test();
    test_round_trip(&test);
    test_invalid(&test);
    test_results(&t, &test);
    ft_selftest_fini(&test);
    tiny_remove(&t);
    return done_testing();
}
