/*
 * signals-t.c - a tool that is ended by a signal leaves nothing behind.
 *
 * Each tool is held where its files are begun and none is finished: its standard error is a
 * terminal whose output has been stopped, so it waits in its first word.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/mem.h"
#include "runtime/cli/signals.h"
#include "tests/lib/models/calibrated.h"
#include "tests/lib/folder.h"
#include "tests/tap/tap.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

static tiny checkpoint;
static calibrated made;
static char folder[FOLDER_PATH]; /* where the tools write */

/* ---- A tool that waits ---------------------------------------------------------------------- */

typedef struct waiting {
    pid_t pid;
    int master, terminal;
} waiting;

static void open_terminal(waiting *w)
{
    w->master = posix_openpt(O_RDWR | O_NOCTTY);
    if (w->master < 0 || grantpt(w->master) != 0 || unlockpt(w->master) != 0)
        skip_all("no pseudo-terminals");
    w->terminal = open(ptsname(w->master), O_RDWR | O_NOCTTY);
    if (w->terminal < 0 || tcflow(w->terminal, TCOOFF) != 0)
        skip_all("no pseudo-terminals");
}

static void close_terminal(const waiting *w)
{
    close(w->master);
    close(w->terminal);
}

static _Noreturn void become(const char *const *command, int terminal, int ignored)
{
    static const int usual[] = { SIGINT, SIGTERM, SIGHUP, SIGPIPE };
    char program[512];
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    for (size_t i = 0; i < FT_COUNT(usual); i++)
        signal(usual[i], usual[i] == ignored ? SIG_IGN : SIG_DFL);
    int nothing = open("/dev/null", O_RDWR);
    if (nothing < 0 || dup2(nothing, 0) < 0 || dup2(nothing, 1) < 0 || dup2(terminal, 2) < 0)
        _exit(126);
    snprintf(program, sizeof program, "%s/%s", getenv("FT_BUILDDIR"), command[0]);
    execv(program, (char **) (uintptr_t) command);
    _exit(127);
}

/* Begin a command whose outputs are in `folder`, and wait until so many of them are begun. */
static waiting begin(const char *const *command, int outputs, int ignored)
{
    waiting w;
    open_terminal(&w);
    w.pid = fork();
    if (w.pid == 0)
        become(command, w.terminal, ignored);
    for (int i = 0; folder_count(folder) < outputs; i++) {
        if (i == 60000 || waitpid(w.pid, NULL, WNOHANG) != 0)
            bail_out("%s does not begin to write", command[0]);
        nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
    }
    return w;
}

/* How it ends by itself, when it may speak. */
static int finish(waiting w)
{
    int status;
    tcflow(w.terminal, TCOON);
    waitpid(w.pid, &status, 0);
    close_terminal(&w);
    return status;
}

/* How it ends by a signal. */
static int end_by(waiting w, int number)
{
    int status;
    kill(w.pid, number);
    waitpid(w.pid, &status, 0);
    close_terminal(&w);
    return status;
}

/* ---- Tests ---------------------------------------------------------------------------------- */

static const struct {
    int number;
    const char *name;
} signals[] = {
    { SIGINT, "SIGINT" },
    { SIGTERM, "SIGTERM" },
    { SIGHUP, "SIGHUP" },
    { SIGPIPE, "SIGPIPE" },
};

static void test_command(const char *const *command, int outputs)
{
    for (size_t i = 0; i < FT_COUNT(signals); i++) {
        int status = end_by(begin(command, outputs, 0), signals[i].number);
        ok(WIFSIGNALED(status) && WTERMSIG(status) == signals[i].number,
           "%s that gets %s ends by it", command[0], signals[i].name);
        is_int(folder_count(folder), 0, "and leaves none of its %d files", outputs);
        folder_remove(folder); /* with what is left after all */
        mkdir(folder, 0700);
    }
}

/* While the first one is handled, the next one of its kind is not held back. */
static void test_second(void)
{
    for (size_t i = 0; i < FT_COUNT(signals); i++) {
        pid_t child = fork();
        if (child == 0) {
            struct sigaction found;
            signal(signals[i].number, SIG_DFL);
            ft_tool_cleanup_on_signals();
            sigaction(signals[i].number, NULL, &found);
            bool handled = found.sa_handler != SIG_DFL && found.sa_handler != SIG_IGN;
            bool once = (found.sa_flags & (int) SA_RESETHAND) != 0;
            bool open = (found.sa_flags & SA_NODEFER) != 0 &&
                        sigismember(&found.sa_mask, signals[i].number) == 0;
            _exit(handled && once && open ? 0 : 1);
        }
        int status = -1;
        waitpid(child, &status, 0);
        is_int(status, 0, "a second %s does what it does by default", signals[i].name);
    }
}

static void test_ignored(const char *const *command, const char *output)
{
    waiting w = begin(command, 1, SIGHUP);
    kill(w.pid, SIGHUP);
    nanosleep(&(struct timespec){ .tv_nsec = 50000000 }, NULL);
    is_int(finish(w), 0, "%s under nohup does not end by SIGHUP", command[0]);
    ok(folder_count(folder) == 1 && access(output, F_OK) == 0, "and writes its file");
    unlink(output);
}

int main(void)
{
    char artifact[128], counters[128], report[128], results[128];
    alarm(300); /* who waits for ever, fails */
    if (getenv("FT_BUILDDIR") == NULL)
        skip_all("FT_BUILDDIR does not name the folder of the tools");
    tiny_make_classifier(&checkpoint);
    calibrated_make(&made, &checkpoint);
    folder_make(folder);
    snprintf(artifact, sizeof artifact, "%s/model.ft", folder);
    snprintf(counters, sizeof counters, "%s/model.counters", folder);
    snprintf(report, sizeof report, "%s/report.json", folder);
    snprintf(results, sizeof results, "%s/results.safetensors", folder);

    const char *const convert[] = { "ft-convert", "-i", checkpoint.folder, "-o", artifact, NULL };
    const char *const calibrate[] = {
        "ft-calibrate", "-i", made.real,  "-d",   made.samples,      "-o",     artifact,
        "-t",           "2",  "--report", report, "--save-counters", counters, NULL
    };
    const char *const run[] = { "ft-run", "-i",    made.real, "-d", made.samples,
                                "-o",     results, "-v",      NULL };
    test_command(convert, 1);
    test_command(calibrate, 3);
    test_command(run, 1);
    test_second();
    test_ignored(convert, artifact);
    folder_remove(folder);
    tiny_remove(&checkpoint);
    return done_testing();
}
