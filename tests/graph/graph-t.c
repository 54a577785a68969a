/*
 * graph-t.c - the graph-building API of model families: shapes, calibration points, errors.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/graph/graph.h"
#include "runtime/mem.h"
#include "runtime/graph/plan.h"
#include "tests/tap/tap.h"

#include <string.h>

static const ft_weight weights[] = {
    { "e.word", 9, 8, FT_F32, FT_ROW, NULL, { 0 }, NULL, NULL },
    { "e.position", 9, 8, FT_F32, FT_ROW, NULL, { 0 }, NULL, NULL },
    { "e.type", 2, 8, FT_F32, FT_ROW, NULL, { 0 }, NULL, NULL },
    { "layer.0.up.weight", 12, 8, FT_F32, FT_ROW, NULL, { 0 }, NULL, NULL },
    { "layer.0.up.bias", 1, 12, FT_F32, FT_ROW, NULL, { 0 }, NULL, NULL },
    { "top.weight", 3, 8, FT_F32, FT_ROW, NULL, { 0 }, NULL, NULL },
    { "top.bias", 1, 3, FT_F32, FT_ROW, NULL, { 0 }, NULL, NULL },
    { "n.weight", 1, 8, FT_F32, FT_ROW, NULL, { 0 }, NULL, NULL },
    { "n.bias", 1, 8, FT_F32, FT_ROW, NULL, { 0 }, NULL, NULL },
};
static const bool quantizable[FT_COUNT(weights)] = { [3] = true };

static ft_graph begin(void)
{
    ft_graph g;
    ft_graph_init(&g, weights, quantizable, FT_COUNT(weights));
    return g;
}

static int embed(ft_graph *g)
{
    return ft_embed(g, "e", ft_graph_input(g, "ids", FT_BATCH_IDS),
                    ft_graph_input(g, "positions", FT_BATCH_POSITIONS),
                    ft_graph_input(g, "types", FT_BATCH_TYPES));
}

static void test_values(void)
{
    ft_graph g = begin();
    int x = embed(&g);
    ft_graph_scope(&g, "layer.%d", 0);
    int up = ft_linear(&g, "up", x);
    ft_graph_scope(&g, "%s", "");
    int pooled = ft_pool(&g, "first", x, FT_POOL_FIRST), top = ft_linear(&g, "top", pooled);
    ft_graph_output(&g, "logits", top);
    ft_error err;
    is_int(ft_graph_finish(&g, &err), FT_OK, "ft_graph_finish() accepts a valid graph");
    const ft_value *v = g.plan.value;
    is_str(v[up].name, "layer.0.up", "value names are prefixed with the scope");
    ok(v[up].cols == 12 && v[up].rows == FT_TOKENS,
       "the result of a linear has as many columns as its weight has rows");
    ok(v[pooled].cols == 8 && v[pooled].rows == FT_SEQUENCES && v[top].rows == FT_SEQUENCES,
       "pooling gives one row per sequence and later operations keep it");
    ok(v[0].dtype == FT_I32 && v[0].cols == 1, "graph inputs are integers");
    ok(v[x].point && !v[pooled].point, "the input of a quantizable linear is a calibration point "
                                       "and that of another linear is not");
    int refused = 0;
    for (int i = 0; i < g.plan.nop; i++)
        refused += ft_op_check(&g.plan, &g.plan.op[i], "graph", NULL) != FT_OK;
    is_int(refused, 0, "every operation of a graph passes ft_op_check()");
    ft_graph_fini(&g);
}

static void test_attention(void)
{
    ft_graph g = begin();
    int x = embed(&g), n = ft_layer_norm(&g, "n", x, 1e-5f);
    int context = ft_attention(&g, "attn", x, n, x, 2);
    ft_graph_output(&g, "y", context);
    is_int(ft_graph_finish(&g, NULL), FT_OK,
           "ft_graph_finish() accepts attention over embeddings and their norm");
    int probs = ft_plan_find(&g.plan, "attn.probs");
    ok(g.plan.value[x].point && g.plan.value[n].point && g.plan.value[probs].point &&
           !g.plan.value[context].point,
       "queries, keys, values and attention probabilities are calibration points");
    ok(g.plan.value[probs].inner, "attention probabilities have no memory");
    const ft_op *op = &g.plan.op[ft_plan_producer(&g.plan, context)];
    ok(op->attr.heads == 2 && op->attr.softmax_scale == 0.5f,
       "attention scores are divided by the square root of the head size");
    ft_graph_fini(&g);
}

/* One check: the graph's first error is this one. */
static void fails(ft_graph *g, ft_status status, const char *text, const char *sentence)
{
    ft_error err = { 0 };
    ft_status found = ft_graph_finish(g, &err);
    is_str(found == status ? err.text : "another status", text, "%s", sentence);
    ft_graph_fini(g);
}

static void test_search(void)
{
    ft_graph g = begin();
    ft_error err;
    int ids = ft_graph_input(&g, "ids", FT_BATCH_IDS),
        x = ft_gather_rows(&g, "rows", ft_embed_tokens(&g, "e", ids));
    int logits = ft_linear(&g, "top", x);
    ft_sample(&g, "token", logits, ids);
    ft_graph_beam_search(&g, "beam", logits);
    is_int(ft_graph_finish(&g, &err), FT_OK, "a graph can both sample and beam-search");
    const ft_op *choose = &g.plan.op[g.plan.nop - 2], *beam = &g.plan.op[g.plan.nop - 1];
    is_int(ft_op_check(&g.plan, beam, "m.ft", &err), FT_OK,
           "the beam search operation passes ft_op_check()");
    ok(choose->state[FT_STATE_LAST_TOKEN] == beam->state[FT_STATE_LAST_TOKEN] &&
           choose->state[FT_STATE_HISTORY] == beam->state[FT_STATE_HISTORY] &&
           beam->state[FT_STATE_CACHE_INDIRECTION] ==
               ft_plan_find(&g.plan, "beam.cache_indirection"),
       "sampling and beam search share the last tokens and the history");
    ft_graph_fini(&g);
    g = begin();
    ft_graph_beam_search(&g, "beam", ft_linear(&g, "absent", 0));
    is_int(ft_graph_finish(&g, &err), FT_EFORMAT, "ft_graph_finish() reports the earliest error");
    ft_graph_fini(&g);
}

static void test_errors(void)
{
    static const char sixty[] = "a.name.of.sixty.characters.which.is.more.than.lowering.takes";
    ft_graph g = begin();
    ft_graph_scope(&g, "layer.%d", 1);
    int x = ft_linear(&g, "down", ft_linear(&g, "up", embed(&g)));
    is_int(x, -1, "a graph call that fails returns -1");
    ft_graph_output(&g, "y", ft_pool(&g, "p", ft_attention(&g, "a", x, x, x, 2), FT_POOL_MEAN));
    ft_calibration_point(&g, x);
    is_int(g.plan.noutput, 0, "graph calls after an error do nothing");
    fails(&g, FT_EFORMAT, "layer.1.e: the model has no such weight",
          "ft_graph_finish() reports the first error");

    g = begin();
    ft_apply_activation(&g, sixty, embed(&g), FT_ACT_RELU);
    fails(&g, FT_ELIMIT,
          "a.name.of.sixty.characters.which.is.more.than.lowering.takes: the name is too long",
          "a value name that leaves no space for suffixes of lowering is refused");

    g = begin();
    ft_graph_scope(&g, "%s", sixty);
    embed(&g);
    fails(&g, FT_ELIMIT, "a.name.of.sixty.characters.whi: the scope is too long",
          "a scope that is too long is refused");

    g = begin();
    int y = embed(&g);
    for (int i = 0; i <= FT_MAX_OUTPUTS; i++)
        ft_graph_output(&g, "y", y);
    fails(&g, FT_ELIMIT, "y: too many outputs", "a graph with too many outputs is refused");
}

int main(void)
{
    test_values();
    test_attention();
    test_search();
    test_errors();
    return done_testing();
}
