/*
 * atomic_file.c - temporary file, lock, fsync, rename.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/base/atomic_file.h"

#include "runtime/error.h"
#include "runtime/mem.h"
#include "runtime/base/temp_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

static const char temp_infix[] = ".ft-tmp-";

enum { MAX_NAME = 200, MAX_TRIES = 1000 };

struct ft_atomic_file {
    char *path;
    const char *name; /* its last component */
    bool force, committed;
    bool replaces_file; /* an existing file, whose permissions are kept: */
    mode_t mode;
    int folder, fd;
    FILE *stream;                 /* over a duplicate of fd; created on demand */
    char temp_name[NAME_MAX + 1]; /* name in the folder; empty until it is created */
    int temp_slot;                /* slot in the list of temporary files, or -1 */
};

const char *ft_atomic_file_path(const ft_atomic_file *o)
{
    return o->path;
}

int ft_atomic_file_fd(const ft_atomic_file *o)
{
    return o->fd;
}

FILE *ft_atomic_file_stream(ft_atomic_file *o)
{
    if (o->stream != NULL)
        return o->stream;
    int copy = fcntl(o->fd, F_DUPFD_CLOEXEC, 0);
    if (copy >= 0 && (o->stream = fdopen(copy, "wb")) == NULL)
        close(copy);
    return o->stream;
}

/* ---- Paths -------------------------------------------------------------------------------- */

/* The last component of a path. */
static const char *name_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

/* The folder of a path; the caller frees it. NULL when out of memory. */
static char *folder_of(const char *path)
{
    size_t length = (size_t) (name_of(path) - path);
    if (length > 1) /* without the trailing slash, unless it is the root */
        length--;
    return length == 0 ? ft_strdup(".") : strndup(path, length);
}

char *ft_atomic_file_temp_path(const ft_atomic_file *o)
{
    char *folder = folder_of(o->path), *path_of_temp = NULL;
    if (folder != NULL) {
        size_t bytes = strlen(folder) + strlen(o->temp_name) + 2;
        path_of_temp = malloc(bytes);
        if (path_of_temp != NULL)
            snprintf(path_of_temp, bytes, "%s/%s", folder, o->temp_name);
    }
    free(folder);
    return path_of_temp;
}

static bool same_inode(const char *a, const char *b)
{
    struct stat left, right;
    return stat(a, &left) == 0 && stat(b, &right) == 0 && left.st_dev == right.st_dev &&
           left.st_ino == right.st_ino;
}

bool ft_paths_same_file(const char *a, const char *b)
{
    if (same_inode(a, b))
        return true;
    char *left = folder_of(a), *right = folder_of(b);
    bool same = left != NULL && right != NULL && strcmp(name_of(a), name_of(b)) == 0 &&
                same_inode(left, right);
    free(left);
    free(right);
    return same;
}

ft_status ft_path_check_not_input(const char *path, const char *input, ft_error *err)
{
    if (ft_paths_same_file(path, input))
        return ft_fail(err, FT_EARG, "%s: would replace the input %s", path, input);
    return FT_OK;
}

/* ---- Opening ------------------------------------------------------------------------------ */

static ft_status open_folder(ft_atomic_file *o, ft_error *err)
{
    char *folder = folder_of(o->path);
    if (folder == NULL)
        return ft_fail(err, FT_ENOMEM, "%s: no memory", o->path);
    o->folder = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ft_status rc = FT_OK;
    if (o->folder < 0)
        rc = ft_fail_errno(err, "%s: cannot write to folder %s", o->path, folder);
    free(folder);
    return rc;
}

static ft_status check_target(ft_atomic_file *o, ft_error *err)
{
    struct stat st;
    if (fstatat(o->folder, o->name, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return errno == ENOENT ? FT_OK : ft_fail_errno(err, "%s", o->path);
    /* A symbolic link is replaced, not followed, but only where a regular file could be. */
    bool dangling = S_ISLNK(st.st_mode) && fstatat(o->folder, o->name, &st, 0) != 0;
    if (!dangling && S_ISDIR(st.st_mode))
        return ft_fail(err, FT_EARG, "%s: is a folder", o->path);
    if (!dangling && !S_ISREG(st.st_mode))
        return ft_fail(err, FT_EARG, "%s: is not a regular file", o->path);
    if (!o->force)
        return ft_fail(err, FT_EARG, "%s: exists already; --force replaces it", o->path);
    o->replaces_file = !dangling;
    o->mode = st.st_mode & 0777;
    return FT_OK;
}

/* Remove a temporary file that no process has locked. */
static void remove_if_stale(int folder, const char *name)
{
    int fd = openat(folder, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return;
    if (flock(fd, LOCK_EX | LOCK_NB) == 0)
        unlinkat(folder, name, 0);
    close(fd);
}

static void remove_stale_files(const ft_atomic_file *o)
{
    char prefix[NAME_MAX + 1];
    int length = snprintf(prefix, sizeof prefix, ".%s%s", o->name, temp_infix);
    int fd = dup(o->folder);
    DIR *folder = fd >= 0 ? fdopendir(fd) : NULL;
    if (folder == NULL) {
        if (fd >= 0)
            close(fd);
        return;
    }
    rewinddir(folder);
    for (const struct dirent *e; (e = readdir(folder)) != NULL;)
        if (strncmp(e->d_name, prefix, (size_t) length) == 0)
            remove_if_stale(o->folder, e->d_name);
    closedir(folder);
}

/*
 * Lock the new temporary file. False when another writer saw the file before it was locked and
 * treated it as stale. On a file system without locks, stale files are not removed either.
 */
static bool lock_temp_file(const ft_atomic_file *o)
{
    struct stat st;
    if (flock(o->fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        return false;
    return fstat(o->fd, &st) == 0 && st.st_nlink == 1;
}

/*
 * Choose a unique name: process ids are not unique where several machines share a folder. So the
 * file can be listed before it is created, and a signal in between cannot remove another writer's
 * file.
 */
static void choose_temp_name(ft_atomic_file *o, unsigned attempt)
{
    uint64_t number;
    if (getrandom(&number, sizeof number, GRND_NONBLOCK) != sizeof number)
        number = attempt;
    snprintf(o->temp_name, sizeof o->temp_name, ".%s%s%ld-%" PRIx64, o->name, temp_infix,
             (long) getpid(), number);
}

/*
 * While it is written, a file that replaces another is readable by its owner only: the old
 * permissions may be as strict.
 */
static int create_temp_file(ft_atomic_file *o)
{
    o->temp_slot = ft_temp_file_register(o->folder, o->temp_name);
    return openat(o->folder, o->temp_name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC,
                  o->replaces_file ? 0600 : 0666);
}

static void unregister_temp_file(ft_atomic_file *o)
{
    ft_temp_file_unregister(o->temp_slot);
    o->temp_slot = -1;
    o->temp_name[0] = '\0';
}

static ft_status open_temp_file(ft_atomic_file *o, ft_error *err)
{
    for (unsigned attempt = 0; attempt < MAX_TRIES; attempt++) {
        choose_temp_name(o, attempt);
        o->fd = create_temp_file(o);
        if (o->fd >= 0 && lock_temp_file(o))
            return FT_OK;
        unregister_temp_file(o);
        if (o->fd < 0 && errno != EEXIST)
            return ft_fail_errno(err, "%s: cannot write to its folder", o->path);
        if (o->fd >= 0)
            close(o->fd);
        o->fd = -1;
    }
    return ft_fail(err, FT_EIO, "%s: no free name for a temporary file", o->path);
}

ft_status ft_atomic_file_open(ft_atomic_file **out, const char *path, bool force, ft_error *err)
{
    *out = NULL;
    ft_atomic_file *o = calloc(1, sizeof *o);
    if (o == NULL || (o->path = ft_strdup(path)) == NULL) {
        free(o);
        return ft_fail(err, FT_ENOMEM, "%s: no memory", path);
    }
    o->name = name_of(o->path);
    o->force = force;
    o->folder = o->fd = o->temp_slot = -1;

    ft_status rc = FT_OK;
    if (o->name[0] == '\0')
        rc = ft_fail(err, FT_EARG, "\"%s\": not a file name", path);
    else if (strlen(o->name) > MAX_NAME)
        rc = ft_fail(err, FT_EARG, "%s: the name is longer than %d bytes", path, MAX_NAME);
    if (rc == FT_OK)
        rc = open_folder(o, err);
    if (rc == FT_OK)
        rc = check_target(o, err);
    if (rc == FT_OK) {
        remove_stale_files(o);
        rc = open_temp_file(o, err);
    }
    if (rc != FT_OK) {
        ft_atomic_file_close(o);
        return rc;
    }
    *out = o;
    return FT_OK;
}

/* ---- Ending ------------------------------------------------------------------------------- */

ft_status ft_atomic_file_reserve(ft_atomic_file *o, uint64_t bytes, ft_error *err)
{
#ifdef FALLOC_FL_KEEP_SIZE
    bool disk_full = bytes <= INT64_MAX &&
                     fallocate(o->fd, FALLOC_FL_KEEP_SIZE, 0, (off_t) bytes) != 0 &&
                     (errno == ENOSPC || errno == EDQUOT);
    if (disk_full) /* other errors only mean that this file system cannot preallocate */
        return ft_fail_errno(err, "%s: %llu bytes are needed", o->path, (unsigned long long) bytes);
#else
    (void) o, (void) bytes, (void) err;
#endif
    return FT_OK;
}

/*
 * Copy the permissions of the replaced file, last of all, because they may deny access that the
 * temporary file grants.
 */
static ft_status copy_permissions(const ft_atomic_file *o, ft_error *err)
{
    struct stat st;
    if (!o->replaces_file || (fstat(o->fd, &st) == 0 && (st.st_mode & 0777) == o->mode))
        return FT_OK;
    if (fchmod(o->fd, o->mode) != 0)
        return ft_fail_errno(err, "%s: cannot keep its permissions %03o", o->path,
                             (unsigned) o->mode);
    return FT_OK;
}

/* Without force, do not replace a file that was created in the meantime. */
static int rename_to_target(const ft_atomic_file *o)
{
#ifdef RENAME_NOREPLACE
    if (!o->force) {
        int rc = renameat2(o->folder, o->temp_name, o->folder, o->name, RENAME_NOREPLACE);
        if (rc == 0 || (errno != EINVAL && errno != ENOSYS))
            return rc;
    }
#endif
    return renameat(o->folder, o->temp_name, o->folder, o->name);
}

ft_status ft_atomic_file_commit(ft_atomic_file *o, ft_error *err)
{
    if (o->stream != NULL && (ferror(o->stream) || fflush(o->stream) != 0))
        return ft_fail_errno(err, "%s: cannot write", o->path);
    FT_TRY(copy_permissions(o, err));
    if (fsync(o->fd) != 0)
        return ft_fail_errno(err, "%s: cannot flush it to disk", o->path);
    if (rename_to_target(o) != 0)
        return ft_fail_errno(err, "%s: cannot rename the temporary file", o->path);
    o->committed = true;
    if (fsync(o->folder) != 0 && errno != EINVAL) /* some file systems cannot sync folders */
        return ft_fail_errno(err, "%s: cannot flush its folder to disk", o->path);
    return FT_OK;
}

void ft_atomic_file_close(ft_atomic_file *o)
{
    if (o == NULL)
        return;
    if (o->temp_name[0] != '\0' && !o->committed)
        unlinkat(o->folder, o->temp_name, 0);
    unregister_temp_file(o);
    if (o->stream != NULL)
        fclose(o->stream);
    if (o->fd >= 0)
        close(o->fd);
    if (o->folder >= 0)
        close(o->folder);
    free(o->path);
    free(o);
}
