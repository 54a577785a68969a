/*
 * unload-t.c - a program that loads libftruntime, runs a model with several threads and unloads it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/ft.h"
#include "runtime/mem.h"
#include "tests/lib/models/calibrated.h"
#include "tests/tap/tap.h"

#include <dirent.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 3, ROWS = 400, COLS = 10, TIMES = 3 };

/* The functions of the loaded library, not those that the test is linked with. */
typedef struct library {
    void *handle;
    __typeof__(ft_model_open) *model_open;
    __typeof__(ft_model_close) *model_close;
    __typeof__(ft_session_open) *session_open;
    __typeof__(ft_session_close) *session_close;
    __typeof__(ft_session_set) *set;
    __typeof__(ft_session_run) *run;
} library;

static void find(library *l, const char *name, void *function)
{
    void *address = dlsym(l->handle, name);
    if (address == NULL)
        bail_out("libftruntime has no %s", name);
    *(void **) function = address;
}

static void load(library *l)
{
    const char *folder = getenv("FT_BUILDDIR");
    char path[4096];
    snprintf(path, sizeof path, "%s/.libs/libftruntime.so", folder != NULL ? folder : ".");
    l->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (l->handle == NULL)
        bail_out("%s", dlerror());
    find(l, "ft_model_open", &l->model_open);
    find(l, "ft_model_close", &l->model_close);
    find(l, "ft_session_open", &l->session_open);
    find(l, "ft_session_close", &l->session_close);
    find(l, "ft_session_set", &l->set);
    find(l, "ft_session_run", &l->run);
}

static int threads(void)
{
    DIR *list = opendir("/proc/self/task");
    int count = 0;
    if (list == NULL)
        skip_all("this system has no /proc/self/task to count threads");
    for (struct dirent *entry; (entry = readdir(list)) != NULL;)
        count += entry->d_name[0] != '.';
    closedir(list);
    return count;
}

static bool run(const library *l, const char *path)
{
    static int32_t ids[ROWS * COLS];
    ft_tensor tensor = { .dtype = FT_I32, .ndim = 2, .dim = { ROWS, COLS }, .data = ids };
    ft_session_options options = { .threads = THREADS };
    ft_model *model;
    ft_session *session;
    ft_error err;
    if (l->model_open(&model, path, NULL, &err) != FT_OK ||
        l->session_open(&session, model, &options, &err) != FT_OK)
        bail_out("%s", err.text);
    bool fine =
        l->set(session, "input_ids", &tensor, &err) == FT_OK && l->run(session, &err) == FT_OK;
    if (!fine)
        diag("%s", err.text);
    l->session_close(session);
    l->model_close(model);
    return fine;
}

int main(void)
{
    tiny t;
    calibrated c;
    tiny_make_classifier(&t);
    calibrated_make(&c, &t);
    int before = threads();
    for (int i = 0; i < TIMES; i++) {
        library l;
        load(&l);
        ok(run(&l, c.quantized), "libftruntime runs a model after being loaded %d times", i + 1);
        is_int(threads(), before + THREADS - 1, "libftruntime keeps its threads for the next run");
        ok(dlclose(l.handle) == 0, "dlclose() unloads libftruntime");
        is_int(threads(), before, "unloading libftruntime ends its threads");
    }
    tiny_remove(&t);
    return done_testing();
}
