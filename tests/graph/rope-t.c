/*
 * rope-t.c - RoPE frequencies, compared with those of transformers.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/graph/rope.h"
#include "tests/lib/golden.h"
#include "tests/tap/tap.h"

#include <math.h>
#include <string.h>

enum { MAX_SIZE = 128 };

/*
 * transformers computes in float: the exponent, the power and its reciprocal are each rounded, and
 * a rounding error of the exponent is amplified by ln(theta), up to 14, in theta^e.  Ours are
 * rounded once.  The bound is 14 * 2^-24 or 8.4e-7; the largest observed difference is 4.9e-7.
 */
static const double tolerance = 8.4e-7;

static double real(const json_t *json, const char *key)
{
    return json_number_value(json_object_get(json, key));
}

/* The configuration of one line of rope.json. */
static ft_config config_of(const json_t *line)
{
    const json_t *scaling = json_object_get(line, "scaling");
    ft_config config = {
        .head_size = (int32_t) real(line, "head_size"),
        .positions = (int32_t) real(line, "positions"),
        .rope_theta = real(line, "theta"),
        .rope_factor = real(scaling, "factor"),
        .rope_low = real(scaling, "low_freq_factor"),
        .rope_high = real(scaling, "high_freq_factor"),
        .rope_positions = (int32_t) real(scaling, "original_max_position_embeddings"),
    };
    if (!ft_rope_parse(json_string_value(json_object_get(scaling, "rope_type")), &config.rope))
        bail_out("rope.json: no rope_type");
    if (config.rope == FT_ROPE_DYNAMIC)
        config.rope_positions = config.positions;
    return config;
}

static void test_line(const json_t *line)
{
    float found[MAX_SIZE];
    double worst = 0.0;
    const json_t *expected = json_object_get(line, "frequencies");
    ft_config config = config_of(line);
    int64_t length = (int64_t) real(line, "length");
    size_t count = json_array_size(expected);
    memset(found, 0xff, sizeof found);
    ft_rope_frequencies_at(found, &config, length);
    for (size_t i = 0; i < count; i++) {
        double value = json_number_value(json_array_get(expected, i));
        worst = fmax(worst, fabs((double) found[i] - value) / value);
    }
    bool inside = count == (size_t) config.head_size / 2 && isnan(found[count]);
    ok(inside && worst <= tolerance,
       "%s, head size %d, theta %g, length %lld: frequencies match transformers within a relative "
       "error of %.1e",
       ft_rope_name(config.rope), config.head_size, config.rope_theta, (long long) length, worst);
}

/* ---- Exact properties ----------------------------------------------------------------------- */

static ft_config plain(void)
{
    return (ft_config){
        .head_size = 64, .positions = 4096, .rope = FT_ROPE_DEFAULT, .rope_theta = 10000.0
    };
}

static bool same(const ft_config *a, int64_t length_a, const ft_config *b, int64_t length_b)
{
    float left[MAX_SIZE], right[MAX_SIZE];
    ft_rope_frequencies_at(left, a, length_a);
    ft_rope_frequencies_at(right, b, length_b);
    return memcmp(left, right, (size_t) a->head_size / 2 * sizeof *left) == 0;
}

static void test_exact(void)
{
    ft_config config = plain(), dynamic = plain(), llama3 = plain();
    float found[MAX_SIZE];
    ft_rope_frequencies(found, &config);
    int wrong = 0;
    for (int i = 0; i < 32; i++)
        wrong += found[i] != (float) pow(10.0, -4.0 * i / 32.0);
    is_int(wrong, 0, "frequencies that are powers of ten are the nearest floats");
    ok(found[0] == 1.0f, "the first pair rotates by the position itself");
    ok(same(&config, 1, &config, 1000000),
       "frequencies without scaling do not depend on the length");

    dynamic.rope = FT_ROPE_DYNAMIC;
    dynamic.rope_factor = 4.0;
    dynamic.rope_positions = 4096;
    ok(same(&dynamic, 4096, &config, 1) && same(&dynamic, 1, &config, 1),
       "dynamic scaling leaves lengths up to the original positions unscaled");
    ok(!same(&dynamic, 4097, &config, 1) && !same(&dynamic, 4097, &dynamic, 4098),
       "dynamic scaling depends on lengths beyond the original positions");

    /* Of 4096 positions: wavelengths below 1024 are kept, those above 4096 are scaled. */
    llama3.rope = FT_ROPE_LLAMA3;
    llama3.rope_factor = 8.0;
    llama3.rope_low = 1.0;
    llama3.rope_high = 4.0;
    llama3.rope_positions = 4096;
    float scaled[MAX_SIZE];
    int kept = 0, divided = 0, between = 0;
    ft_rope_frequencies(scaled, &llama3);
    for (int i = 0; i < 32; i++) {
        double wavelength = 6.283185307179586 / pow(10000.0, -2.0 * i / 64.0);
        if (wavelength < 1024.0)
            kept += scaled[i] == found[i];
        else if (wavelength > 4096.0)
            divided += scaled[i] == found[i] / 8.0f;
        else
            between += scaled[i] < found[i] && scaled[i] > found[i] / 8.0f;
    }
    is_int(kept, 18, "llama3 scaling keeps the high frequencies");
    is_int(divided, 9, "llama3 scaling divides the low frequencies by the factor");
    is_int(between, 5, "llama3 scaling interpolates the frequencies in between");
}

int main(void)
{
    json_t *lines = golden_json("rope.json"), *line;
    size_t i;
    json_array_foreach(lines, i, line) test_line(line);
    json_decref(lines);
    test_exact();
    return done_testing();
}
