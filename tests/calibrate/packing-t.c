/*
 * packing-t.c - padding, masks and batches: the outputs of a sequence do not depend on its batch.
 *
 * The hidden states of int8 models are bit-identical.  Float GEMMs call the BLAS library, which may
 * sum in another order for another number of rows: the outputs of float models and of the
 * classifier of every model are close, not equal.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/ft.h"
#include "runtime/mem.h"
#include "tests/lib/models/calibrated.h"
#include "tests/tap/tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { HIDDEN = 8, LABELS = 3 };

/* The largest difference between two arrays. */
static double distance(const float *a, const float *b, size_t count)
{
    double most = 0.0;
    for (size_t i = 0; i < count; i++)
        most = fmax(most, fabs((double) a[i] - (double) b[i]));
    return most;
}

/* Equal bits, or close values when BLAS takes part. */
static void same(const float *a, const float *b, size_t count, bool exact, const char *sentence)
{
    if (exact)
        ok(memcmp(a, b, count * sizeof *a) == 0, "int8: %s", sentence);
    else
        near(distance(a, b, count), 0.0, 1e-5, "float: %s", sentence);
}

static bool all_zero(const float *values, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (values[i] != 0.0f)
            return false;
    return true;
}

/* ---- Padding ------------------------------------------------------------------------------ */

static const int32_t padded_ids[] = { 4, 9, 2, 0, 0, 0, 7, 7, 3, 12, 19, 5, 8, 0, 0, 0, 0, 0 };
static const int32_t padded_mask[] = { 1, 1, 1, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0 };
static const model_input padded = { 3, 6, padded_ids, padded_mask, NULL };
static const int lengths[] = { 3, 6, 1 };

static void test_padding(const ft_model *model, bool exact)
{
    size_t count, one;
    float *all = calibrated_result(model, &padded, "last_hidden_state", &count);
    bool zero = true;
    for (int row = 0; row < padded.rows; row++) {
        const model_input alone = { 1, lengths[row], padded_ids + row * padded.cols, NULL, NULL };
        float *found = calibrated_result(model, &alone, "last_hidden_state", &one);
        float *rows = all + row * padded.cols * HIDDEN;
        same(found, rows, one, exact,
             "a sequence alone gives the hidden states that it has in a padded batch");
        zero = zero && all_zero(rows + one, (size_t) (padded.cols - lengths[row]) * HIDDEN);
        free(found);
    }
    ok(zero && count == 3 * 6 * HIDDEN, "last_hidden_state is zero at masked positions");
    free(all);
}

static void test_batches(const ft_model *model, bool exact)
{
    size_t count, one;
    float *all = calibrated_result(model, &padded, "logits", &count);
    const int32_t order[] = { 2, 0, 1 };
    int32_t ids[18], mask[18];
    for (int row = 0; row < 3; row++) {
        memcpy(ids + row * 6, padded_ids + order[row] * 6, 6 * sizeof *ids);
        memcpy(mask + row * 6, padded_mask + order[row] * 6, 6 * sizeof *mask);
    }
    float *moved =
        calibrated_result(model, &(model_input){ 3, 6, ids, mask, NULL }, "logits", &one);
    for (int row = 0; row < 3; row++)
        near(distance(moved + row * LABELS, all + order[row] * LABELS, LABELS), 0.0, 1e-5,
             "%s: the logits of a sequence do not depend on its position in the batch",
             exact ? "int8" : "float");
    free(all);
    free(moved);
}

static void test_again(const ft_model *model, bool exact)
{
    const model_input small = { 1, 2, (const int32_t[]){ 11, 13 }, NULL, NULL };
    ft_session *session = calibrated_session(model, &(ft_session_options){ .threads = 1 });
    size_t n, m;
    calibrated_run(session, &padded);
    float *first = calibrated_get(session, "last_hidden_state", &n);
    calibrated_run(session, &small);
    float *other = calibrated_get(session, "last_hidden_state", &m);
    float *expected = calibrated_result(model, &small, "last_hidden_state", &m);
    same(other, expected, m, exact,
         "a second forward pass of another shape is independent of the first");
    calibrated_run(session, &padded);
    float *again = calibrated_get(session, "last_hidden_state", &m);
    ok(n == m && memcmp(first, again, n * sizeof *first) == 0,
       "%s: repeating an input gives identical bits", exact ? "int8" : "float");
    free(first);
    free(other);
    free(expected);
    free(again);
    ft_session_close(session);
}

static void test_types(const ft_model *model)
{
    const int32_t zeros[18] = { 0 }, types[18] = { 0, 0, 1 };
    size_t n;
    float *none = calibrated_result(model, &padded, "logits", &n);
    float *zero = calibrated_result(model, &(model_input){ 3, 6, padded_ids, padded_mask, zeros },
                                    "logits", &n);
    float *some = calibrated_result(model, &(model_input){ 3, 6, padded_ids, padded_mask, types },
                                    "logits", &n);
    ok(memcmp(none, zero, n * sizeof *none) == 0,
       "omitting token_type_ids is the same as setting all of them to 0");
    ok(memcmp(none, some, LABELS * sizeof *none) != 0,
       "another token_type_id changes the logits of its sequence");
    near(distance(none + LABELS, some + LABELS, n - LABELS), 0.0, 1e-5,
         "another token_type_id leaves the logits of other sequences unchanged");
    free(none);
    free(zero);
    free(some);
}

static void test_classifier(const ft_model *model, bool exact)
{
    test_padding(model, exact);
    test_batches(model, exact);
    test_again(model, exact);
    test_types(model);
}

/* ---- Positions ---------------------------------------------------------------------------- */

/* Checks the positions of the tokens in a forward pass. */
static void positions_are(const ft_model *model, const model_input *input, const float *expected,
                          size_t expected_count, const char *sentence)
{
    static const char *const keep[] = { "positions", NULL };
    ft_session *session =
        calibrated_session(model, &(ft_session_options){ .threads = 1, .keep = keep });
    size_t count;
    calibrated_run(session, input);
    float *found = calibrated_get(session, "positions", &count);
    if (!ok(count == expected_count && memcmp(found, expected, count * sizeof *found) == 0, "%s",
            sentence))
        for (size_t i = 0; i < count; i++)
            diag("token %zu has position %g", i, (double) found[i]);
    free(found);
    ft_session_close(session);
}

static void test_bert_positions(const ft_model *model)
{
    const int32_t ids[] = { 0, 0, 5, 6, 4, 5, 0, 7 }, mask[] = { 0, 0, 1, 1, 1, 1, 0, 1 };
    positions_are(model, &(model_input){ 2, 4, ids, mask, NULL }, (float[]){ 2, 3, 0, 1, 3 }, 5,
                  "BERT numbers positions by column, independently of the mask");
}

/* Left padding and inner masks, for an encoder that does not pool the first token. */
static void test_masks(const ft_model *model, bool exact)
{
    const int32_t ids[] = { 0, 0, 5, 6, 4, 5, 11, 7 }, other[] = { 3, 1, 5, 6, 4, 5, 2, 7 };
    const int32_t mask[] = { 0, 0, 1, 1, 1, 1, 0, 1 };
    size_t count;
    float *a = calibrated_result(model, &(model_input){ 2, 4, ids, mask, NULL },
                                 "last_hidden_state", &count);
    float *b = calibrated_result(model, &(model_input){ 2, 4, other, mask, NULL },
                                 "last_hidden_state", &count);
    ok(all_zero(a, 2 * HIDDEN) && all_zero(a + 6 * HIDDEN, HIDDEN),
       "hidden states are zero at left-padded and inner masked positions");
    ok(!all_zero(a + 2 * HIDDEN, HIDDEN) && !all_zero(a + 7 * HIDDEN, HIDDEN),
       "hidden states are nonzero at unmasked positions");
    same(a, b, count, exact, "the ids at masked positions do not affect the hidden states");
    free(a);
    free(b);
}

static void test_roberta(const ft_model *model)
{
    const int32_t ids[] = { 5, 6, 7, 1, 1, 1, 1, 5, 6, 7, 5, 1, 6, 7, 7 };
    const int32_t mask[] = { 1, 1, 1, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 0, 1 };
    positions_are(model, &(model_input){ 3, 5, ids, mask, NULL },
                  (float[]){ 2, 3, 4, 2, 3, 4, 2, 1, 3, 5 }, 10,
                  "RoBERTa numbers non-padding ids from 2 on, masked or not, and padding as 1");
    ft_session *session = calibrated_session(model, &(ft_session_options){ .threads = 1 });
    ft_tensor long_row = { .dtype = FT_I32, .ndim = 2, .dim = { 1, 9 }, .data = (int32_t[9]){ 5 } };
    ft_error err;
    is_int(ft_session_set(session, "input_ids", &long_row, &err), FT_ELIMIT,
           "RoBERTa accepts fewer positions than its position table has rows");
    is_str(err.text, "input_ids: sequences of 9 positions, but the model has 8",
           "the error states the number of positions and the limit");
    ft_session_close(session);
}

/* ---- Models ------------------------------------------------------------------------------- */

typedef void (*test)(const ft_model *model, bool exact);

/* Runs a test on the float and the int8 artifact of a checkpoint. */
static void on_both(tiny *t, test run)
{
    calibrated files;
    calibrated_make(&files, t);
    for (int exact = 0; exact < 2; exact++) {
        ft_model *model = calibrated_open(exact ? files.quantized : files.real, NULL);
        run(model, exact);
        ft_model_close(model);
    }
    tiny_remove(t);
}

static void test_bert(const ft_model *model, bool exact)
{
    test_masks(model, exact);
    if (!exact)
        test_bert_positions(model);
}

static void test_roberta_once(const ft_model *model, bool exact)
{
    if (!exact)
        test_roberta(model);
}

static void test_distilbert(const ft_model *model, bool exact)
{
    const int32_t types[18] = { 0 };
    ft_session *session = calibrated_session(model, &(ft_session_options){ .threads = 1 });
    ft_tensor tensor = { .dtype = FT_I32, .ndim = 2, .dim = { 3, 6 } };
    ft_error err;
    calibrated_run(session, &padded);
    tensor.data = (void *) (uintptr_t) types;
    is_int(ft_session_set(session, "token_type_ids", &tensor, &err), FT_EARG,
           "ft_session_set() refuses token_type_ids for a model without token types");
    ft_session_close(session);
    test_padding(model, exact);
}

int main(void)
{
    tiny t;
    tiny_make_classifier(&t);
    on_both(&t, test_classifier);
    tiny_make(&t, TINY_BERT, "");
    on_both(&t, test_bert);
    tiny_make(&t, TINY_ROBERTA, "roberta.");
    on_both(&t, test_roberta_once);
    tiny_make(&t, TINY_DISTILBERT, "distilbert.");
    on_both(&t, test_distilbert);
    return done_testing();
}
