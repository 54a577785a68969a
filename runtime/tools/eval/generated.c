/*
 * generated.c - exact match, BLEU and chrF of generated texts against the second texts of pairs.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/tools/eval/generate.h"

#include "runtime/data/model_pairs.h"
#include "runtime/error.h"
#include "runtime/scores/metrics/bleu.h"
#include "runtime/scores/metrics/chrf.h"
#include "runtime/scores/metrics/exact_match.h"

#include <string.h>

/* Figures of one model. */
typedef struct {
    double exact_match, bleu, chrf;
} scores;

static ft_status score(scores *out, const ft_generated_texts *texts, const ft_examples *pairs,
                       ft_error *err)
{
    ft_bleu bleu = { .words = 0 };
    ft_chrf chrf = { .matches = { 0 } };
    size_t matches = 0;
    for (size_t i = 0; i < texts->count; i++) {
        const char *reference = pairs->example[i].pair, *found = ft_strbuf_text(&texts->text[i]);
        size_t reference_bytes = strlen(reference), bytes = texts->text[i].bytes;
        if (!ft_bleu_add(&bleu, found, bytes, reference, reference_bytes) ||
            !ft_chrf_add(&chrf, found, bytes, reference, reference_bytes))
            return ft_fail(err, FT_ENOMEM, "no memory to score text %zu", i + 1);
        matches += ft_texts_match(found, bytes, reference, reference_bytes);
    }
    *out = (scores){ .exact_match = (double) matches / (double) texts->count,
                     .bleu = ft_bleu_score(&bleu),
                     .chrf = ft_chrf_score(&chrf) };
    return FT_OK;
}

/* The fraction of texts that both models generate. */
static double agreement(const ft_generated_texts *a, const ft_generated_texts *b)
{
    size_t same = 0;
    for (size_t i = 0; i < a->count; i++)
        same += a->text[i].bytes == b->text[i].bytes &&
                memcmp(ft_strbuf_text(&a->text[i]), ft_strbuf_text(&b->text[i]),
                       a->text[i].bytes) == 0;
    return (double) same / (double) a->count;
}

/* ---- Results -------------------------------------------------------------------------------- */

static void add_metric(ft_eval_result *out, const char *name, double value, bool is_fraction)
{
    out->task[out->num_task++] = (ft_metric){ name, value, is_fraction };
}

static ft_status add_model(ft_eval_result *out, const ft_generated_texts *texts,
                           const ft_examples *pairs, ft_error *err)
{
    scores s;
    FT_TRY(score(&s, texts, pairs, err));
    add_metric(out, "exact_match", s.exact_match, true);
    add_metric(out, "bleu", s.bleu, false);
    add_metric(out, "chrf", s.chrf, false);
    out->has_task = true;
    out->rows = out->count = texts->count;
    out->tokens = texts->source_tokens;
    return FT_OK;
}

static ft_status add_baseline(ft_eval_result *out, const ft_eval *eval, const ft_model *other,
                              const ft_generated_texts *texts, const ft_examples *pairs,
                              ft_error *err)
{
    scores s = { 0.0, 0.0, 0.0 };
    ft_generated_texts baseline;
    ft_status status = ft_eval_generate_texts(&baseline, eval, other, pairs, err);
    if (status == FT_OK)
        status = score(&s, &baseline, pairs, err);
    if (status == FT_OK) {
        add_metric(out, "exact_match_baseline", s.exact_match, true);
        add_metric(out, "bleu_baseline", s.bleu, false);
        add_metric(out, "chrf_baseline", s.chrf, false);
        add_metric(out, "agreement", agreement(texts, &baseline), true);
    }
    ft_generated_texts_fini(&baseline);
    return status;
}

static ft_status evaluate(ft_eval_result *out, const ft_eval *eval, const ft_model *model,
                          const ft_model *other, const ft_examples *pairs, ft_error *err)
{
    ft_generated_texts texts;
    ft_status status = ft_eval_generate_texts(&texts, eval, model, pairs, err);
    if (status == FT_OK)
        status = add_model(out, &texts, pairs, err);
    if (status == FT_OK && other != NULL)
        status = add_baseline(out, eval, other, &texts, pairs, err);
    ft_generated_texts_fini(&texts);
    return status;
}

ft_status ft_eval_generated(ft_eval_result *out, const ft_eval *eval, const ft_model *model,
                            const ft_model *other, ft_error *err)
{
    ft_examples pairs;
    if (!ft_model_generates(model))
        return ft_fail(err, FT_EUNSUPPORTED,
                       "%s: generates no text: --generate is for decoders and encoder-decoders",
                       model->path);
    ft_status status = ft_pairs_read(&pairs, &eval->texts, err);
    if (status == FT_OK)
        status = evaluate(out, eval, model, other, &pairs, err);
    ft_examples_fini(&pairs);
    return status;
}
