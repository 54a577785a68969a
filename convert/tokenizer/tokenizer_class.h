/*
 * tokenizer_class.h - the tokenizer classes of transformers whose files are read.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CONVERT_TOKENIZER_TOKENIZER_CLASS_H
#define FT_CONVERT_TOKENIZER_TOKENIZER_CLASS_H

#include "convert/tokenizer/draft/draft.h"
#include "convert/tokenizer/languages.h"

typedef struct ft_tokenizer_class {
    const char *name;     /* of the class, without "Fast" */
    const char *files[3]; /* all of which it needs; NULL-terminated unless full */
    /* Make the tokenizer; `draft` has its source set. */
    ft_status (*build)(ft_tokenizer_draft *draft, const struct ft_tokenizer_class *class);
    /* The same for texts in the target language; NULL: it is the same tokenizer. */
    ft_status (*build_target)(ft_tokenizer_draft *draft, const struct ft_tokenizer_class *class);
    const ft_language_form *languages; /* NULL: texts have no language */
} ft_tokenizer_class;

/*
 * The class that is named in tokenizer_config.json, or else in config.json, or else that of the
 * model_type and the files in the folder; each may be NULL. A name that is none of the classes,
 * such as that of any fast tokenizer, is passed over. NULL when nothing tells.
 */
const ft_tokenizer_class *ft_tokenizer_class_find(const ft_tokenizer_source *source,
                                                  const char *name, const char *config_name,
                                                  const char *model_type);

/* ---- Their tokenizers ----------------------------------------------------------------------- */

/* vocab.txt: WordPiece. */
ft_status ft_bert_build(ft_tokenizer_draft *draft, const ft_tokenizer_class *class);
ft_status ft_mpnet_build(ft_tokenizer_draft *draft, const ft_tokenizer_class *class);

/* vocab.json and merges.txt: byte-level BPE. */
ft_status ft_gpt2_build(ft_tokenizer_draft *draft, const ft_tokenizer_class *class);
ft_status ft_roberta_build(ft_tokenizer_draft *draft, const ft_tokenizer_class *class);
ft_status ft_qwen2_build(ft_tokenizer_draft *draft, const ft_tokenizer_class *class);

/* The same files: BPE of words. */
ft_status ft_herbert_build(ft_tokenizer_draft *draft, const ft_tokenizer_class *class);

/* A file of SentencePiece whose ids are the positions of its pieces. */
ft_status ft_llama_build(ft_tokenizer_draft *draft, const ft_tokenizer_class *class);
ft_status ft_t5_build(ft_tokenizer_draft *draft, const ft_tokenizer_class *class);

/* The same with the ids of fairseq: four special tokens, the pieces, languages, <mask>. */
ft_status ft_xlm_roberta_build(ft_tokenizer_draft *draft, const ft_tokenizer_class *class);
ft_status ft_mbart_build(ft_tokenizer_draft *draft, const ft_tokenizer_class *class);
ft_status ft_mbart50_build(ft_tokenizer_draft *draft, const ft_tokenizer_class *class);
ft_status ft_nllb_build(ft_tokenizer_draft *draft, const ft_tokenizer_class *class);

/* The same with vocab.json as the table of ids. */
ft_status ft_marian_build(ft_tokenizer_draft *draft, const ft_tokenizer_class *class);
ft_status ft_marian_build_target(ft_tokenizer_draft *draft, const ft_tokenizer_class *class);
ft_status ft_m2m100_build(ft_tokenizer_draft *draft, const ft_tokenizer_class *class);

#endif
