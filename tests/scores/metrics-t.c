/*
 * metrics-t.c - every metric has the value of its published implementation.
 *
 * tests/golden/metrics.json has random predictions and what scikit-learn, seqeval, sacreBLEU and
 * scipy say of them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/scores/metrics/bleu.h"
#include "runtime/scores/metrics/chrf.h"
#include "runtime/scores/metrics/entities.h"
#include "runtime/scores/metrics/exact_match.h"
#include "runtime/scores/metrics/label_f1.h"
#include "runtime/scores/metrics/spearman.h"
#include "runtime/scores/metrics/squad.h"
#include "tests/lib/golden.h"
#include "tests/tap/tap.h"

#include <math.h>
#include <string.h>

/* Both sides compute in double from equal counts; sums of logarithms differ in the last bits. */
static const double tolerance = 1e-9;

enum { MAX_ITEMS = 512, MAX_LABELS = 16 };

static double number(const json_t *of, const char *key)
{
    return json_number_value(json_object_get(of, key));
}

static const char *text_at(const json_t *list, size_t i)
{
    return json_string_value(json_array_get(list, i));
}

/* The strings of a list; returns their number. */
static size_t strings(const json_t *list, const char *out[MAX_ITEMS])
{
    for (size_t i = 0; i < json_array_size(list); i++)
        out[i] = text_at(list, i);
    return json_array_size(list);
}

static void test_translations(const json_t *test, size_t number_of)
{
    const json_t *pairs = json_object_get(test, "pairs");
    ft_bleu bleu = { 0 };
    ft_chrf chrf = { 0 };
    bool added = true;
    for (size_t i = 0; i < json_array_size(pairs); i++) {
        const char *found = text_at(json_array_get(pairs, i), 0),
                   *expected = text_at(json_array_get(pairs, i), 1);
        added &= ft_bleu_add(&bleu, found, strlen(found), expected, strlen(expected)) &&
                 ft_chrf_add(&chrf, found, strlen(found), expected, strlen(expected));
    }
    ok(added, "corpus %zu of translations fits in memory", number_of);
    near(ft_bleu_score(&bleu), number(test, "bleu"), tolerance * 100,
         "BLEU of corpus %zu is sacreBLEU's", number_of);
    near(ft_chrf_score(&chrf), number(test, "chrf"), tolerance * 100,
         "chrF of corpus %zu is sacreBLEU's", number_of);
}

static void test_entities(const json_t *test, size_t number_of)
{
    const json_t *rows = json_object_get(test, "rows");
    ft_entity_counts counts = { 0 };
    bool added = true;
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const char *found[MAX_ITEMS], *expected[MAX_ITEMS];
        size_t count = strings(json_array_get(json_array_get(rows, i), 0), found);
        strings(json_array_get(json_array_get(rows, i), 1), expected);
        added &= ft_entity_counts_add(&counts, found, expected, count);
    }
    ok(added, "set %zu of tag sequences fits in memory", number_of);
    near(ft_entity_precision(&counts), number(test, "precision"), tolerance,
         "the precision of the entities in set %zu is seqeval's", number_of);
    near(ft_entity_recall(&counts), number(test, "recall"), tolerance,
         "the recall of the entities in set %zu is seqeval's", number_of);
    near(ft_entity_f1(&counts), number(test, "f1"), tolerance,
         "the F1 of the entities in set %zu is seqeval's", number_of);
}

static void test_answer(const json_t *test, size_t number_of)
{
    const char *expected[MAX_ITEMS], *found = json_string_value(json_object_get(test, "found"));
    size_t count = strings(json_object_get(test, "expected"), expected);
    ft_answer_score score;
    if (!ft_answer_compare(found, expected, count, &score))
        bail_out("no memory");
    ok(fabs(score.exact - number(test, "exact")) <= tolerance &&
           fabs(score.f1 - number(test, "f1")) <= tolerance,
       "exact match and F1 of answer %zu are those of SQuAD's script (%g %g, %g %g)", number_of,
       score.exact, score.f1, number(test, "exact"), number(test, "f1"));
}

static void test_ranks(const json_t *test, size_t number_of)
{
    double x[MAX_ITEMS], y[MAX_ITEMS], correlation;
    const json_t *list = json_object_get(test, "x"), *other = json_object_get(test, "y");
    size_t count = json_array_size(list);
    for (size_t i = 0; i < count; i++) {
        x[i] = json_number_value(json_array_get(list, i));
        y[i] = json_number_value(json_array_get(other, i));
    }
    if (!ft_spearman(x, y, count, &correlation))
        bail_out("no memory");
    near(correlation, number(test, "spearman"), tolerance,
         "the rank correlation of list %zu is scipy's", number_of);
}

static void test_labels(const json_t *test, size_t number_of)
{
    ft_label_counts counts[MAX_LABELS] = { 0 };
    const json_t *expected = json_object_get(test, "expected"),
                 *found = json_object_get(test, "found");
    for (size_t i = 0; i < json_array_size(expected); i++) {
        size_t a = (size_t) json_integer_value(json_array_get(found, i)),
               b = (size_t) json_integer_value(json_array_get(expected, i));
        counts[a].predicted++;
        counts[b].expected++;
        counts[a].right += a == b;
    }
    near(ft_macro_f1(counts, (size_t) number(test, "labels")), number(test, "macro_f1"), tolerance,
         "the macro F1 of list %zu is scikit-learn's", number_of);
}

static void test_all(const json_t *golden, const char *key,
                     void (*test)(const json_t *test, size_t number_of))
{
    const json_t *list = json_object_get(golden, key);
    for (size_t i = 0; i < json_array_size(list); i++)
        test(json_array_get(list, i), i + 1);
}

/* What the published implementations do not define, or warn about. */
static void test_empty(void)
{
    const double equal[] = { 1.0, 1.0 }, rising[] = { 1.0, 2.0 };
    double correlation = 0.0;
    ok(ft_bleu_score(&(ft_bleu){ 0 }) == 0.0, "BLEU of no translation is 0");
    ok(ft_chrf_score(&(ft_chrf){ 0 }) == 0.0, "chrF of no translation is 0");
    ok(ft_entity_f1(&(ft_entity_counts){ 0 }) == 0.0, "F1 of no entity is 0");
    ok(isnan(ft_macro_f1(NULL, 0)), "the macro F1 of no label is NaN");
    ok(ft_spearman(equal, rising, 2, &correlation) && isnan(correlation),
       "the rank correlation of equal values is NaN");
}

static bool match(const char *a, const char *b)
{
    return ft_texts_match(a, strlen(a), b, strlen(b));
}

static void test_exact_match(void)
{
    ok(match("a b", "a b"), "equal texts match");
    ok(match("\n a b", "a b \t\xe2\x80\x89\x1f"), "white space around texts does not count");
    ok(!match("a b", "a  b"), "white space inside of texts counts");
    ok(!match("a b", "a b."), "punctuation counts");
    ok(!match("a b", "A b"), "case counts");
    ok(!match("a b", "a") && !match("a", "a b"), "a part of a text does not match it");
    ok(match("", " ") && !match("", "a"), "an empty text matches white space alone");
}

int main(void)
{
    json_t *golden = golden_json("metrics.json");
    test_all(golden, "translations", test_translations);
    test_all(golden, "entities", test_entities);
    test_all(golden, "answers", test_answer);
    test_all(golden, "ranks", test_ranks);
    test_all(golden, "labels", test_labels);
    test_exact_match();
    test_empty();
    json_decref(golden);
    return done_testing();
}
