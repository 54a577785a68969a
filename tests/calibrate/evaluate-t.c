/*
 * evaluate-t.c - the comparison of the outputs of the float and int8 models.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/mixed/evaluate.h"
#include "runtime/container/artifact.h"
#include "tests/lib/models/calibrated.h"
#include "tests/lib/models/converted.h"
#include "tests/tap/tap.h"

#include <math.h>

static calibrated made;
static ft_artifact *quantized; /* keeps its ranges when the float artifact is rewritten */

static ft_status evaluate(ft_evaluation *out, ft_error *err)
{
    ft_dataset data;
    const ft_quant_config quant = { .mode = FT_MODE_INT8, .amax = ft_artifact_amax(quantized) };
    ft_model *model = calibrated_open(made.real, NULL);
    if (ft_dataset_read(&data, made.samples, model, err) != FT_OK)
        bail_out("%s", err->text);
    ft_status status = ft_evaluate(out, &(ft_model_pair){ made.real, &quant, NULL }, &data, NULL, 1,
                                   NULL, NULL, err);
    ft_dataset_fini(&data);
    ft_model_close(model);
    return status;
}

static void test_figures(void)
{
    ft_evaluation e = { .samples = 0 };
    ft_error err;
    is_int(evaluate(&e, &err), FT_OK, "ft_evaluate() compares the float model with the int8 model");
    is_str(e.output, "logits", "ft_evaluate() compares the logits of a classifier");
    is_int((long long) e.samples, CALIBRATED_SAMPLES, "ft_evaluate() uses all samples");
    /* Rounding to 8 bits of the range keeps 30 to 45 dB; so does this small model. */
    ok(e.sqnr_db > 25.0 && e.sqnr_db < 60.0,
       "int8 quantization loses accuracy: the SQNR is %.1f dB", e.sqnr_db);
    /* 25 dB is a cosine of 0.998. */
    ok(e.cosine > 0.998, "int8 quantization keeps the outputs close: the cosine similarity is %.6f",
       e.cosine);
    ok(e.agreement > 0.7 && e.agreement <= 1.0,
       "the float and int8 models mostly agree on the class: the fraction is %.3f", e.agreement);
    ok(isnan(e.accuracy[0]) && isnan(e.accuracy[1]),
       "ft_evaluate() reports NaN accuracy when the dataset has no labels");
}

/* Logits that overflow float32 cannot be compared. */
static void test_overflow(tiny *t)
{
    ft_tensor *weight = tiny_find(t, "classifier.weight");
    for (size_t i = 0; i < ft_tensor_numel(weight); i++)
        ((float *) weight->data)[i] = 3e38f;
    ft_artifact_close(converted(t, &(ft_convert_options){ 0 }));
    ft_evaluation e = { .samples = 0 };
    ft_error err;
    is_int(evaluate(&e, &err), FT_ENONFINITE, "ft_evaluate() refuses outputs that are not finite");
    has(err.text, "logits: row 0 holds inf",
        "the error names the output and the row that is not finite");
}

int main(void)
{
    tiny t;
    ft_error err;
    tiny_make_classifier(&t);
    calibrated_make(&made, &t);
    if (ft_artifact_open(&quantized, made.quantized, FT_VERIFY_STRUCTURE, &err) != FT_OK)
        bail_out("%s", err.text);
    test_figures();
    test_overflow(&t);
    ft_artifact_close(quantized);
    tiny_remove(&t);
    return done_testing();
}
