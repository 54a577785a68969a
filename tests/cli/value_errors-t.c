/*
 * value_errors-t.c - ft-inspect --diff -d: values, ranges and matrices are compared as they were
 * before smoothing, folded or not.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/tools/inspect/suspects.h"
#include "runtime/tools/inspect/value_errors.h"

#include "calibrate/calibrate.h"
#include "runtime/model/folded.h"
#include "tests/lib/models/calibrated.h"
#include "tests/lib/models/tiny.h"
#include "tests/tap/tap.h"

#include <string.h>

enum { HIDDEN = 8, OUTLIER = 3 };

static calibrated files;
static ft_model *real;
static ft_dataset data;
static ft_error err;

static void must(ft_status status)
{
    if (status != FT_OK)
        bail_out("%s", err.text);
}

/* The SQNR of a value against the float model. */
static double sqnr_db(const ft_model *quantized, const char *name)
{
    const ft_model *const both[] = { real, quantized };
    ft_value_errors errors;
    double sqnr = -1.0;
    must(ft_value_errors_measure(&errors, both, &data, data.rows, 1, &err));
    for (size_t i = 0; i < errors.count; i++)
        if (strcmp(errors.value[i].name[0], name) == 0)
            sqnr = ft_value_sqnr_db(&errors.value[i]);
    ft_value_errors_fini(&errors);
    return sqnr;
}

/* ---- Factors that are kept ----------------------------------------------------------------- */

static double smoothed_db(const ft_smoothing *smoothing, size_t count)
{
    ft_model *quantized;
    must(ft_model_open_with_config(
        &quantized, files.real, NULL,
        &(ft_quant_config){
            .mode = FT_MODE_INT8, .dynamic = true, .smoothing = smoothing, .n_smoothing = count },
        &err));
    double sqnr = sqnr_db(quantized, "embed.norm");
    ft_model_close(quantized);
    return sqnr;
}

static void test_kept(void)
{
    static float factor[HIDDEN] = { 1, 1, 1, 1, 1, 1, 1, 1 };
    const ft_smoothing smoothing = { "embed.norm", HIDDEN, factor };
    double without = smoothed_db(NULL, 0);
    factor[OUTLIER] = 2.0f;
    double with = smoothed_db(&smoothing, 1);
    /* half the magnitude of a column costs at most 6 dB, a column of another size all but 10 dB */
    ok(without > 30.0 && with > without - 6.0,
       "a smoothed value is as close as without smoothing: %.1f dB and %.1f dB", with, without);
}

/* ---- Factors that are folded --------------------------------------------------------------- */

static ft_model *open_folded(char path[160])
{
    ft_report report;
    snprintf(path, 160, "%s.folded.ft", files.real);
    must(ft_calibrate(&(ft_calibration_options){ .input = files.real,
                                                 .output = path,
                                                 .data = files.samples,
                                                 .smooth = FT_SMOOTH_ALPHA,
                                                 .smooth_alpha = 1.0,
                                                 .method = FT_METHOD_AUTO,
                                                 .threads = 1 },
                      NULL, &report, &err));
    ft_report_fini(&report);
    return calibrated_open(path, NULL);
}

/* What the worst scale of an artifact loses. */
static double most_lost_db(const ft_model *quantized)
{
    ft_suspects suspects;
    must(ft_suspects_find(&suspects, files.real, quantized, &data, data.rows, &err));
    double lost = suspects.count > 0 ? ft_suspect_loss_db(&suspects.suspect[0]) : -1.0;
    ft_suspects_fini(&suspects);
    return lost;
}

static void test_folded(void)
{
    char path[160];
    ft_model *folded = open_folded(path), *plain = calibrated_open(files.quantized, NULL);
    ok(ft_folded_count(folded->artifact) > 0, "%zu values of the artifact have factors",
       ft_folded_count(folded->artifact));
    double with = sqnr_db(folded, "layer.0.attn.context"),
           without = sqnr_db(plain, "layer.0.attn.context");
    ok(with > without - 6.0 && with > 20.0,
       "a folded value is as close as without factors: %.1f dB and %.1f dB", with, without);
    ok(sqnr_db(folded, "layer.0.attn.v") > 20.0, "so is the value whose rows were divided");
    double lost = most_lost_db(folded);
    ok(lost >= 0.0 && lost < 2.0,
       "on the samples of its calibration, the worst scale loses %.2f dB", lost);
    ft_model_close(folded);
    ft_model_close(plain);
    remove(path);
}

int main(void)
{
    tiny t;
    tiny_make(&t, TINY_BERT, "");
    calibrated_make(&files, &t);
    real = calibrated_open(files.real, NULL);
    must(ft_dataset_read(&data, files.samples, real, &err));
    test_kept();
    test_folded();
    ft_dataset_fini(&data);
    ft_model_close(real);
    tiny_remove(&t);
    return done_testing();
}
