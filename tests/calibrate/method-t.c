/*
 * method-t.c - histograms and calibration methods: against ModelOpt and against the definitions.
 *
 * The golden values are in tests/golden/amax-modelopt.tsv; make-amax.py generates them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/ranges/method.h"
#include "kernels/cpu/rowwise/count.h"
#include "kernels/half.h"
#include "runtime/mem.h"
#include "tests/lib/amax_inputs.h"
#include "tests/tap/tap.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- The golden file ---------------------------------------------------------------------- */

typedef struct golden {
    char input[32], method[24], index[24];
    float amax;
} golden;

static golden line[400];
static size_t lines;

static void read_golden(void)
{
    char path[4096], text[256];
    snprintf(path, sizeof path, "%s/tests/golden/amax-modelopt.tsv", getenv("FT_SRCDIR"));
    FILE *file = fopen(path, "r");
    if (file == NULL)
        bail_out("cannot open %s", path);
    while (fgets(text, sizeof text, file) != NULL) {
        golden *g = &line[lines];
        if (text[0] != '#' && lines < FT_COUNT(line) &&
            sscanf(text, "%31[^\t]\t%23[^\t]\t%23[^\t]\t%f", g->input, g->method, g->index,
                   &g->amax) == 4)
            lines++;
    }
    fclose(file);
}

static const golden *find(const char *input, const char *method)
{
    for (size_t i = 0; i < lines; i++)
        if (strcmp(line[i].input, input) == 0 && strcmp(line[i].method, method) == 0)
            return &line[i];
    bail_out("no golden number for %s, %s", input, method);
}

/* ---- Direct implementations of the definitions -------------------------------------------- */

/* The KL divergence of keeping `kept` bins; NaN when Q is empty, as in the reference. */
static double divergence_by_definition(const ft_histogram *h, int kept)
{
    double b[FT_BINS], sum[128] = { 0 }, filled[128] = { 0 }, p_total = 0, q_total = 0, d = 0;
    for (int i = 0; i < FT_BINS; i++)
        b[i] = (double) h->bin[i == 0 ? 1 : i];
    double beyond = 0;
    for (int i = kept; i < FT_BINS; i++)
        beyond += b[i];
    for (int i = 0; i < kept; i++)
        if (b[i] > 0) {
            sum[i * 128 / kept] += b[i];
            filled[i * 128 / kept] += 1;
        }
    for (int i = 0; i < kept; i++) {
        p_total += b[i];
        if (b[i] > 0)
            q_total += sum[i * 128 / kept] / filled[i * 128 / kept];
    }
    p_total += beyond;
    if (q_total == 0)
        return nan("");
    for (int i = 0; i < kept; i++) {
        double p = (b[i] + (i == kept - 1 ? beyond : 0)) / p_total;
        double q = b[i] > 0 ? sum[i * 128 / kept] / filled[i * 128 / kept] / q_total : 0;
        if (p > 0 && q == 0)
            return HUGE_VAL;
        if (p > 0)
            d += p * log(p / q);
    }
    return d;
}

static double square_error_by_definition(const ft_histogram *h, int index)
{
    float amax = (h->edge[index] + h->edge[index + 1]) / 2, scale = 127 / amax;
    double sum = 0;
    for (int i = 0; i < FT_BINS; i++) {
        float c = (h->edge[i] + h->edge[i + 1]) / 2, code = rintf(c * scale);
        double change = (double) ((code > 127 ? 127 : code) / scale - c);
        sum += change * change * (double) h->bin[i];
    }
    return sum;
}

/* ---- Each input against the reference ----------------------------------------------------- */

static ft_counters empty_point(void)
{
    static char name[] = "layer.0.point";
    ft_counters point = { .name = name };
    if (!ft_counts_init(&point.counts))
        bail_out("no memory for counters");
    return point;
}

static ft_histogram histogram_of(const float *value, size_t n)
{
    ft_counters point = empty_point();
    ft_histogram h;
    ft_error err;
    ft_cpu_counts_add(&point.counts, value, n);
    if (ft_histogram_init(&h, &point, &err) != FT_OK)
        bail_out("%s", err.text);
    ft_counts_fini(&point.counts);
    return h;
}

static bool same_hash(const golden *g, const void *bytes, size_t size)
{
    return strtoull(g->index, NULL, 16) == fnv(bytes, size);
}

/*
 * When the divergence at the reference's index is NaN, the reference has taken NaN for its minimum:
 * then ours must be the minimum of the numbers.  Otherwise the index must agree, or the divergence
 * within 1e-9, because the reference sums in another order.
 */
static bool same_entropy(const ft_histogram *h, const ft_amax_result *c, const golden *g)
{
    double theirs = divergence_by_definition(h, atoi(g->index));
    if (theirs != theirs)
        return c->objective <= 0.0;
    return c->index == atoi(g->index) || fabs(c->objective - theirs) <= 1e-9;
}

/* The same or a neighbouring bin, or a score within 1e-5: the reference sums 2048 floats. */
static bool same_mse(const ft_histogram *h, const ft_amax_result *c, const golden *g)
{
    return abs(c->index - atoi(g->index)) <= 1 ||
           square_error_by_definition(h, atoi(g->index)) <= 1.00001 * c->objective;
}

static bool same_choice(const ft_histogram *h, const ft_amax_result *c, const golden *g)
{
    bool index = strcmp(g->method, "max") == 0       ? c->amax == g->amax
                 : strcmp(g->method, "mse") == 0     ? same_mse(h, c, g)
                 : strcmp(g->method, "entropy") == 0 ? same_entropy(h, c, g)
                                                     : c->index == atoi(g->index);
    /* 1e-6: bin edges are within two ulps of torch's, which sums in vectors */
    bool amax = c->index != atoi(g->index) || fabsf(c->amax - g->amax) <= 1e-6f * g->amax;
    if (!index || !amax)
        diag("index %d, amax %.9g; reference %s, %.9g", c->index, (double) c->amax, g->index,
             (double) g->amax);
    return index && amax;
}

/* The smallest magnitude that this fraction of the values does not exceed. */
static float quantile(const ft_histogram *h, double fraction)
{
    uint64_t below = 0;
    for (size_t i = 0; i < h->size; i++)
        if ((double) (below += h->counts[i]) >= fraction * (double) h->total)
            return h->magnitude[i];
    return h->amax;
}

/* amax is the lower edge of the quantile's bin; 1e-12 covers rounding of 2048 fractions. */
static bool holds_quantile(const ft_histogram *h, const ft_amax_result *c, double percentile)
{
    float width = h->edge[1] * 1.000001f;
    return c->amax <= quantile(h, percentile / 100.0 + 1e-12) &&
           quantile(h, percentile / 100.0 - 1e-12) <= c->amax + width;
}

static void test_input(const amax_input *in)
{
    static const double percentile[FT_AMAX_CANDIDATES] = { 0, 99, 99.9, 99.99, 99.999, 0, 0 };
    ok(same_hash(find(in->name, "values"), in->value, in->n * sizeof *in->value),
       "%s: the test input equals the input of the reference", in->name);
    ft_histogram h = histogram_of(in->value, in->n);
    if (strcmp(in->name, "f32-many") != 0)
        ok(same_hash(find(in->name, "histogram"), h.bin, sizeof h.bin),
           "%s: every histogram bin equals the reference's count", in->name);

    ft_amax_result candidate[FT_AMAX_CANDIDATES], best;
    ft_compute_amax_candidates(candidate, &h);
    ft_compute_amax(&best, FT_METHOD_AUTO, &h, NULL);
    bool quantiles = true, highest = true;
    for (size_t i = 0; i < FT_AMAX_CANDIDATES; i++) {
        const ft_amax_result *c = &candidate[i];
        ok(same_choice(&h, c, find(in->name, c->method)),
           "%s: %s chooses the amax of the reference", in->name, c->method);
        quantiles = quantiles && (percentile[i] == 0 || holds_quantile(&h, c, percentile[i]));
        highest = highest && best.distortion.sqnr_db >= c->distortion.sqnr_db;
    }
    ok(quantiles,
       "%s: percentile amaxes are at most one bin below the exact quantile and never above it",
       in->name);
    ok(highest, "%s: the auto method has the highest SQNR (%s)", in->name, best.method);
    ft_histogram_fini(&h);
}

static void test_reference(void)
{
    for (size_t i = 0; i < amax_input_count(); i++) {
        amax_input in = make_amax_input(i);
        if (strcmp(in.name, "zeros") != 0)
            test_input(&in);
        free(in.value);
    }
}

/* ---- The definitions ---------------------------------------------------------------------- */

/* Vectors A, B and G with divergences that another program computed with exact sums. */
static void test_vectors(void)
{
    static const double divergence[] = { 2.71908444e-3, 1.31657319e-2, 2.0999e-3 };
    static const double tolerance[] = { 5e-12, 5e-11, 5e-8 }; /* half of the last digit */
    static const uint64_t first[2][4] = { { 475, 448, 437, 485 }, { 82, 78, 79, 76 } };
    for (size_t k = 0; k < 3; k++) {
        amax_input in = make_amax_input(k);
        ft_histogram h = histogram_of(in.value, in.n);
        ft_amax_result c;
        ft_compute_amax(&c, FT_METHOD_ENTROPY, &h, NULL);
        near(c.objective, divergence[k], tolerance[k],
             "%s: the minimal divergence equals the reference", in.name);
        if (k < 2)
            ok(memcmp(h.bin, first[k], sizeof first[k]) == 0,
               "%s: the first bins equal the reference", in.name);

        int least = FT_BINS;
        double best = HUGE_VAL, second = HUGE_VAL;
        for (int kept = 128; kept <= FT_BINS; kept++) {
            double d = divergence_by_definition(&h, kept);
            second = d <= best ? best : d < second ? d : second;
            least = d <= best ? kept : least;
            best = d <= best ? d : best;
        }
        is_int(c.index, least, "%s: prefix sums find the same threshold as the definition",
               in.name);
        near(c.objective, best, 1e-12, "%s: prefix sums give the same divergence as the definition",
             in.name);
        near(c.second_best, second, 1e-12,
             "%s: prefix sums give the same second-best divergence as the definition", in.name);
        ft_histogram_fini(&h);
        free(in.value);
    }
}

/* 100 values, half 1 and half -2: for amax 2 they quantize to 64 (63.5 to even) and -127. */
static void test_distortion(void)
{
    float value[100];
    for (int i = 0; i < 100; i++)
        value[i] = i % 2 ? 1.0f : -2.0f;
    ft_histogram h = histogram_of(value, 100);
    double error = (double) (64 * (2.0f / 127.0f)) - 1.0;
    double top = (double) (127 * (2.0f / 127.0f)) - 2.0;
    near(ft_histogram_distortion(&h, 2.0f).sqnr_db, 10 * log10(5.0 / (error * error + top * top)),
         1e-9, "the SQNR of two distinct values equals the value computed by hand");
    near(ft_histogram_distortion(&h, 2.0f).clipped, 0.0, 0.0,
         "an amax equal to the maximum clips no value");
    near(ft_histogram_distortion(&h, 1.5f).clipped, 0.5, 0.0,
         "an amax of 1.5 clips half of the values");
    near(ft_histogram_distortion(&h, 1.0f).sqnr_db, 10 * log10(5.0), 1e-5,
         "clipping 2 to 1 gives an SQNR of 10 log10 5 dB");
    ft_histogram_fini(&h);
}

/* ---- Edge cases --------------------------------------------------------------------------- */

static void test_zero(void)
{
    static const float values[] = { 0.0f, -0.0f, 1e-40f, 0x1p-24f };
    for (size_t n = 2; n <= 4; n += 2) {
        ft_histogram h = histogram_of(values, n);
        for (int m = 0; m < FT_METHODS; m++) {
            ft_amax_result c;
            ft_compute_amax(&c, (ft_method) m, &h, NULL);
            ok(c.status == FT_AMAX_ZERO && c.amax == 1.0f && strcmp(c.method, "zero") == 0,
               "%s: %s returns an amax of 1 and the status FT_AMAX_ZERO",
               n == 2 ? "zeros" : "nothing above 2^-24", ft_method_name((ft_method) m));
        }
        ft_histogram_fini(&h);
    }
    static const float above[] = { 0.0f, 0x1.000002p-24f };
    ft_histogram h = histogram_of(above, 2);
    ft_amax_result c;
    ft_compute_amax(&c, FT_METHOD_MAX, &h, NULL);
    ok(c.status == FT_AMAX_OK && c.amax == above[1],
       "a magnitude just above 2^-24 counts as nonzero");
    ft_histogram_fini(&h);
}

static void test_refusals(void)
{
    static const float values[] = { 1.0f, NAN, -INFINITY, NAN, 2.0f };
    ft_counters point = empty_point();
    ft_histogram h;
    ft_error err;
    is_int(ft_histogram_init(&h, &point, &err), FT_EFORMAT,
           "ft_histogram_init() refuses counters without values");
    has(err.text, "layer.0.point: no value was counted",
        "the error about missing values names the calibration point");
    ft_cpu_counts_add(&point.counts, values, FT_COUNT(values));
    is_int(ft_histogram_init(&h, &point, &err), FT_EFORMAT,
           "ft_histogram_init() refuses NaN and infinities");
    is_str(err.text, "layer.0.point: 2 NaN and 1 infinities beside 2 finite values",
           "the error names the calibration point and counts NaN and infinities");
    ft_histogram_fini(&h);
    ft_counts_fini(&point.counts);
}

/* The reference's float counts saturate at 2^24, which would give the other value. */
static void test_many(void)
{
    ft_counters point = empty_point();
    ft_counts_add_value(&point.counts, ft_bits_from_float(0.25f), 3 << 24);
    ft_counts_add_value(&point.counts, ft_bits_from_float(1.0f), (1 << 24) + 1);
    ft_histogram h;
    ft_error err;
    if (ft_histogram_init(&h, &point, &err) != FT_OK)
        bail_out("%s", err.text);
    is_int((long long) h.total, (4 << 24) + 1, "a histogram counts more than 2^24 values");
    is_int((long long) h.bin[FT_BINS / 4], 3 << 24,
           "one histogram bin counts more than 2^24 values");
    ft_amax_result c;
    ft_compute_amax(&c, FT_METHOD_PERCENTILE, &h, &(ft_method_options){ .percentile = 74 });
    near((double) c.amax, 0.25, 0.0, "a percentile over more than 2^24 values is exact");
    ft_histogram_fini(&h);
    ft_counts_fini(&point.counts);
}

static void test_percentiles(void)
{
    enum { N = 20000 };
    static float value[N];
    ft_amax_result c;
    value[0] = 1.0f;
    value[1] = 0.5f;
    value[2] = -0.5f;
    ft_histogram h = histogram_of(value, N);
    ft_compute_amax(&c, FT_METHOD_PERCENTILE, &h, &(ft_method_options){ .percentile = 99.0 });
    ok(c.status == FT_AMAX_RAISED && strcmp(c.method, "percentile-99.99") == 0 && c.amax == 0.5f,
       "a percentile in the first bin is raised to the next named percentile above it");
    ft_compute_amax(&c, FT_METHOD_PERCENTILE, &h, NULL);
    ok(c.status == FT_AMAX_TOO_FEW_SAMPLES && strcmp(c.method, "percentile-99.99") == 0,
       "the default percentile is 99.99, for which 20000 values are too few");
    ft_compute_amax(&c, FT_METHOD_PERCENTILE, &h, &(ft_method_options){ .percentile = 99.95 });
    is_int(c.status, FT_AMAX_RAISED, "a percentile of 99.95 in the first bin is raised");
    ft_histogram_fini(&h);

    value[1] = value[2] = 0.0f;
    h = histogram_of(value, N);
    ft_compute_amax(&c, FT_METHOD_PERCENTILE, &h, NULL);
    ok(c.status == FT_AMAX_RAISED && strcmp(c.method, "percentile-99.999") == 0 &&
           c.index == FT_BINS - 1,
       "the percentile 99.999 reaches a single nonzero value among zeros");
    ft_compute_amax(&c, FT_METHOD_PERCENTILE, &h, &(ft_method_options){ .percentile = 99.9995 });
    is_int(c.index, FT_BINS - 1,
           "the percentile 99.9995 reaches a single nonzero value among zeros");
    ft_histogram_fini(&h);

    for (int i = 0; i < N; i++)
        value[i] = (float) (i + 1);
    h = histogram_of(value, N);
    ft_compute_amax(&c, FT_METHOD_PERCENTILE, &h, &(ft_method_options){ .percentile = 99.9 });
    is_int(c.status, FT_AMAX_OK, "20000 values are enough for the percentile 99.9");
    ft_compute_amax(&c, FT_METHOD_PERCENTILE, &h, &(ft_method_options){ .percentile = 50 });
    near((double) c.amax, 10000, 10, "the percentile 50 is within one bin of the median");
    ft_histogram_fini(&h);
}

static void test_names(void)
{
    ft_method method;
    for (int m = 0; m < FT_METHODS; m++)
        ok(ft_method_parse(ft_method_name((ft_method) m), &method) && (int) method == m &&
               strlen(ft_method_help((ft_method) m)) > 0,
           "%s is a method name with a line of help", ft_method_name((ft_method) m));
    ok(!ft_method_parse("median", &method), "ft_method_parse() refuses \"median\"");
    is_int(FT_METHOD_AUTO, 0, "the default method is auto");
}

static void test_best(void)
{
    ft_amax_result c[4] = { { .amax = 3, .distortion.sqnr_db = 30 },
                            { .amax = 2, .distortion.sqnr_db = 31 },
                            { .amax = 4, .distortion.sqnr_db = 31 },
                            { .amax = 4, .distortion.sqnr_db = 31 } };
    is_int((long long) ft_best_amax_candidate(c, 4), 2,
           "candidates of equal SQNR are ranked by the largest amax, then by their order");
    c[0].distortion.sqnr_db = HUGE_VAL;
    is_int((long long) ft_best_amax_candidate(c, 4), 0,
           "a candidate without quantization error ranks first");
}

int main(void)
{
    read_golden();
    test_reference();
    test_vectors();
    test_distortion();
    test_zero();
    test_refusals();
    test_many();
    test_percentiles();
    test_names();
    test_best();
    return done_testing();
}
