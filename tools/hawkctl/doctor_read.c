// SPDX-License-Identifier: MIT
/*
 * doctor_read.c - files below a root, whatever they are
 *
 * A tree that somebody has sent may have anything in the place of a file of /proc or /sys:
 * what is no regular file is not opened, no more is read than is of use, and what is shown
 * is printable.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "doctor.h"

#define LINES_MAX	100000	/* of a file: a kernel's configuration has 10,000 */
#define LINE_MAX_BYTES	1024
#define ENTRIES_MAX	4096	/* of a folder */

/* doc_path() - a path below the root; false: it would be too long */
bool doc_path(const struct doctor *d, char to[PATH_MAX], const char *fmt, ...)
{
	int n = snprintf(to, PATH_MAX, "%s", d->root), m;
	va_list ap;

	if (n < 0 || n >= PATH_MAX)
		return false;
	va_start(ap, fmt);
	m = vsnprintf(to + n, PATH_MAX - (size_t)n, fmt, ap);
	va_end(ap);
	return m >= 0 && m < PATH_MAX - n;
}

bool doc_exists(const char *path)
{
	struct stat st;

	return !stat(path, &st);
}

/* A pipe would not come to an end. */
static int open_file(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat st;

	if (fd >= 0 && (fstat(fd, &st) || !S_ISREG(st.st_mode))) {
		close(fd);
		fd = -1;
	}
	return fd;
}

/* doc_text() - the first line of a file, as much as there is room for */
bool doc_text(const char *path, char *to, size_t len)
{
	int fd = open_file(path);
	ssize_t n;
	size_t i;

	to[0] = 0;
	if (fd < 0)
		return false;
	n = read(fd, to, len - 1);
	close(fd);
	if (n < 0)
		n = 0;
	for (i = 0; i < (size_t)n && to[i] && to[i] != '\n'; i++)
		if (!isprint((unsigned char)to[i]))
			to[i] = '?';
	to[i] = 0;
	return i > 0;
}

/* doc_number() - a file that is one number, decimal or 0x... */
bool doc_number(const char *path, uint64_t *v)
{
	char text[32], *end;

	if (!doc_text(path, text, sizeof(text)) || !isdigit((unsigned char)text[0]))
		return false;
	errno = 0;
	*v = strtoull(text, &end, 0);
	return !errno && !*end;
}

/**
 * doc_lines() - go through the lines of a file, which may be compressed
 * @line: is told each; false: enough
 *
 * Return: false: there is no such file.
 */
bool doc_lines(const char *path, bool (*line)(void *arg, const char *text), void *arg)
{
	int fd = open_file(path), n;
	char text[LINE_MAX_BYTES];
	gzFile f = fd < 0 ? NULL : gzdopen(fd, "r");

	if (!f) {
		if (fd >= 0)
			close(fd);
		return false;
	}
	for (n = 0; n < LINES_MAX && gzgets(f, text, sizeof(text)); n++) {
		text[strcspn(text, "\n")] = 0;
		if (!line(arg, text))
			break;
	}
	gzclose(f);
	return true;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* doc_list() - go through a folder, in the order of names.  Return: entries, 0: none. */
int doc_list(const char *path, void (*entry)(void *arg, const char *name), void *arg)
{
	char **name = calloc(ENTRIES_MAX, sizeof(*name));
	DIR *dir = name ? opendir(path) : NULL;
	struct dirent *de;
	int n = 0, i;

	while (dir && n < ENTRIES_MAX && (de = readdir(dir)))
		if (de->d_name[0] != '.' && (name[n] = strdup(de->d_name)))
			n++;
	if (dir)
		closedir(dir);
	qsort(name, (size_t)n, sizeof(*name), by_name);
	for (i = 0; i < n; i++) {
		entry(arg, name[i]);
		free(name[i]);
	}
	free(name);
	return n;
}
