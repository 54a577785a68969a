/*
 * check-t.c - ft_op_check(): the operands that each operation accepts, and the messages for those
 * that it refuses.
 *
 * One line is one case: an operation over a fixed set of values and weights, and the expected
 * message, or NULL where the operation is valid.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "tests/ops/check.h"
#include "tests/tap/tap.h"

#include <string.h>

/* Index 0 of the stock stands for none. */
static int16_t index_of(int stock)
{
    return (int16_t) (stock == 0 ? -1 : stock);
}

static ft_op op_of(const a_case *c)
{
    ft_op op = { .kind = c->kind,
                 .out = index_of(c->out),
                 .quantized = index_of(c->quantized),
                 .inner = index_of(c->inner),
                 .second = index_of(c->second),
                 .attr = { .heads = c->heads,
                           .kv_heads = c->kv_heads,
                           .norm = c->norm,
                           .cross_kv = c->cross_kv,
                           .window = c->window,
                           .embed_scale = c->embed_scale != 0.0f ? c->embed_scale : 1.0f,
                           .position_offset = c->position_offset,
                           .prefix_tokens = c->prefix_tokens } };
    if (c->conv != NULL)
        op.attr.conv = *c->conv;
    for (int i = 0; i < FT_MAX_IN; i++)
        op.in[i] = index_of(c->in[i]);
    for (int i = 0; i < FT_MAX_WEIGHTS; i++)
        op.weight[i] = index_of(c->weight[i]);
    for (int i = 0; i < FT_MAX_STATES; i++)
        op.state[i] = index_of(c->state[i]);
    return op;
}

static void test_case(const ft_plan *plan, const a_case *c)
{
    ft_error err;
    ft_op op = op_of(c);
    ft_status status = ft_op_check(plan, &op, "m.ft", &err);
    const char *kind = ft_op_name(c->kind);
    if (c->why == NULL) {
        if (!ok(status == FT_OK, "%s accepts %s", kind, c->sentence))
            diag("%s", err.text);
        return;
    }
    int named = c->out != 0         ? c->out
                : c->quantized != 0 ? c->quantized
                : c->in[0] != 0     ? c->in[0]
                                    : c->in[1];
    char expected[256];
    snprintf(expected, sizeof expected, "m.ft: %s %s: %s", kind,
             named == 0 ? "?" : check_values[named].name, c->why);
    is_str(status == FT_ESHAPE ? err.text : "no FT_ESHAPE", expected, "%s refuses %s", kind,
           c->sentence);
}

typedef struct tally {
    int accepted, refused;
} tally;

static void test_cases(const ft_plan *plan, const a_case *cases, tally of[FT_NUM_OP_KINDS])
{
    for (const a_case *c = cases; c->sentence != NULL; c++) {
        test_case(plan, c);
        if (c->why == NULL)
            of[c->kind].accepted++;
        else
            of[c->kind].refused++;
    }
}

/* What the columns of ops.def must be to each other. */
static void test_properties(void)
{
    int unnamed = 0, contrary = 0, base_model = 0;
    for (int i = 0; i < FT_NUM_OP_KINDS; i++) {
        ft_op_kind kind = (ft_op_kind) i;
        const ft_op_info *info = ft_op_info_of(kind);
        unnamed += info->name == NULL || strcmp(info->name, ft_op_name(kind)) != 0;
        contrary += (info->writes & FT_CAN_DYNAMIC) && !(info->writes & FT_CAN_QUANTIZE);
        contrary += (info->writes & FT_CAN_BOTH) && !(info->writes & FT_CAN_FLOATS);
        base_model += ft_op_uses_cache(kind) && !ft_op_has_heads(kind);
    }
    ok(unnamed == 0 && contrary == 0 && base_model == 0,
       "every operation has a name, and properties that agree with each other");
    ok(ft_op_is_idle(FT_OP_BEAM_SEARCH, true, true, false) &&
           !ft_op_is_idle(FT_OP_BEAM_SEARCH, false, false, true) &&
           !ft_op_is_idle(FT_OP_NORM, false, false, false),
       "an operation is idle only in runs that have nothing for it");
}

/* Configurations may still have the former name. */
static void test_activation_names(void)
{
    ft_activation activation = FT_ACT_NONE;
    is_str(ft_activation_name(FT_ACT_GELU_APPROX), "gelu_approx", "approximate gelu has its name");
    ok(ft_activation_parse("gelu_approx", &activation) && activation == FT_ACT_GELU_APPROX,
       "ft_activation_parse() reads gelu_approx");
    activation = FT_ACT_NONE;
    ok(ft_activation_parse("gelu_codes", &activation) && activation == FT_ACT_GELU_APPROX,
       "ft_activation_parse() reads gelu_codes as gelu_approx");
    ok(!ft_activation_parse("gelu_", &activation), "ft_activation_parse() refuses other words");
}

int main(void)
{
    test_properties();
    test_activation_names();
    ft_plan plan = {
        .value = check_values, .weight = check_weights, .nvalue = VALUES, .nweight = WEIGHTS
    };
    tally of[FT_NUM_OP_KINDS] = { 0 };
    test_cases(&plan, check_cases, of);
    test_cases(&plan, check_decoder_cases, of);
    test_cases(&plan, check_conv_cases, of);
    test_cases(&plan, check_image_cases, of);
    for (int kind = 0; kind < FT_NUM_OP_KINDS; kind++)
        ok(of[kind].accepted > 0 && of[kind].refused > 0, "%s has accepted and refused test cases",
           ft_op_name((ft_op_kind) kind));

    ft_error err;
    ft_op op = { .kind = FT_NUM_OP_KINDS,
                 .in = { X, -1, -1 },
                 .out = Y,
                 .quantized = -1,
                 .inner = -1,
                 .second = -1 };
    is_int(ft_op_check(&plan, &op, "m.ft", &err), FT_ESHAPE,
           "ft_op_check() refuses an unknown operation");
    is_str(err.text, "m.ft: unknown y: not an operation",
           "the message for an unknown operation says that it is not an operation");
    is_int(ft_op_check(&plan, &op, "m.ft", NULL), FT_ESHAPE, "ft_op_check() accepts a NULL error");
    return done_testing();
}
