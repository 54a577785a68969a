/*
 * text_file.c - read a small file completely.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "convert/checkpoint/text_file.h"

#include "runtime/error.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* Returns the number of bytes read, at most `size`; -1 with errno set on failure. */
static ssize_t read_fully(int fd, char *buffer, size_t size)
{
    size_t used = 0;
    while (used < size) {
        ssize_t got = read(fd, buffer + used, size - used);
        if (got == 0)
            break;
        if (got < 0 && errno != EINTR)
            return -1;
        used += got > 0 ? (size_t) got : 0;
    }
    return (ssize_t) used;
}

static ft_status read_descriptor(int fd, const char *path, char **text, size_t *bytes,
                                 ft_error *err)
{
    struct stat file_stat;
    if (fstat(fd, &file_stat) != 0)
        return ft_fail_errno(err, "%s", path);
    if (!S_ISREG(file_stat.st_mode))
        return ft_fail(err, FT_EIO, "%s: not a regular file", path);
    if (file_stat.st_size > FT_TEXT_FILE_MAX_BYTES)
        return ft_fail(err, FT_ELIMIT, "%s: %lld bytes, expected at most %d", path,
                       (long long) file_stat.st_size, FT_TEXT_FILE_MAX_BYTES);
    char *buffer = malloc((size_t) file_stat.st_size + 1);
    if (buffer == NULL)
        return ft_fail(err, FT_ENOMEM, "%s: no memory", path);
    ssize_t used = read_fully(fd, buffer, (size_t) file_stat.st_size);
    if (used < 0) {
        free(buffer);
        return ft_fail_errno(err, "%s", path);
    }
    buffer[used] = '\0';
    *text = buffer;
    *bytes = (size_t) used;
    return FT_OK;
}

ft_status ft_text_file_read(const char *path, char **text, size_t *bytes, ft_error *err)
{
    /* Without O_NONBLOCK, opening a FIFO would block until there is a writer. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return ft_fail_errno(err, "%s", path);
    ft_status rc = read_descriptor(fd, path, text, bytes, err);
    close(fd);
    return rc;
}
