// SPDX-License-Identifier: MIT
/*
 * lib_url.c - hawk_open() takes what its man page says and refuses the rest
 */
#include <stdlib.h>

#include "libfixture.h"
#include "priv.h"

static void accepts(void **state)
{
	struct hawk_url u;

	(void)state;
	assert_int_equal(hawk_url_parse("dev:", &u), 0);
	assert_true(u.dev);
	assert_string_equal(u.path, "/dev/hawk");
	assert_int_equal(hawk_url_parse("dev:/dev/hawk7", &u), 0);
	assert_string_equal(u.path, "/dev/hawk7");

	assert_int_equal(hawk_url_parse("embed:", &u), 0);
	assert_false(u.dev);
	assert_int_equal(u.dram, 256u << 20);
	assert_int_equal(u.drives, 0);
	assert_int_equal(hawk_url_parse("embed:?", &u), 0);

	assert_int_equal(hawk_url_parse("embed:?dram=3g&flash=/a%26b%25&flash_size=2T"
					"&flash_budget=5G&writeback=0",
					&u), 0);
	assert_int_equal(u.dram, 3ull << 30);
	assert_int_equal(u.drives, 1);
	assert_string_equal(u.drive[0], "/a&b%");
	assert_int_equal(u.flash, 2ull << 40);
	assert_int_equal(u.writeback, 0);
	assert_true(u.budget == 5ull << 30);
	assert_int_equal(hawk_url_parse("embed:?flash=/a&persist=1&flash=/b", &u), 0);
	assert_int_equal(u.drives, 2);
	assert_string_equal(u.drive[0], "/a");
	assert_string_equal(u.drive[1], "/b");
	assert_int_equal(hawk_url_parse("embed:?dram=4194304", &u), 0);
	assert_int_equal(u.dram, 4194304);
}

static void rejects(void **state)
{
	static const char *const bad[] = {
		"", "dev", "embed", "/dev/hawk", "http://x", "embed:dram=1M", "dev:%zz", "dev:%00",
		"embed:?dram", "embed:?dram=", "embed:?dram=x", "embed:?dram=-1", "embed:?dram=0",
		"embed:?dram=1Mi", "embed:?dram=1.5G", "embed:?dram=99999999T",
		"embed:?dram=99999999999999999999", "embed:?Dram=1M", "embed:?dram=1M&dram=1M",
		"embed:?dram=1M&&writeback=1", "embed:?nope=1", "embed:?flash=/x",
		"embed:?flash_size=1G", "embed:?flash_budget=1G", "embed:?flash_budget=0",
		"embed:?flash=&flash_size=1G", "embed:?flash=/a&flash=/a&persist=1",
		"embed:?flash=/1&flash=/2&flash=/3&flash=/4&flash=/5&flash=/6&flash=/7&flash=/8&persist=1",
		"embed:?writeback=1025",
		"embed:?writeback=-1", "embed:?writeback=1x", "embed:?=1", "embed:?dram=1M%",
	};
	struct hawk_url u;
	struct hawk *h;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		if (hawk_url_parse(bad[i], &u) != -EINVAL)
			fail_msg("'%s' was accepted", bad[i]);
		assert_int_equal(hawk_open(bad[i], &h), -EINVAL);
		assert_null(h);
		assert_non_null(strstr(hawk_strerror_last(), "URL"));
	}
}

static void long_path(void **state)
{
	char url[2 * HAWK_PATH_MAX];
	struct hawk_url u;

	(void)state;
	memset(url, 'x', sizeof(url));
	memcpy(url, "dev:", 4);
	url[sizeof(url) - 1] = 0;
	assert_int_equal(hawk_url_parse(url, &u), -EINVAL);
	memcpy(url, "embed:?flash=", 13);
	assert_int_equal(hawk_url_parse(url, &u), -EINVAL);
}

static void no_device(void **state)
{
	struct hawk *h;

	(void)state;
	assert_int_equal(hawk_open("dev:/nonexistent/hawk", &h), -ENOENT);
	assert_non_null(strstr(hawk_strerror_last(), "/nonexistent/hawk"));
	assert_int_equal(hawk_open("dev:/dev/null", &h), -EPROTO);
}

/* NULL: $HAWK_URL is obeyed, an unusable one is an error and not replaced. */
static void environment(void **state)
{
	struct hawk *h;
	char *old = getenv("HAWK_URL") ? strdup(getenv("HAWK_URL")) : NULL;

	(void)state;
	setenv("HAWK_URL", "embed:?dram=2M", 1);
	assert_ok(hawk_open(NULL, &h));
	assert_string_equal(hawk_backend(h), "embed");
	hawk_close(h);
	setenv("HAWK_URL", "dev:/nonexistent/hawk", 1);
	assert_int_equal(hawk_open(NULL, &h), -ENOENT);
	unsetenv("HAWK_URL");
	assert_ok(hawk_open(NULL, &h));
	hawk_close(h);
	if (old)
		setenv("HAWK_URL", old, 1);
	free(old);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(accepts),
		cmocka_unit_test(rejects),
		cmocka_unit_test(long_path),
		cmocka_unit_test(no_device),
		cmocka_unit_test(environment),
	};

	return cmocka_run_group_tests_name("lib_url", tests, NULL, NULL);
}
