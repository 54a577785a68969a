/*
 * atomic_file-t.c - a file appears whole or not at all.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/base/atomic_file.h"
#include "runtime/base/temp_files.h"
#include "tests/lib/folder.h"
#include "tests/tap/tap.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[FOLDER_PATH], target[128];

static const char *at(const char *name)
{
    static char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static bool contains(const char *path, const char *text)
{
    char found[64] = "";
    FILE *file = fopen(path, "r");
    if (file == NULL)
        return false;
    found[fread(found, 1, sizeof found - 1, file)] = '\0';
    fclose(file);
    return strcmp(found, text) == 0;
}

/* Begin a file and write `text`; committing is left to the caller. */
static ft_atomic_file *begin(const char *path, bool force, const char *text)
{
    ft_atomic_file *o;
    ft_error err;
    if (ft_atomic_file_open(&o, path, force, &err) != FT_OK)
        bail_out("%s", err.text);
    if (write(ft_atomic_file_fd(o), text, strlen(text)) != (ssize_t) strlen(text))
        bail_out("cannot write");
    return o;
}

static void test_commit(void)
{
    mode_t old = umask(027);
    ft_atomic_file *o = begin(target, false, "one");
    ok(access(target, F_OK) != 0 && folder_count(folder) == 1,
       "before the commit there is only a hidden file");
    is_int(ft_atomic_file_commit(o, NULL), FT_OK, "a file is committed");
    ft_atomic_file_close(o);
    ok(contains(target, "one") && folder_count(folder) == 1, "and is there, alone, with its bytes");
    struct stat st;
    stat(target, &st);
    is_int(st.st_mode & 0777, 0640, "its permissions follow the umask");
    umask(old);

    o = begin(target, true, "two");
    ok(contains(target, "one"), "while a new one is written, the old one stays");
    ft_atomic_file_close(o);
    ok(contains(target, "one") && folder_count(folder) == 1,
       "and so it does when the new one is given up");
    o = begin(target, true, "two");
    is_int(ft_atomic_file_commit(o, NULL), FT_OK, "with force a file is replaced");
    ft_atomic_file_close(o);
    ok(contains(target, "two") && folder_count(folder) == 1, "by the new bytes");
}

static void commit(ft_atomic_file *o)
{
    ft_error err;
    if (ft_atomic_file_commit(o, &err) != FT_OK)
        bail_out("%s", err.text);
    ft_atomic_file_close(o);
}

static mode_t mode_of(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 ? st.st_mode & 0777 : 0;
}

/* The only other name in the folder is the hidden one. */
static mode_t mode_of_hidden(void)
{
    struct stat st;
    mode_t mode = 0;
    DIR *dir = opendir(folder);
    for (const struct dirent *e; dir != NULL && (e = readdir(dir)) != NULL;)
        if (strncmp(e->d_name, ".model.ft", 9) == 0)
            mode = fstatat(dirfd(dir), e->d_name, &st, 0) == 0 ? st.st_mode & 0777 : 0;
    closedir(dir);
    return mode;
}

static void test_mode(void)
{
    static const mode_t modes[] = { 0600, 0444, 0664, 0755 };
    char link[256];
    snprintf(link, sizeof link, "%s", at("link.ft"));
    mode_t old = umask(022);
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        chmod(target, modes[i]);
        ft_atomic_file *o = begin(target, true, "two");
        is_int(mode_of_hidden(), 0600, "until it is committed, nobody else may read the new file");
        commit(o);
        is_int(mode_of(target), modes[i], "a file that is replaced keeps its mode %03o", modes[i]);
    }
    chmod(target, 0640);
    if (symlink("model.ft", link) != 0)
        bail_out("cannot make a link");
    ft_atomic_file *o = begin(link, true, "two");
    commit(o);
    is_int(mode_of(link), 0640, "what replaces a link keeps the mode of the file behind it");
    unlink(link);
    umask(old);
}

static ft_status refusal(const char *path, bool force, ft_error *err)
{
    ft_atomic_file *o;
    ft_status rc = ft_atomic_file_open(&o, path, force, err);
    ft_atomic_file_close(o);
    return rc;
}

static void test_stream(void)
{
    struct rlimit limit, none = { .rlim_cur = 0 };
    ft_error err;
    ft_atomic_file *o = begin(target, true, "by descriptor");
    FILE *stream = ft_atomic_file_stream(o);
    ok(stream != NULL && ft_atomic_file_stream(o) == stream, "an output has one stream");
    fputs(", by stream", stream);
    is_int(ft_atomic_file_commit(o, NULL), FT_OK, "it is flushed by the commit");
    ft_atomic_file_close(o);
    ok(contains(target, "by descriptor, by stream"), "and writes where the descriptor stands");

    o = begin(target, true, "");
    fputs("lost", ft_atomic_file_stream(o));
    getrlimit(RLIMIT_FSIZE, &limit);
    none.rlim_max = limit.rlim_max;
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &none);
    is_int(ft_atomic_file_commit(o, &err), FT_EIO,
           "a stream that cannot be flushed is not committed");
    setrlimit(RLIMIT_FSIZE, &limit);
    has(err.text, "model.ft: cannot write: File too large", "and the text says why");
    ft_atomic_file_close(o);
    ok(contains(target, "by descriptor, by stream") && folder_count(folder) == 1,
       "the old file stays, alone");
    unlink(target);
    o = begin(target, false, "two");
    is_int(ft_atomic_file_commit(o, NULL), FT_OK, "the name is free again");
    ft_atomic_file_close(o);
}

/* The superuser may write to any folder, and so becomes another user here. */
static void test_read_only(void)
{
    enum { NOBODY = 65534 };
    const uid_t self = geteuid();
    ft_error err;
    chmod(folder, 0500);
    if (self == 0 && (chown(folder, NOBODY, (gid_t) -1) != 0 || seteuid(NOBODY) != 0))
        skip(1, "this superuser can be no other user");
    else
        is_int(refusal(at("new.ft"), false, &err), FT_EIO, "a read-only folder is refused at once");
    if (seteuid(self) != 0 || chown(folder, self, (gid_t) -1) != 0 || chmod(folder, 0700) != 0)
        bail_out("%s cannot be written to again", folder);
}

static void test_refusals(void)
{
    ft_error err;
    is_int(refusal(target, false, &err), FT_EARG, "a file that exists is not replaced");
    has(err.text, "exists already", "and the text says so");
    is_int(refusal(folder, true, &err), FT_EARG, "a folder is refused, even with force");
    has(err.text, "is a folder", "as a folder");
    is_int(refusal("/dev/null", true, &err), FT_EARG, "a device is refused");
    is_int(refusal(at("no/such.ft"), false, &err), FT_EIO, "a folder that is not there is refused");
    has(err.text, "No such file or directory", "with the reason");
    is_int(refusal(at(""), false, &err), FT_EARG, "a name that ends in a slash is refused");
    is_int(refusal("", false, &err), FT_EARG, "an empty name is refused");
    char longest[256];
    memset(longest, 'a', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    is_int(refusal(longest, false, &err), FT_EARG, "a name that leaves no room is refused");
    test_read_only();
}

static void test_links(void)
{
    char link[256];
    snprintf(link, sizeof link, "%s", at("link.ft"));
    if (symlink("nowhere", link) != 0)
        bail_out("cannot make a link");
    ft_error err;
    is_int(refusal(link, false, &err), FT_EARG, "a link to nowhere exists, too");
    ft_atomic_file *o = begin(link, true, "three");
    is_int(ft_atomic_file_commit(o, NULL), FT_OK, "and is replaced with force");
    ft_atomic_file_close(o);
    ok(contains(link, "three") && access(at("nowhere"), F_OK) != 0, "itself, not what it names");
    unlink(link);
}

static void test_same_file(void)
{
    char hard[256], soft[256], new[256], detour[256];
    snprintf(hard, sizeof hard, "%s", at("hard.ft"));
    snprintf(soft, sizeof soft, "%s", at("soft.ft"));
    snprintf(new, sizeof new, "%s", at("new.ft"));
    snprintf(detour, sizeof detour, "%s/.//new.ft", folder);
    if (link(target, hard) != 0 || symlink("model.ft", soft) != 0)
        bail_out("cannot make links");
    ok(ft_paths_same_file(target, target), "a file is itself");
    ok(ft_paths_same_file(target, hard), "by a hard link");
    ok(ft_paths_same_file(soft, hard), "by a symbolic one");
    ok(ft_paths_same_file(new, detour), "and by another path, even before it exists");
    ok(!ft_paths_same_file(target, new) && !ft_paths_same_file(new, target),
       "but not by another name");
    ok(!ft_paths_same_file(new, "new.ft"), "nor by the same one elsewhere");
    ft_error err;
    is_int(ft_path_check_not_input(hard, soft, &err), FT_EARG, "an input is spared");
    has(err.text, "hard.ft: would replace the input", "and the text says so");
    is_int(ft_path_check_not_input(new, target, &err), FT_OK, "what is no input may be written");
    unlink(hard);
    unlink(soft);
}

static void test_relative(void)
{
    char old[512];
    if (getcwd(old, sizeof old) == NULL || chdir(folder) != 0)
        bail_out("cannot change folder");
    ft_atomic_file *o = begin("relative.ft", false, "four");
    is_int(chdir(old), 0, "a program may change its folder");
    is_int(ft_atomic_file_commit(o, NULL), FT_OK, "while it writes to a relative path");
    ft_atomic_file_close(o);
    ok(contains(at("relative.ft"), "four"), "which means the folder it was");
    unlink(at("relative.ft"));
}

static void test_race(void)
{
    char path[256];
    snprintf(path, sizeof path, "%s", at("race.ft"));
    ft_atomic_file *first = begin(path, false, "first"), *second = begin(path, false, "second");
    is_int(folder_count(folder), 3, "two writers of one name have a hidden file each");
    is_int(ft_atomic_file_commit(second, NULL), FT_OK, "the quicker one wins");
    ft_error err;
    is_int(ft_atomic_file_commit(first, &err), FT_EIO,
           "the other one finds a file it may not replace");
    has(err.text, "File exists", "and says so");
    ft_atomic_file_close(first);
    ft_atomic_file_close(second);
    ok(contains(path, "second"), "the file is the winner's");
    unlink(path);
    is_int(folder_count(folder), 1, "and nothing else is left");
}

/* Start to write in a process of its own, which ends without a chance to clean up. */
static void be_killed_writing(const char *path)
{
    pid_t child = fork();
    if (child == 0) {
        begin(path, true, "half");
        raise(SIGKILL);
    }
    waitpid(child, NULL, 0);
}

static void test_leftovers(void)
{
    char other[256];
    snprintf(other, sizeof other, "%s", at("other.ft"));
    be_killed_writing(target);
    be_killed_writing(other);
    ok(contains(target, "two"), "a killed writer leaves the file as it was");
    is_int(folder_count(folder), 3, "and its hidden file");
    ft_atomic_file *busy = begin(target, true, "busy");
    is_int(folder_count(folder), 3, "the next writer of that name removes it, and no other's");
    ft_atomic_file *next = begin(target, true, "next");
    is_int(folder_count(folder), 4, "but not that of a writer at work");
    is_int(ft_atomic_file_commit(busy, NULL), FT_OK, "who finishes undisturbed");
    ft_atomic_file_close(next);
    ft_atomic_file_close(busy);
    ok(contains(target, "busy"), "with its bytes");
    ft_atomic_file_close(begin(other, true, ""));
    is_int(folder_count(folder), 1, "in the end nothing is left over");
}

static void *begin_aside(void *path)
{
    return begin(path, false, "half");
}

/* As the handler of a signal does, whichever thread it interrupts. */
static void test_unfinished(void)
{
    enum { THREADS = 4, MANY = 40 };
    pthread_t thread[THREADS];
    ft_atomic_file *o[MANY];
    char path[THREADS][256];
    for (int i = 0; i < THREADS; i++) {
        snprintf(path[i], sizeof path[i], "%s/aside-%d.ft", folder, i);
        pthread_create(&thread[i], NULL, begin_aside, path[i]);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], (void **) &o[i]);
    is_int(folder_count(folder), 1 + THREADS, "threads have begun %d files", THREADS);
    is_int(ft_atomic_file_commit(o[0], NULL), FT_OK, "one of them is finished");
    pid_t child = fork();
    if (child == 0) {
        ft_temp_files_delete();
        _exit(0);
    }
    waitpid(child, NULL, 0);
    is_int(folder_count(folder), 2, "a signal removes what threads have begun");
    ok(contains(path[0], "half") && contains(target, "busy"), "and nothing that is finished");
    for (int i = 0; i < THREADS; i++)
        ft_atomic_file_close(o[i]);
    unlink(path[0]);

    for (int i = 0; i < MANY; i++)
        o[i] = begin(at("many.ft"), true, "");
    is_int(folder_count(folder), 1 + MANY, "more files than the list takes can be written");
    for (int i = 0; i < MANY; i++)
        ft_atomic_file_close(o[i]);
    is_int(folder_count(folder), 1, "and are closed");
}

int main(void)
{
    folder_make(folder);
    snprintf(target, sizeof target, "%s/model.ft", folder);
    test_commit();
    test_mode();
    test_stream();
    test_refusals();
    test_links();
    test_same_file();
    test_relative();
    test_race();
    test_leftovers();
    test_unfinished();
    folder_remove(folder);
    return done_testing();
}
