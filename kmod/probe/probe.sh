#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# What this kernel's API is like, found by compiling; ../Kbuild runs it as
#
#	probe.sh FOLDER LOG COMPILER ARGUMENT... >hawk-probes.h
#
# FOLDER/NAME.c that compiles gives HAVE_NAME.  A "no" counts only if it is the
# kernel that says it: a missing header or a compiler that does not work would read
# as an old kernel.  So there are controls: control_good.c must compile,
# control_bad.c must not, and of a probe that does not, the #include lines must.

set -u

folder=$1
log=$2
shift 2
: >"$log"
yes=
all=0

die()
{
	cat "$log" >&2
	echo "hawk: the compile probes do not work with this kernel and compiler:" >&2
	echo "hawk: $1" >&2
	exit 1
}

# compiles FILE COMPILER ARGUMENT...
compiles()
{
	file=$1
	shift
	"$@" -fsyntax-only -x c "$file" >>"$log" 2>&1
}

# The preprocessor's lines of a file, but for those that stop it on purpose
compiles_empty()
{
	file=$1
	shift
	grep '^ *#' "$file" | grep -v '^ *# *error' | "$@" -fsyntax-only -x c - >>"$log" 2>&1
}

compiles "$folder/control_good.c" "$@" ||
	die "control_good.c does not compile, which holds nothing but what every kernel has"
! compiles "$folder/control_bad.c" "$@" ||
	die "control_bad.c compiles, which calls what no kernel has"

for probe in "$folder"/*.c; do
	name=$(basename "$probe" .c)
	case $name in control_*) continue ;; esac
	all=$((all + 1))
	echo "--- $name" >>"$log"
	if compiles "$probe" "$@"; then
		yes="$yes $name"
		echo "#define HAVE_$(echo "$name" | tr a-z A-Z) 1"
	else
		compiles_empty "$probe" "$@" ||
			die "$name.c: not even its #include lines compile (a header that a kernel may lack belongs under __has_include)"
		echo "/* no $name */"
	fi
done
set -- $yes
echo "hawk probes: $# of $all: $*" >&2
