/*
 * recipe-t.c - recipes: scheme names, rules, their precedence, and invalid rules.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/weights/recipe.h"
#include "runtime/mem.h"
#include "tests/tap/tap.h"

#include <string.h>

static ft_error err;

static void test_words(void)
{
    int wrong = 0, kinds[2] = { 0, 0 };
    for (int i = 0; i < FT_NUM_SCHEMES; i++) {
        ft_scheme scheme = (ft_scheme) i, back;
        wrong += ft_scheme_parse(ft_scheme_name(scheme), &back, &err) != FT_OK || back != scheme;
        kinds[0] += ft_scheme_is_int8(scheme);
        kinds[1] += ft_scheme_is_groupwise(scheme);
        wrong += ft_scheme_is_int8(scheme) && ft_scheme_is_groupwise(scheme);
    }
    is_int(wrong, 0, "every scheme has a name and is int8, group-wise or float");
    is_int(kinds[0], 2, "two schemes are int8");
    is_int(kinds[1], 3, "three schemes are group-wise");
    ft_scheme scheme;
    ft_clip clip;
    is_int(ft_scheme_parse("", &scheme, &err), FT_EARG, "ft_scheme_parse() refuses an empty name");
    is_int(ft_scheme_parse("int4", &scheme, &err), FT_EARG,
           "ft_scheme_parse() refuses the name int4");
    is_str(err.text,
           "unknown scheme \"int4\", expected one of w8a8, w8a8-dynamic, w4a16, w8a16, w8a8-block, "
           "float",
           "the error for an unknown scheme lists the known ones");
    ok(ft_clip_parse("mse", &clip) && clip == FT_CLIP_MSE && !ft_clip_parse("max", &clip),
       "ft_clip_parse() accepts mse and refuses max");
    ok(ft_clip_parse("imatrix", &clip) && clip == FT_CLIP_IMATRIX,
       "ft_clip_parse() accepts imatrix");
    ok(ft_scheme_name(FT_NUM_SCHEMES) == NULL && ft_clip_name(FT_NUM_CLIPS) == NULL,
       "ft_scheme_name() and ft_clip_name() return NULL for an unknown value");
}

static void is_scheme(const ft_recipe *recipe, const char *name, const char *expected)
{
    is_str(ft_scheme_name(ft_recipe_scheme(recipe, name)), expected,
           "the recipe assigns to %s the scheme %s", name, expected);
}

static void add(ft_recipe *recipe, const char *text)
{
    if (ft_recipe_add_text(recipe, text, &err) != FT_OK)
        bail_out("%s", err.text);
}

static void test_rules(void)
{
    ft_recipe recipe = { .scheme = FT_SCHEME_W4A16 };
    add(&recipe, "^layer\\.0\\.=float");
    add(&recipe, "ffn\\.(up|down)=w8a16");
    add(&recipe, "ffn=w8a8-block");
    add(&recipe, "a=b=w8a8");
    is_int(ft_recipe_add(&recipe, "attn\\.q", FT_SCHEME_FLOAT, &err), FT_OK,
           "ft_recipe_add() adds a rule by scheme value");
    is_scheme(&recipe, "layer.1.attn.k.weight", "w4a16");
    is_scheme(&recipe, "layer.0.ffn.up.weight", "float");
    is_scheme(&recipe, "layer.1.ffn.up.weight", "w8a16");
    is_scheme(&recipe, "layer.10.ffn.gate.weight", "w8a8-block");
    is_scheme(&recipe, "layer.1.attn.q.weight", "float");
    is_scheme(&recipe, "xa=bx", "w8a8");
    ok(ft_recipe_uses(&recipe, FT_SCHEME_W8A8),
       "ft_recipe_uses() finds a scheme that a rule names");
    ok(!ft_recipe_uses(&recipe, FT_SCHEME_W8A8_DYNAMIC),
       "ft_recipe_uses() does not find a scheme that no rule names");
    ok(ft_recipe_uses_groupwise(&recipe), "ft_recipe_uses_groupwise() finds a group-wise scheme");
    for (int i = 0; i < 40; i++)
        add(&recipe, "nothing=float");
    is_scheme(&recipe, "layer.1.ffn.up.weight", "w8a16");
    ft_recipe_fini(&recipe);
    ok(recipe.rule == NULL && recipe.rules == 0, "ft_recipe_fini() removes all rules");
}

static void test_head(void)
{
    ft_recipe recipe = { .scheme = FT_SCHEME_W8A8_DYNAMIC };
    is_scheme(&recipe, "head.weight", "float");
    is_scheme(&recipe, "overhead.weight", "w8a8-dynamic");
    recipe.quantized_head = true;
    is_scheme(&recipe, "head.weight", "w8a8-dynamic");
    recipe.quantized_head = false;
    add(&recipe, "^head=w8a16");
    is_scheme(&recipe, "head.weight", "w8a16");
    ft_recipe_fini(&recipe);
    is_scheme(&recipe, "layer.0.attn.q.weight", "w8a8");
    ok(!ft_recipe_uses_groupwise(&recipe),
       "a zero-initialized recipe is w8a8 without group-wise schemes");
}

static void is_refused(const char *text, const char *reason)
{
    ft_recipe recipe = { .scheme = FT_SCHEME_W4A16 };
    is_int(ft_recipe_add_text(&recipe, text, &err), FT_EARG, "ft_recipe_add_text() refuses \"%s\"",
           text);
    has(err.text, reason, "the rule error states the reason");
    is_int((long long) recipe.rules, 0, "a refused rule is not added");
    ft_recipe_fini(&recipe);
}

static void test_refusals(void)
{
    is_refused("ffn", "\"ffn\" is not REGEX=SCHEME");
    is_refused("=w4a16", "\"=w4a16\" is not REGEX=SCHEME");
    is_refused("", "\"\" is not REGEX=SCHEME");
    is_refused("ffn=w5a16", "unknown scheme \"w5a16\"");
    is_refused("ffn=", "unknown scheme \"\"");
    is_refused("(ffn=w4a16", "\"(ffn\": ");
    is_refused("ffn[=w4a16", "\"ffn[\": ");
    is_refused("\xc3\xa4=w4a16", "names are ASCII");
}

static void test_how(void)
{
    ft_recipe recipe = { .group = 64, .asymmetric = true, .clip = FT_CLIP_MSE };
    ft_groupwise_options how = ft_recipe_groupwise_options(&recipe, FT_SCHEME_W4A16);
    ok(how.bits == 4 && how.group == 64 && how.asymmetric && how.clip && !how.int8_activations,
       "w4a16 has 4 bits and the group options of the recipe");
    how = ft_recipe_groupwise_options(&recipe, FT_SCHEME_W8A16);
    ok(how.bits == 8 && !how.int8_activations, "w8a16 has 8 bits and float activations");
    how = ft_recipe_groupwise_options(&recipe, FT_SCHEME_W8A8_BLOCK);
    ok(how.bits == 8 && how.int8_activations && how.importance == NULL && how.round == NULL,
       "w8a8-block has 8 bits and int8 activations");
}

static void test_learns(void)
{
    ok(!ft_recipe_needs_data(&(ft_recipe){ .clip = FT_CLIP_MSE }),
       "a recipe of weights alone needs no samples");
    ok(ft_recipe_needs_data(&(ft_recipe){ .clip = FT_CLIP_IMATRIX }) &&
           ft_recipe_needs_data(&(ft_recipe){ .awq = true }) &&
           ft_recipe_needs_data(&(ft_recipe){ .round = FT_ROUND_GPTQ }) &&
           ft_recipe_needs_data(&(ft_recipe){ .round = FT_ROUND_GPTAQ }),
       "imatrix, AWQ, GPTQ and GPTAQ need samples");
}

static void test_json(void)
{
    ft_recipe recipe = {
        .scheme = FT_SCHEME_W4A16, .group = 128, .clip = FT_CLIP_MSE, .round = FT_ROUND_GPTAQ
    };
    add(&recipe, "a\"b\\.c=float");
    json_t *json = ft_recipe_to_json(&recipe, true);
    char *text = json_dumps(json, JSON_COMPACT | JSON_SORT_KEYS);
    is_str(text,
           "{\"asymmetric\":false,\"clip\":\"mse\",\"group\":128,\"round\":\"gptaq\","
           "\"rules\":[{\"scheme\":\"float\",\"tensor\":\"a\\\"b\\\\.c\"}],\"scale\":\"none\","
           "\"scheme\":\"w4a16\"}",
           "the recipe JSON contains the scheme, the group options and the rules");
    free(text);
    json_decref(json);
    ft_recipe_fini(&recipe);
    json = ft_recipe_to_json(&recipe, false);
    text = json_dumps(json, JSON_COMPACT);
    is_str(text, "{\"scheme\":\"w8a8\"}", "the recipe JSON of w8a8 contains only the scheme");
    free(text);
    json_decref(json);
}

int main(void)
{
    test_words();
    test_rules();
    test_head();
    test_refusals();
    test_how();
    test_learns();
    test_json();
    return done_testing();
}
