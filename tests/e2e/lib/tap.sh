# SPDX-License-Identifier: MIT
#
# tap.sh - what tests in sh share. They set root before, and end with their plan: 1..$n

n=0

skip_all()
{
	echo "1..0 # SKIP $1"
	exit 0
}

# report STATUS NAME [LOG]: a TAP line, and the log as comments if it failed
report()
{
	n=$((n + 1))
	if [ "$1" -eq 0 ]; then
		echo "ok $n - $2"
	else
		[ -z "${3:-}" ] || sed 's/^/# /' "$3"
		echo "not ok $n - $2"
		echo "# not ok $n - $2" >&2		# prove keeps the number only
	fi
}

# need_lab [KERNEL]: a VM can be started, and hawk.ko has been built for it
need_lab()
{
	"$root/tools/lab/hawk-lab" status >/dev/null 2>&1 ||
		skip_all "the lab does not work here (tools/lab/hawk-lab status)"
	[ -z "${1:-}" ] || [ -e "$root/build/kmod-$1/hawk.ko" ] ||
		skip_all "hawk.ko is not built (tools/lab/build-module --kernel $1)"
}

# need_openai: python has the OpenAI client. What the package installer says becomes comments.
need_openai()
{
	log=$(mktemp)
	if ! python=$("$root/tools/setup/venv" 2>"$log"); then
		sed 's/^/# /' "$log"
		rm -f "$log"
		skip_all "the openai package cannot be installed here"
	fi
	rm -f "$log"
}
