/*
 * signals-t.c - a tool that is killed by a signal leaves no files behind.
 *
 * Each tool is stopped while its output files are open: its standard error is a terminal whose
 * output is suspended, so the tool blocks in its first message.
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
        skip_all("this machine has no pseudo-terminals");
    w->terminal = open(ptsname(w->master), O_RDWR | O_NOCTTY);
    if (w->terminal < 0 || tcflow(w->terminal, TCOOFF) != 0)
        skip_all("this machine has no pseudo-terminals");
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

/* Starts a command and waits until it has opened that many output files in `folder`. */
static waiting begin(const char *const *command, int outputs, int ignored)
{
    waiting w;
    open_terminal(&w);
    w.pid = fork();
    if (w.pid == 0)
        become(command, w.terminal, ignored);
    for (int i = 0; folder_count(folder) < outputs; i++) {
        if (i == 60000 || waitpid(w.pid, NULL, WNOHANG) != 0)
            bail_out("%s does not open its output files", command[0]);
        nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
    }
    return w;
}

/* Resumes the terminal; returns the exit status of the tool. */
static int finish(waiting w)
{
    int status;
    tcflow(w.terminal, TCOON);
    waitpid(w.pid, &status, 0);
    close_terminal(&w);
    return status;
}

/* Sends the signal; returns the exit status of the tool. */
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
        ok(WIFSIGNALED(status) && WTERMSIG(status) == signals[i].number, "%s is killed by %s",
           command[0], signals[i].name);
        is_int(folder_count(folder), 0, "%s leaves none of its %d files after %s", command[0],
               outputs, signals[i].name);
        folder_remove(folder); /* including any files left behind */
        mkdir(folder, 0700);
    }
}

/* While the handler runs, a second signal of the same kind is not blocked. */
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
        is_int(status, 0, "a second %s has its default action", signals[i].name);
    }
}

static void test_ignored(const char *const *command, const char *output)
{
    waiting w = begin(command, 1, SIGHUP);
    kill(w.pid, SIGHUP);
    nanosleep(&(struct timespec){ .tv_nsec = 50000000 }, NULL);
    is_int(finish(w), 0, "%s under nohup ignores SIGHUP", command[0]);
    ok(folder_count(folder) == 1 && access(output, F_OK) == 0,
       "%s under nohup writes its output after SIGHUP", command[0]);
    unlink(output);
}

int main(void)
{
    char artifact[128], counters[128], report[128], results[128];
    alarm(300); /* a test that hangs fails */
    if (getenv("FT_BUILDDIR") == NULL)
        skip_all("FT_BUILDDIR is not set, so the tools cannot be found");
    if (emulated())
        skip_all("an emulated program cannot start the tools");
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
