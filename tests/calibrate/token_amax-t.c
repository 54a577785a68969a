/*
 * token_amax-t.c - massive tokens: median, ratio, and how many are at the start of their text.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/ranges/token_amax.h"
#include "tests/tap/tap.h"

#include <math.h>
#include <string.h>

enum { TOKENS = 100, COLS = 3, SAMPLES = 5 };

static ft_error err;

/* Tokens with magnitudes 1 to 2, and `large` at one position of each sample. */
static void add_samples(ft_token_amax *tokens, size_t position, float large)
{
    static float x[TOKENS * COLS];
    for (int sample = 0; sample < SAMPLES; sample++) {
        for (size_t i = 0; i < TOKENS; i++) {
            x[i * COLS] = 0.5f;
            x[i * COLS + 1] = -(1.0f + (float) i / TOKENS);
            x[i * COLS + 2] = 0.0f;
        }
        x[position * COLS + 2] = large;
        if (ft_token_amax_add(tokens, "x", x, TOKENS, COLS, &err) != FT_OK)
            bail_out("%s", err.text);
    }
}

static ft_token_summary summary(const ft_token_amax *tokens)
{
    ft_token_summary out;
    if (ft_token_amax_summarize(&out, tokens, &err) != FT_OK)
        bail_out("%s", err.text);
    return out;
}

static ft_token_summary of(size_t position, float large)
{
    ft_token_amax tokens = { .count = 0 };
    add_samples(&tokens, position, large);
    ft_token_summary out = summary(&tokens);
    ft_token_amax_fini(&tokens);
    return out;
}

int main(void)
{
    ft_token_summary s = of(0, 60.0f);
    near(s.median, 1.5, 0.0, "the median is that of the magnitudes of all tokens");
    near(s.most, 60.0, 0.0, "the maximum is that of all tokens");
    near(s.ratio, 40.0, 0.0, "the ratio is the maximum divided by the median");
    ok(s.massive == SAMPLES && s.massive_first == SAMPLES,
       "massive first tokens are counted as massive and as first");
    s = of(50, -60.0f);
    ok(s.massive == SAMPLES && s.massive_first == 0,
       "massive tokens within a text are not counted as first, whatever their sign");
    s = of(0, 1.0f);
    ok(s.massive == 0 && s.ratio < 2.0, "tokens of similar size are not massive");

    ft_token_amax none = { .count = 0 };
    near(summary(&none).ratio, 1.0, 0.0, "without tokens the ratio is 1");
    const float bad[2] = { 1.0f, NAN };
    is_int(ft_token_amax_add(&none, "layer.0.x", bad, 1, 2, &err), FT_EFORMAT, "NaN is refused");
    has(err.text, "layer.0.x: token 0, column 1 is not finite",
        "the message names point and token");
    const float zeros[2] = { 0.0f, 0.0f };
    if (ft_token_amax_add(&none, "x", zeros, 2, 1, &err) != FT_OK)
        bail_out("%s", err.text);
    near(summary(&none).ratio, 1.0, 0.0, "the ratio of tokens that are all zero is 1");
    ft_token_amax_fini(&none);
    return done_testing();
}
