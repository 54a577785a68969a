/*
 * mixed-t.c - mixed precision: units, losses, and the choice of a plan that meets a target.
 *
 * The model is a tiny BERT without a head; ranges that clip two values of five make static scales
 * bad.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/calibrate.h"
#include "calibrate/mixed/mixed_plan.h"
#include "calibrate/mixed/sensitivity.h"
#include "runtime/data/dataset.h"
#include "runtime/mem.h"
#include "tests/lib/folder.h"
#include "tests/lib/models/calibrated.h"
#include "tests/tap/tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static ft_error err;
static calibrated files;

static void must(ft_status status)
{
    if (status != FT_OK)
        bail_out("%s", err.text);
}

static bool is_int8(const void *excluded, const char *weight)
{
    return excluded == NULL || strstr(weight, excluded) == NULL;
}

/* ---- Units -------------------------------------------------------------------------------- */

static void test_units(const ft_model *model)
{
    ft_unit *unit;
    size_t count, attentions = 0, without;
    must(ft_units_find(&unit, &count, model, is_int8, NULL, &err));
    for (size_t i = 0; i < count; i++)
        attentions += unit[i].is_attention;
    is_int((long long) count, 2 * 5, "a layer of BERT has five units: four inputs and attention");
    is_int((long long) attentions, 2, "each attention is a unit of queries, keys and values");
    ok(unit[0].values == 1 && strcmp(unit[0].name, "embed.norm") == 0 && unit[0].macs == 3 * 8 * 8,
       "the input of Q, K and V is one unit with all three matrices");
    ok(ft_unit_cost(&unit[0], model, FT_PRECISION_STATIC) == 0.0 &&
           ft_unit_cost(&unit[0], model, FT_PRECISION_PER_TOKEN) > 0.0 &&
           ft_unit_cost(&unit[0], model, FT_PRECISION_FLOAT) >
               ft_unit_cost(&unit[0], model, FT_PRECISION_PER_TOKEN),
       "scales per token cost more than static ones, and float costs more than both");
    ok(ft_unit_cost(&unit[0], model, FT_PRECISION_PER_GROUP) <
           ft_unit_cost(&unit[0], model, FT_PRECISION_FLOAT),
       "scales per group cost less than float");
    free(unit);
    must(ft_units_find(&unit, &without, model, is_int8, "ffn.up", &err));
    is_int((long long) without, (long long) count - 2,
           "an input that only float matrices read is no unit");
    free(unit);
}

/* ---- Losses ------------------------------------------------------------------------------- */

static void test_losses(const ft_model *real, const ft_dataset *data)
{
    ft_reference reference, again;
    double same, quantized, threads;
    ft_model *int8 = calibrated_open(files.quantized, NULL);
    must(ft_reference_init(&reference, real, data, 16, 1, &err));
    must(ft_reference_init(&again, real, data, 1000, 2, &err));
    is_int((long long) reference.samples, 16, "losses are measured on the requested samples");
    is_int((long long) again.samples, CALIBRATED_SAMPLES,
           "of fewer samples than requested, all are used");
    must(ft_loss_measure(&same, &reference, real, &err));
    near(same, 0.0, 1e-14, "the float model has no loss against itself");
    must(ft_loss_measure(&quantized, &reference, int8, &err));
    ok(quantized > 1e-9 && quantized < 0.1, "an int8 model has a small loss: %g", quantized);
    reference.threads = 3;
    must(ft_loss_measure(&threads, &reference, int8, &err));
    ok(threads == quantized, "the loss does not depend on the number of threads");
    ft_model_close(int8);
    ft_reference_fini(&reference);
    ft_reference_fini(&again);
}

/* A model with other scales in one layer resumes before that layer. */
static void test_changes(const ft_model *real, const ft_dataset *data)
{
    enum { EACH = 4 };
    static const char *const values[] = { "embed.norm", "layer.0.ffn.norm", "layer.1.ffn.act" };
    const ft_loss_samples all = { .first = 0, .step = 1, .count = 8 };
    const ft_loss_samples odd = { .first = 1, .step = 2, .count = EACH };
    ft_reference reference;
    ft_loss_base base;
    ft_loss_sum whole_each[8], each[8];
    double whole, sum = 0.0, rows = 0.0;
    int different = 0, backwards = 0, op = 0;
    ft_model *int8 = calibrated_open(files.quantized, NULL);
    must(ft_reference_init(&reference, real, data, 8, 1, &err));
    must(ft_loss_measure(&whole, &reference, int8, &err));
    must(ft_loss_base_init(&base, int8, &all, &err));
    must(ft_loss_measure_change(whole_each, &base, &reference, int8, values[0], &err));
    for (size_t i = 0; i < all.count; i++) {
        sum += whole_each[i].sum;
        rows += (double) whole_each[i].rows;
    }
    near(sum / rows, whole, 1e-12 * whole, "the losses of samples add up to that of all rows");
    ft_loss_base_fini(&base);
    must(ft_loss_base_init(&base, int8, &odd, &err));
    for (size_t i = 0; i < FT_COUNT(values); i++) {
        must(ft_loss_measure_change(each, &base, &reference, int8, values[i], &err));
        for (size_t k = 0; k < EACH; k++)
            different += each[k].sum != whole_each[1 + 2 * k].sum;
        backwards += base.checkpoint.op < op;
        op = base.checkpoint.op;
    }
    is_int(different, 0, "passes that resume before a value give the same losses as whole ones");
    ok(op > 0 && backwards == 0, "they resume later and later");
    must(ft_loss_measure_change(each, &base, &reference, real, values[2], &err));
    near(each[0].sum, 0.0, 1e-14, "a model whose earlier operations differ runs as a whole");
    must(ft_loss_measure_change(each, &base, &reference, int8, values[0], &err));
    ok(each[0].sum == whole_each[1].sum && base.checkpoint.op < op,
       "an earlier value takes the base back");
    ft_loss_base_fini(&base);
    ft_reference_fini(&reference);
    ft_model_close(int8);
}

/* ---- Sensitivities ------------------------------------------------------------------------ */

typedef struct sensitivities {
    ft_unit *unit;
    size_t units;
    ft_precision *precision;
    double *loss;
} sensitivities;

static void measure_sensitivities(sensitivities *s, const ft_reference *reference, int threads)
{
    ft_model *int8 = calibrated_open(files.quantized, NULL);
    const ft_quant_config quant = int8->quant;
    ft_reference with_threads = *reference;
    ft_variants variants;
    with_threads.threads = threads;
    const ft_variant_options options = {
        .path = files.real, .quant = &quant, .unit = s->unit, .units = s->units, .threads = threads
    };
    must(ft_variants_init(&variants, &options, &err));
    must(ft_sensitivities_measure(s->loss,
                                  &(ft_sensitivity_options){ .variants = &variants,
                                                             .reference = &with_threads,
                                                             .precision = s->precision },
                                  &err));
    ft_variants_fini(&variants);
    ft_model_close(int8);
}

static void test_sensitivities(const ft_model *real, const ft_dataset *data)
{
    ft_reference reference;
    sensitivities s;
    must(ft_reference_init(&reference, real, data, 64, 1, &err));
    must(ft_units_find(&s.unit, &s.units, real, is_int8, NULL, &err));
    s.precision = calloc(s.units, sizeof *s.precision);
    s.loss = calloc(s.units, sizeof *s.loss);
    double *again = calloc(s.units, sizeof *again);
    if (s.precision == NULL || s.loss == NULL || again == NULL)
        bail_out("no memory");
    s.precision[0] = FT_PRECISION_FLOAT;
    measure_sensitivities(&s, &reference, 1);
    memcpy(again, s.loss, s.units * sizeof *again);
    ok(s.loss[0] == 0.0, "a unit that stays float loses nothing");
    size_t positive = 0;
    for (size_t i = 1; i < s.units; i++)
        positive += s.loss[i] > 0.0 && s.loss[i] < 0.1;
    is_int((long long) positive, (long long) s.units - 1,
           "every other unit, attention included, has a small loss alone");
    measure_sensitivities(&s, &reference, 3);
    ok(memcmp(again, s.loss, s.units * sizeof *again) == 0,
       "sensitivities do not depend on the number of threads");
    free(again);
    free(s.loss);
    free(s.precision);
    free(s.unit);
    ft_reference_fini(&reference);
}

/* ---- Targets ------------------------------------------------------------------------------ */

static void test_targets(const ft_model *model)
{
    ft_accuracy_target target;
    double loss;
    char text[FT_TARGET_TEXT];
    ok(ft_accuracy_target_parse(&target, "cosine=0.999") && target.kind == FT_TARGET_COSINE &&
           target.value == 0.999,
       "cosine=0.999 is a target for embeddings");
    must(ft_accuracy_target_loss(&loss, &target, model, FT_SCHEME_W8A8, &err));
    near(loss, 0.001, 1e-12, "a cosine of 0.999 allows a loss of 0.001");
    ok(ft_accuracy_target_parse(&target, "kl=0.02") && target.kind == FT_TARGET_KL,
       "kl=0.02 is a target for logits");
    is_int(ft_accuracy_target_loss(&loss, &target, model, FT_SCHEME_W8A8, &err), FT_EARG,
           "a target for logits is refused for a model of embeddings");
    has(err.text, "compared by cosine", "the error says how this model is compared");
    ok(ft_accuracy_target_parse(&target, "ppl=0.5%") && target.kind == FT_TARGET_PPL &&
           target.value == 0.5,
       "ppl=0.5%% is a target for text generation");
    is_int(ft_accuracy_target_loss(&loss, &target, model, FT_SCHEME_W8A8, &err), FT_EARG,
           "a perplexity is refused for a model of embeddings");
    ok(ft_accuracy_target_parse(&target, "accuracy=0.3pt") && target.kind == FT_TARGET_ACCURACY &&
           target.value == 0.3,
       "accuracy=0.3pt is a target for classifiers");
    ok(ft_accuracy_target_parse(&target, "none") && !ft_accuracy_target_is_set(&target),
       "none is no target");
    static const char *const bad[] = { "",         "cosine",   "cosine=",    "cosine=1",
                                       "cosine=0", "kl=0",     "kl=-1",      "kl=nan",
                                       "kl=0.1x",  "cosine=2", "bleu=1",     "ppl=1",
                                       "ppl=0%",   "ppl=1pt",  "accuracy=1", "accuracy=1%" };
    for (size_t i = 0; i < FT_COUNT(bad); i++)
        ok(!ft_accuracy_target_parse(&target, bad[i]), "\"%s\" is refused as a target", bad[i]);
    is_str(ft_accuracy_target_describe(text, FT_LOSS_COSINE, 0.0015), "cosine 0.9985",
           "a loss of 0.0015 is described as a cosine of 0.9985");
    is_str(ft_accuracy_target_describe(text, FT_LOSS_KL, 0.0123), "kl 0.012",
           "a divergence is described with two digits");
    is_str(ft_accuracy_target_describe(text, FT_LOSS_PERPLEXITY, log(1.0052)), "perplexity +0.52 %",
           "a loss of log(1.0052) is described as a perplexity that rises by 0.52 %%");
    is_str(ft_accuracy_target_describe(text, FT_LOSS_ACCURACY, 0.003), "accuracy -0.30 pt",
           "a lost share of 0.003 is described as 0.3 points of accuracy");
}

/* ---- Plans -------------------------------------------------------------------------------- */

/* Calibrates with ranges that clip two values of five. */
static ft_report calibrate(const char *target, int threads, bool best_effort, ft_status expected)
{
    ft_report report;
    ft_calibration_options job = { .input = files.real,
                                   .output = files.quantized,
                                   .data = files.samples,
                                   .eval = files.samples,
                                   .method = FT_METHOD_PERCENTILE,
                                   .percentile = 60.0,
                                   .force = true,
                                   .best_effort = best_effort,
                                   .threads = threads };
    if (!ft_accuracy_target_parse(&job.target, target))
        bail_out("%s", target);
    ft_status status = ft_calibrate(&job, NULL, &report, &err);
    is_int(status, expected, "a calibration with the target %s ends as expected", target);
    return report;
}

static size_t changed_units(const ft_report *report)
{
    return report->mixed.per_token + report->mixed.in_float;
}

static void test_plans(void)
{
    ft_report none = calibrate("none", 1, false, FT_OK);
    ok(none.mixed.samples == 0, "without a target nothing is measured");
    ft_report loose = calibrate("cosine=0.2", 1, false, FT_OK);
    is_int((long long) changed_units(&loose), 0, "static scales stay if they meet the target");
    double before = loose.mixed.initial_loss;
    ft_report middle = calibrate("cosine=0.99", 1, false, FT_OK);
    ok(changed_units(&middle) > 0 && middle.mixed.loss < before,
       "a target that static scales miss changes %zu of %zu units", changed_units(&middle),
       middle.mixed.units);
    ok(middle.mixed.verified_loss <= 0.01, "the plan meets the target");
    near(1.0 - middle.evaluation.cosine, middle.mixed.verified_loss, 1e-6,
         "the loss is what the evaluation of the whole model finds");
    ft_report strict = calibrate("cosine=0.9999995", 1, false, FT_OK);
    ok(strict.mixed.loss < middle.mixed.loss, "a stricter target is met by a plan of less loss");
    ok(strict.mixed.in_float > middle.mixed.in_float && strict.mixed.cost > 0.0,
       "matrices return to float where scales per token do not suffice");
    ft_report_fini(&none);
    ft_report_fini(&loose);
    ft_report_fini(&middle);
    ft_report_fini(&strict);

    ft_report missed = calibrate("cosine=0.99999999999", 1, false, FT_EUNSUPPORTED);
    has(err.text, "--best-effort", "a target that no plan meets is an error that names a way out");
    ft_report effort = calibrate("cosine=0.99999999999", 1, true, FT_OK);
    ok(effort.mixed.verified_loss > effort.mixed.target,
       "with best effort a target that no plan meets is accepted");
    ft_report_fini(&missed);
    ft_report_fini(&effort);
}

static void test_bytes(void)
{
    unsigned char *bytes[2];
    size_t size[2];
    for (int i = 0; i < 2; i++) {
        ft_report report = calibrate("cosine=0.999", 1 + 2 * i, false, FT_OK);
        ft_report_fini(&report);
        bytes[i] = folder_read(files.quantized, &size[i]);
    }
    ok(size[0] == size[1] && memcmp(bytes[0], bytes[1], size[0]) == 0,
       "three threads choose and write the bytes of one thread");
    free(bytes[0]);
    free(bytes[1]);
    ft_model *fused = calibrated_open(files.quantized, NULL);
    ft_model *unfused = calibrated_open(files.quantized, &(ft_model_options){ .no_fuse = true });
    static const int32_t ids[] = { 4, 9, 2, 7, 7 };
    const model_input input = { 1, 5, ids, NULL, NULL };
    size_t n, m;
    float *a = calibrated_result(fused, &input, "last_hidden_state", &n);
    float *b = calibrated_result(unfused, &input, "last_hidden_state", &m);
    ok(n == m && memcmp(a, b, n * sizeof *a) == 0,
       "fused and unfused plans of mixed precision give the same bytes");
    free(a);
    free(b);
    ft_model_close(fused);
    ft_model_close(unfused);
}

int main(void)
{
    tiny t;
    tiny_make(&t, TINY_BERT, "");
    calibrated_make(&files, &t);
    ft_model *real = calibrated_open(files.real, NULL);
    ft_dataset data;
    must(ft_dataset_read(&data, files.samples, real, &err));
    test_units(real);
    test_losses(real, &data);
    test_changes(real, &data);
    test_sensitivities(real, &data);
    test_targets(real);
    test_plans();
    test_bytes();
    ft_dataset_fini(&data);
    ft_model_close(real);
    tiny_remove(&t);
    return done_testing();
}
