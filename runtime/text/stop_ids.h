/*
 * stop_ids.h - the tokens that end a text, as the checkpoint's own files say it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_TEXT_STOP_IDS_H
#define FT_RUNTIME_TEXT_STOP_IDS_H

#include "runtime/container/artifact.h"

enum { FT_MAX_STOP_IDS = 16 };

typedef struct ft_stop_ids {
    int32_t id[FT_MAX_STOP_IDS]; /* each once, in the order of the file */
    size_t count;
} ft_stop_ids;

/*
 * Read eos_token_id, a number or a list, of generation_config.json, or where that is absent or says
 * nothing of config.json.  None is no error.  `label` names the artifact in errors.
 * FT_EFORMAT: no token of the vocabulary.  FT_ELIMIT: more than FT_MAX_STOP_IDS.
 */
FT_MUST_USE ft_status ft_stop_ids_read(ft_stop_ids *out, const ft_artifact *artifact,
                                       const char *label, int32_t vocabulary, ft_error *err);

#endif
