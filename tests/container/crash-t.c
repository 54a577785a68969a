/*
 * crash-t.c - an interrupted write never leaves a partial artifact under its name.
 *
 * The writer is killed at random times, exceeds a file size limit and fills a disk.  The full
 * disk is a small tmpfs in a mount namespace of its own, which needs the privilege to create one.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/container/artifact.h"
#include "tests/lib/folder.h"
#include "tests/lib/sample.h"
#include "tests/tap/tap.h"

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char folder[FOLDER_PATH], path[128];

static const sample versions[2] = {
    { .state = FT_ARTIFACT_INT8, .seed = 1, .large = 4096, .force = true },
    { .state = FT_ARTIFACT_INT8, .seed = 2, .large = 4096, .force = true },
};

/* 0 or 1: the version that is intact in the file; -1: none. */
static int version_of(const char *file)
{
    ft_artifact *a;
    if (ft_artifact_open(&a, file, FT_VERIFY_SHA256, NULL) != FT_OK)
        return -1;
    int version = sample_holds(a, &versions[0]) ? 0 : sample_holds(a, &versions[1]) ? 1 : -1;
    ft_artifact_close(a);
    return version;
}

static void write_version(const char *file, int version)
{
    ft_error err;
    if (sample_write(file, &versions[version], &err) != FT_OK)
        bail_out("%s", err.text);
}

/* ---- Killed ------------------------------------------------------------------------------- */

static void sleep_nanoseconds(long nanoseconds)
{
    nanosleep(&(struct timespec){ .tv_nsec = nanoseconds }, NULL);
}

static void test_kill(void)
{
    enum { KILLS = 20 };
    int torn = 0, leftovers = 0;
    unsigned state = 12345;
    write_version(path, 0);
    for (int i = 0; i < KILLS; i++) {
        pid_t child = fork();
        if (child == 0)
            for (int version = 1;; version = !version)
                sample_write(path, &versions[version], NULL);
        state = state * 1103515245u + 12345u;
        sleep_nanoseconds(200000 + (long) (state >> 8) % 12000000);
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
        torn += version_of(path) < 0;
        leftovers += folder_count(folder) > 1;
    }
    is_int(torn, 0, "a writer killed at %d random times leaves an intact artifact each time",
           KILLS);
    diag("%d kills left a hidden file", leftovers);
    write_version(path, 1);
    is_int(folder_count(folder), 1,
           "the next writer removes the temporary files of killed writers");
    is_int(version_of(path), 1, "the writer after the killed ones replaces the artifact");
}

/* ---- Limited ------------------------------------------------------------------------------ */

/* Writes in a child process whose files are limited to `bytes` bytes; returns its status. */
static ft_status write_limited(rlim_t bytes, ft_error *err)
{
    int ends[2];
    if (pipe(ends) != 0)
        bail_out("no pipe");
    pid_t child = fork();
    if (child == 0) {
        const struct rlimit limit = { bytes, bytes };
        signal(SIGXFSZ, SIG_IGN);
        setrlimit(RLIMIT_FSIZE, &limit);
        ft_error why = { .code = FT_OK };
        sample_write(path, &versions[0], &why);
        ssize_t wrote = write(ends[1], &why, sizeof why);
        _exit(wrote == sizeof why ? 0 : 1);
    }
    waitpid(child, NULL, 0);
    if (read(ends[0], err, sizeof *err) != sizeof *err)
        bail_out("the child process wrote no result");
    close(ends[0]);
    close(ends[1]);
    return err->code;
}

static void test_limit(void)
{
    ft_error err;
    write_version(path, 1);
    int written = 0, torn = 0, leftovers = 0;
    for (rlim_t bytes = 0; bytes < 600000; bytes += 37777) {
        written += write_limited(bytes, &err) == FT_OK;
        torn += version_of(path) != (written > 0 ? 0 : 1);
        leftovers += folder_count(folder) != 1;
    }
    is_int(torn, 0, "the old artifact is kept when writing fails at any byte");
    is_int(leftovers, 0, "a failed write leaves no temporary file");
    ok(written > 0, "the artifact is replaced when the file size limit is large enough");
    is_int(write_limited(100000, &err), FT_EIO, "exceeding the file size limit is an I/O error");
    has(err.text, "model.ft: cannot write at byte 100000: File too large",
        "the error of a failed write names the file, the byte and the cause");
}

/* ---- Full --------------------------------------------------------------------------------- */

/* The results of the child process on the small disk. */
typedef struct {
    bool mounted;
    ft_error full;
    int old, names;
    ft_status next;
} findings;

/* Mounts a 1 MiB disk over the folder, visible to this process only. */
static bool mount_small_disk(void)
{
    return unshare(CLONE_NEWNS) == 0 &&
           mount("none", "/", "none", MS_REC | MS_PRIVATE, NULL) == 0 &&
           mount("none", folder, "tmpfs", 0, "size=1m") == 0;
}

static findings try_small_disk(void)
{
    findings f = { .mounted = mount_small_disk() };
    if (!f.mounted)
        return f;
    sample small = versions[0], large = versions[1];
    write_version(path, 0);
    large.large = 1 << 14;
    sample_write(path, &large, &f.full);
    f.old = version_of(path);
    f.names = folder_count(folder);
    small.seed = versions[1].seed;
    small.large = versions[1].large / 4;
    f.next = sample_write(path, &small, NULL);
    return f;
}

static void test_full_disk(void)
{
    int ends[2];
    findings f;
    if (pipe(ends) != 0)
        bail_out("no pipe");
    pid_t child = fork();
    if (child == 0) {
        f = try_small_disk();
        _exit(write(ends[1], &f, sizeof f) == sizeof f ? 0 : 1);
    }
    waitpid(child, NULL, 0);
    if (read(ends[0], &f, sizeof f) != sizeof f)
        bail_out("the child process wrote no result");
    close(ends[0]);
    close(ends[1]);
    if (!f.mounted) {
        skip(5, "mounting a small disk needs privileges that this user lacks");
        return;
    }
    is_int(f.full.code, FT_EIO, "writing to a full disk is an I/O error");
    has(f.full.text, "bytes are needed: No space left on device",
        "a disk that is too small is detected before writing, and the error names the bytes "
        "needed");
    is_int(f.old, 0, "the old artifact is intact after a write to a full disk");
    is_int(f.names, 1, "a write to a full disk leaves no temporary file");
    is_int(f.next, FT_OK, "a smaller artifact can be written to the disk");
}

int main(void)
{
    folder_make(folder);
    snprintf(path, sizeof path, "%s/model.ft", folder);
    test_kill();
    test_limit();
    test_full_disk();
    folder_remove(folder);
    return done_testing();
}
