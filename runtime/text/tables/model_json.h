/*
 * model_json.h - read the section "model" of a tokenizer.json.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_TEXT_TABLES_MODEL_JSON_H
#define FT_RUNTIME_TEXT_TABLES_MODEL_JSON_H

#include "runtime/base/json_reader.h"
#include "runtime/text/models/model.h"
#include "runtime/text/tables/vocabulary_json.h"

/* `file` is the root object, whose tables have been cut out. Errors as of ft_tokenizer_open(). */
FT_MUST_USE ft_status ft_json_read_model(ft_token_model *model, const ft_json_reader *file,
                                         const ft_tokenizer_tables *tables);

#endif
