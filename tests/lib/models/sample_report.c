/*
 * sample_report.c - a calibration report with every kind of content, made from random values.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "tests/lib/models/sample_report.h"

#include "kernels/half.h"
#include "tests/lib/random.h"
#include "tests/tap/tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const values[] = { "attn.q", "attn.probs", "attn.norm", "ffn.act" };
enum { VALUES = sizeof values / sizeof values[0], SAMPLED = 4000, PLANS = 7 };

/* Channel 10 is an outlier. */
static void fill_channels(ft_channel_summary *out, rng *random)
{
    float amax[128];
    for (int i = 0; i < 128; i++)
        amax[i] = (float) rng_uniform(random, 1.0, 3.0);
    amax[10] = 12.0f;
    ft_channel_summary_init(out, amax, 128);
}

/* Values with long tails, and what the methods choose for them. */
static void fill_point(ft_point_report *point, const char *name, rng *random)
{
    ft_error err;
    ft_counters counters = { .name = (char *) (uintptr_t) name };
    ft_histogram histogram;
    if (!ft_counts_init(&counters.counts))
        bail_out("no memory for counters");
    for (int i = 0; i < SAMPLED; i++) {
        double u = rng_uniform(random, -1.0, 1.0);
        float x = (float) fabs(4.0 * u * u * u);
        ft_counts_add_value(&counters.counts, ft_bits_from_float(x), 1);
    }
    if (ft_histogram_init(&histogram, &counters, &err) != FT_OK)
        bail_out("%s", err.text);
    snprintf(point->name, sizeof point->name, "%s", name);
    point->n_values = histogram.total;
    point->is_quantized = strstr(name, "probs") == NULL;
    ft_compute_amax_candidates(point->candidate, &histogram);
    point->chosen = point->candidate[ft_best_amax_candidate(point->candidate, FT_AMAX_CANDIDATES)];
    ft_histogram_coarse_bins(&histogram, point->bin);
    fill_channels(&point->channel, random);
    ft_histogram_fini(&histogram);
    ft_counts_fini(&counters.counts);
}

static void fill_points(ft_report *r, size_t layers, rng *random)
{
    r->points = layers * VALUES;
    r->point = calloc(r->points, sizeof *r->point);
    for (size_t i = 0; i < r->points; i++) {
        char name[FT_NAME];
        snprintf(name, sizeof name, "layer.%zu.%s", i / VALUES, values[i % VALUES]);
        fill_point(&r->point[i], name, random);
    }
}

static void fill_weights(ft_report *r, size_t layers, rng *random)
{
    static const char *const names[] = { "attn.out.weight", "ffn.up.weight", "ffn.down.weight" };
    r->weights = r->sensitivities = layers * 3;
    r->weight = calloc(r->weights, sizeof *r->weight);
    r->sensitivity = calloc(r->sensitivities, sizeof *r->sensitivity);
    for (size_t i = 0; i < r->weights; i++) {
        ft_weight_report *w = &r->weight[i];
        snprintf(w->name, sizeof w->name, "layer.%zu.%s", i / 3, names[i % 3]);
        if (i == 1)
            snprintf(w->name, sizeof w->name, "%s", SAMPLE_HOSTILE_NAME);
        snprintf(w->method, sizeof w->method, "absmax");
        w->scheme = i % 5 == 4 ? FT_SCHEME_W8A16 : i % 7 == 6 ? FT_SCHEME_FLOAT : FT_SCHEME_W8A8;
        w->group = w->scheme == FT_SCHEME_W8A16 ? 32 : 0;
        w->sqnr.per_channel = rng_uniform(random, 30.0, 45.0);
        w->sqnr.per_tensor = w->sqnr.per_channel - 6.0;
        w->output_error = 0.01;
        ft_sensitivity *s = &r->sensitivity[i];
        snprintf(s->name, sizeof s->name, "%s", w->name);
        s->scheme = FT_SCHEME_W8A8;
        s->loss = rng_uniform(random, 0.0, 0.002);
        s->bytes = 65536;
    }
}

static void fill_plans(ft_report *r)
{
    r->pareto_points = PLANS;
    r->pareto = calloc(PLANS, sizeof *r->pareto);
    for (int i = 0; i < PLANS; i++)
        r->pareto[i] = (ft_pareto_point){ 4.5 + i, 0.08 / ((1 + i) * (1 + i)), i == 2 };
}

void sample_report_make(ft_report *out, size_t layers)
{
    rng random = { 7 };
    *out = (ft_report){ .model = "models/sample.ft",
                        .samples = 48,
                        .method = FT_METHOD_AUTO,
                        .scheme = FT_SCHEME_W8A8,
                        .loss_name = "KL divergence of logits",
                        .held_out = true,
                        .evaluation = { .output = "logits",
                                        .samples = 64,
                                        .sqnr_db = 21.5,
                                        .cosine = 0.97,
                                        .agreement = 0.9,
                                        .accuracy = { 0.86, 0.85 } } };
    fill_points(out, layers, &random);
    fill_weights(out, layers, &random);
    fill_plans(out);
}
