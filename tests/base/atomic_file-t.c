/*
 * atomic_file-t.c - an output file appears completely or not at all.
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

/* Opens a file and writes `text`; the caller commits it. */
static ft_atomic_file *begin(const char *path, bool force, const char *text)
{
    ft_atomic_file *o;
    ft_error err;
    if (ft_atomic_file_open(&o, path, force, &err) != FT_OK)
        bail_out("%s", err.text);
    if (write(ft_atomic_file_fd(o), text, strlen(text)) != (ssize_t) strlen(text))
        bail_out("cannot write to the temporary file");
    return o;
}

static void test_commit(void)
{
    mode_t old = umask(027);
    ft_atomic_file *o = begin(target, false, "one");
    ok(access(target, F_OK) != 0 && folder_count(folder) == 1,
       "only a hidden temporary file exists before the commit");
    is_int(ft_atomic_file_commit(o, NULL), FT_OK,
           "ft_atomic_file_commit() succeeds for a new file");
    ft_atomic_file_close(o);
    ok(contains(target, "one") && folder_count(folder) == 1,
       "a committed file has its contents and leaves no temporary file");
    struct stat st;
    stat(target, &st);
    is_int(st.st_mode & 0777, 0640, "the permissions of a new file follow the umask");
    umask(old);

    o = begin(target, true, "two");
    ok(contains(target, "one"), "the old file stays while a new one is written");
    ft_atomic_file_close(o);
    ok(contains(target, "one") && folder_count(folder) == 1,
       "the old file stays when the new one is closed without a commit");
    o = begin(target, true, "two");
    is_int(ft_atomic_file_commit(o, NULL), FT_OK,
           "ft_atomic_file_commit() replaces a file with force");
    ft_atomic_file_close(o);
    ok(contains(target, "two") && folder_count(folder) == 1,
       "a replaced file has the new contents and leaves no temporary file");
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
        is_int(mode_of_hidden(), 0600, "the temporary file has mode 600 until it is committed");
        commit(o);
        is_int(mode_of(target), modes[i], "a replaced file keeps its mode %03o", modes[i]);
    }
    chmod(target, 0640);
    if (symlink("model.ft", link) != 0)
        bail_out("cannot create a link");
    ft_atomic_file *o = begin(link, true, "two");
    commit(o);
    is_int(mode_of(link), 0640,
           "a file that replaces a symbolic link gets the mode of the link's target");
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
    ok(stream != NULL && ft_atomic_file_stream(o) == stream,
       "ft_atomic_file_stream() returns the same stream every time");
    fputs(", by stream", stream);
    is_int(ft_atomic_file_commit(o, NULL), FT_OK, "ft_atomic_file_commit() flushes the stream");
    ft_atomic_file_close(o);
    ok(contains(target, "by descriptor, by stream"),
       "the stream writes at the current offset of the descriptor");

    o = begin(target, true, "");
    fputs("lost", ft_atomic_file_stream(o));
    getrlimit(RLIMIT_FSIZE, &limit);
    none.rlim_max = limit.rlim_max;
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &none);
    is_int(ft_atomic_file_commit(o, &err), FT_EIO,
           "ft_atomic_file_commit() fails if the stream cannot be flushed");
    setrlimit(RLIMIT_FSIZE, &limit);
    has(err.text, "model.ft: cannot write: File too large",
        "the message for a failed flush names the file and the reason");
    ft_atomic_file_close(o);
    ok(contains(target, "by descriptor, by stream") && folder_count(folder) == 1,
       "the old file stays and no temporary file is left after a failed commit");
    unlink(target);
    o = begin(target, false, "two");
    is_int(ft_atomic_file_commit(o, NULL), FT_OK,
           "a file can be written again after it is removed");
    ft_atomic_file_close(o);
}

/* The superuser may write to any folder, so the test switches to another user. */
static void test_read_only(void)
{
    enum { NOBODY = 65534 };
    const uid_t self = geteuid();
    ft_error err;
    chmod(folder, 0500);
    if (self == 0 && (chown(folder, NOBODY, (gid_t) -1) != 0 || seteuid(NOBODY) != 0))
        skip(1, "the superuser cannot switch to another user here");
    else
        is_int(refusal(at("new.ft"), false, &err), FT_EIO,
               "ft_atomic_file_open() refuses a read-only folder");
    if (seteuid(self) != 0 || chown(folder, self, (gid_t) -1) != 0 || chmod(folder, 0700) != 0)
        bail_out("cannot make %s writable again", folder);
}

static void test_refusals(void)
{
    ft_error err;
    is_int(refusal(target, false, &err), FT_EARG,
           "ft_atomic_file_open() refuses an existing file without force");
    has(err.text, "exists already", "the message says that the file exists already");
    is_int(refusal(folder, true, &err), FT_EARG,
           "ft_atomic_file_open() refuses a folder even with force");
    has(err.text, "is a folder", "the message says that the path is a folder");
    is_int(refusal("/dev/null", true, &err), FT_EARG, "ft_atomic_file_open() refuses a device");
    is_int(refusal(at("no/such.ft"), false, &err), FT_EIO,
           "ft_atomic_file_open() refuses a path in a missing folder");
    has(err.text, "No such file or directory", "the message for a missing folder names the reason");
    is_int(refusal(at(""), false, &err), FT_EARG,
           "ft_atomic_file_open() refuses a path that ends in a slash");
    is_int(refusal("", false, &err), FT_EARG, "ft_atomic_file_open() refuses an empty path");
    char longest[256];
    memset(longest, 'a', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    is_int(refusal(longest, false, &err), FT_EARG,
           "ft_atomic_file_open() refuses a name that is too long for a temporary name");
    test_read_only();
}

static void test_links(void)
{
    char link[256];
    snprintf(link, sizeof link, "%s", at("link.ft"));
    if (symlink("nowhere", link) != 0)
        bail_out("cannot create a link");
    ft_error err;
    is_int(refusal(link, false, &err), FT_EARG,
           "ft_atomic_file_open() refuses a dangling symbolic link without force");
    ft_atomic_file *o = begin(link, true, "three");
    is_int(ft_atomic_file_commit(o, NULL), FT_OK,
           "ft_atomic_file_commit() replaces a dangling symbolic link with force");
    ft_atomic_file_close(o);
    ok(contains(link, "three") && access(at("nowhere"), F_OK) != 0,
       "the commit replaces the link itself, not its target");
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
        bail_out("cannot create links");
    ok(ft_paths_same_file(target, target), "ft_paths_same_file() holds for equal paths");
    ok(ft_paths_same_file(target, hard), "ft_paths_same_file() holds for a hard link");
    ok(ft_paths_same_file(soft, hard), "ft_paths_same_file() holds for a symbolic link");
    ok(ft_paths_same_file(new, detour),
       "ft_paths_same_file() holds for two paths of a file that does not exist yet");
    ok(!ft_paths_same_file(target, new) && !ft_paths_same_file(new, target),
       "ft_paths_same_file() does not hold for another name");
    ok(!ft_paths_same_file(new, "new.ft"),
       "ft_paths_same_file() does not hold for the same name in another folder");
    ft_error err;
    is_int(ft_path_check_not_input(hard, soft, &err), FT_EARG,
           "ft_path_check_not_input() refuses an output that is a link to an input");
    has(err.text, "hard.ft: would replace the input",
        "the message says that the output would replace the input");
    is_int(ft_path_check_not_input(new, target, &err), FT_OK,
           "ft_path_check_not_input() accepts an output that is no input");
    unlink(hard);
    unlink(soft);
}

static void test_relative(void)
{
    char old[512];
    if (getcwd(old, sizeof old) == NULL || chdir(folder) != 0)
        bail_out("cannot change the working directory");
    ft_atomic_file *o = begin("relative.ft", false, "four");
    is_int(chdir(old), 0, "the working directory changes while a relative path is open");
    is_int(ft_atomic_file_commit(o, NULL), FT_OK,
           "ft_atomic_file_commit() succeeds after the working directory has changed");
    ft_atomic_file_close(o);
    ok(contains(at("relative.ft"), "four"),
       "a relative path refers to the working directory at the time of opening");
    unlink(at("relative.ft"));
}

static void test_race(void)
{
    char path[256];
    snprintf(path, sizeof path, "%s", at("race.ft"));
    ft_atomic_file *first = begin(path, false, "first"), *second = begin(path, false, "second");
    is_int(folder_count(folder), 3, "two writers of one path have separate temporary files");
    is_int(ft_atomic_file_commit(second, NULL), FT_OK, "the first writer to commit succeeds");
    ft_error err;
    is_int(ft_atomic_file_commit(first, &err), FT_EIO,
           "the second writer to commit is refused without force");
    has(err.text, "File exists", "the message for the second writer says that the file exists");
    ft_atomic_file_close(first);
    ft_atomic_file_close(second);
    ok(contains(path, "second"), "the file has the contents of the first writer to commit");
    unlink(path);
    is_int(folder_count(folder), 1, "no temporary file is left after two writers");
}

/* Starts to write in a child process that is killed before it can clean up. */
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
    ok(contains(target, "two"), "a killed writer leaves the file unchanged");
    is_int(folder_count(folder), 3, "a killed writer leaves its temporary file");
    ft_atomic_file *busy = begin(target, true, "busy");
    is_int(folder_count(folder), 3,
           "the next writer of a path removes stale temporary files of that path only");
    ft_atomic_file *next = begin(target, true, "next");
    is_int(folder_count(folder), 4, "the next writer keeps the temporary file of an active writer");
    is_int(ft_atomic_file_commit(busy, NULL), FT_OK,
           "ft_atomic_file_commit() of the active writer succeeds");
    ft_atomic_file_close(next);
    ft_atomic_file_close(busy);
    ok(contains(target, "busy"), "the file has the contents of the active writer");
    ft_atomic_file_close(begin(other, true, ""));
    is_int(folder_count(folder), 1,
           "no temporary file is left once every path has been written again");
}

static void *begin_aside(void *path)
{
    return begin(path, false, "half");
}

/* The child calls the function that signal handlers call, on any thread. */
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
    is_int(folder_count(folder), 1 + THREADS, "%d threads have one temporary file each", THREADS);
    is_int(ft_atomic_file_commit(o[0], NULL), FT_OK,
           "ft_atomic_file_commit() succeeds for a file that another thread opened");
    pid_t child = fork();
    if (child == 0) {
        ft_temp_files_delete();
        _exit(0);
    }
    waitpid(child, NULL, 0);
    is_int(folder_count(folder), 2,
           "ft_temp_files_delete() removes the temporary files of all threads");
    ok(contains(path[0], "half") && contains(target, "busy"),
       "ft_temp_files_delete() keeps committed files");
    for (int i = 0; i < THREADS; i++)
        ft_atomic_file_close(o[i]);
    unlink(path[0]);

    for (int i = 0; i < MANY; i++)
        o[i] = begin(at("many.ft"), true, "");
    is_int(folder_count(folder), 1 + MANY,
           "more temporary files can be open than the deletion list holds");
    for (int i = 0; i < MANY; i++)
        ft_atomic_file_close(o[i]);
    is_int(folder_count(folder), 1, "closing all files removes all temporary files");
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
