/*
 * stop_ids.h - the EOS tokens that end generation, read from the checkpoint's files.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_TEXT_STOP_IDS_H
#define FT_RUNTIME_TEXT_STOP_IDS_H

#include "runtime/container/artifact.h"

#pragma GCC visibility push(default) /* linked by the tools: FT_PRIVATE */

enum { FT_MAX_STOP_IDS = 16 };

typedef struct ft_stop_ids {
    int32_t id[FT_MAX_STOP_IDS]; /* distinct, in file order */
    size_t count;
} ft_stop_ids;

/*
 * Read eos_token_id, a number or a list, from generation_config.json, or from config.json when the
 * former is missing or has none. An empty result is not an error. `label` names the artifact in
 * errors.
 * FT_EFORMAT: not a token of the vocabulary. FT_ELIMIT: more than FT_MAX_STOP_IDS.
 */
FT_MUST_USE ft_status ft_stop_ids_read(ft_stop_ids *out, const ft_artifact *artifact,
                                       const char *label, int32_t vocabulary, ft_error *err);

#pragma GCC visibility pop

#endif
