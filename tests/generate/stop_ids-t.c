/*
 * stop_ids-t.c - stop ids, read from the configuration files in an artifact.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/mem.h"
#include "runtime/text/stop_ids.h"
#include "tests/lib/folder.h"
#include "tests/tap/tap.h"

#include <stdio.h>
#include <string.h>

enum { VOCABULARY = 100 };

/* A float artifact with only these files; NULL omits a file. */
static ft_artifact *artifact_with(const char *generation, const char *config)
{
    char folder[FOLDER_PATH], path[FOLDER_PATH + 16];
    ft_artifact_writer *writer;
    ft_artifact *artifact;
    ft_error err;
    json_t *empty = json_object();
    const ft_artifact_header head = {
        .state = FT_ARTIFACT_FLOAT, .family = "llama", .tool = "test", .config = empty
    };
    folder_make(folder);
    snprintf(path, sizeof path, "%s/a.ft", folder);
    ft_status status = ft_artifact_create(&writer, path, false, &err);
    if (status == FT_OK && generation != NULL)
        status = ft_artifact_add_memory(writer, "generation_config.json", generation,
                                        strlen(generation), &err);
    if (status == FT_OK && config != NULL)
        status = ft_artifact_add_memory(writer, "config.json", config, strlen(config), &err);
    if (status == FT_OK)
        status = ft_artifact_finish(writer, &head, &err);
    if (status != FT_OK || ft_artifact_open(&artifact, path, FT_VERIFY_CRC, &err) != FT_OK)
        bail_out("%s", err.text);
    ft_artifact_discard(writer);
    json_decref(empty);
    folder_remove(folder);
    return artifact;
}

/* The ids as "1 2 3", or the error text. */
static const char *ids_of(const char *generation, const char *config, ft_status *status)
{
    static char text[1100];
    ft_artifact *artifact = artifact_with(generation, config);
    ft_stop_ids ids;
    ft_error err;
    memset(&ids, 0xff, sizeof ids);
    *status = ft_stop_ids_read(&ids, artifact, "m.ft", VOCABULARY, &err);
    text[0] = '\0';
    if (*status != FT_OK)
        snprintf(text, sizeof text, "%s", err.text);
    for (size_t i = 0; *status == FT_OK && i < ids.count; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%d", i > 0 ? " " : "",
                 ids.id[i]);
    ft_artifact_close(artifact);
    return text;
}

static const struct {
    const char *generation, *config, *expected, *sentence;
} good[] = {
    { "{\"eos_token_id\": 7}", "{\"eos_token_id\": 8}", "7",
      "eos_token_id of generation_config.json takes precedence" },
    { "{\"eos_token_id\": [7, 9, 0]}", NULL, "7 9 0", "a list of stop ids keeps its order" },
    { "{\"eos_token_id\": [7, 9, 7]}", NULL, "7 9", "duplicate stop ids count once" },
    { "{\"eos_token_id\": 99}", NULL, "99", "the last id of the vocabulary is a valid stop id" },
    { "{}", "{\"eos_token_id\": 8}", "8",
      "config.json applies when generation_config.json has no eos_token_id" },
    { "{\"eos_token_id\": null}", "{\"eos_token_id\": [8, 3]}", "8 3",
      "config.json applies when eos_token_id of generation_config.json is null" },
    { "{\"eos_token_id\": []}", "{\"eos_token_id\": 8}", "8",
      "config.json applies when eos_token_id of generation_config.json is an empty list" },
    { NULL, "{\"eos_token_id\": 8}", "8",
      "config.json applies when generation_config.json is absent" },
    { NULL, "{\"eos_token_id\": null}", "", "a model may have no stop id" },
    { NULL, NULL, "", "a model without configuration files has no stop id" },
    { "{\"eos_token_id\": [1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,1]}", NULL,
      "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16", "sixteen different stop ids are accepted" },
};

static const struct {
    const char *generation, *config;
    ft_status status;
    const char *expected;
} bad[] = {
    { "{\"eos_token_id\": 100}", NULL, FT_EFORMAT,
      "m.ft: generation_config.json: eos_token_id: found 100, expected an integer from 0 to 99" },
    { "{\"eos_token_id\": -1}", NULL, FT_EFORMAT,
      "m.ft: generation_config.json: eos_token_id: found -1, expected an integer from 0 to 99" },
    { "{\"eos_token_id\": [1, 2.5]}", NULL, FT_EFORMAT,
      "m.ft: generation_config.json: eos_token_id: found 2.5, expected an integer from 0 to 99" },
    { NULL, "{\"eos_token_id\": \"</s>\"}", FT_EFORMAT,
      "m.ft: config.json: eos_token_id: found \"</s>\", expected an integer from 0 to 99" },
    { NULL, "{\"eos_token_id\": [[1]]}", FT_EFORMAT,
      "m.ft: config.json: eos_token_id: found [1], expected an integer from 0 to 99" },
    { "[1]", NULL, FT_EFORMAT,
      "m.ft: generation_config.json: found a JSON array, expected a JSON object" },
    { "{\"eos_token_id\": 1", NULL, FT_EFORMAT,
      "m.ft: generation_config.json: line 1, column 18: not valid JSON: '}' expected near end of "
      "file" },
    { "{\"eos_token_id\": [1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17]}", NULL, FT_ELIMIT,
      "m.ft: generation_config.json: eos_token_id: more than 16 different ids" },
};

int main(void)
{
    ft_status status;
    for (size_t i = 0; i < FT_COUNT(good); i++)
        is_str(ids_of(good[i].generation, good[i].config, &status), good[i].expected, "%s",
               good[i].sentence);
    for (size_t i = 0; i < FT_COUNT(bad); i++) {
        is_str(ids_of(bad[i].generation, bad[i].config, &status), bad[i].expected,
               "ft_stop_ids_read() refuses %s",
               bad[i].generation != NULL ? bad[i].generation : bad[i].config);
        is_int(status, bad[i].status, "ft_stop_ids_read() returns %s",
               ft_status_name(bad[i].status));
    }
    return done_testing();
}
