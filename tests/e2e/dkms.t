#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The package hawk-dkms: its sources are complete, DKMS builds them for a lab kernel
# and signs the module with a key of ours, and refuses kernels that are too old.
# Everything happens in scratch folders, in a mount namespace of its own.
#
#	HAWK_DKMS_KERNEL	lab kernel to build for (6.1)

root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/e2e/lib/tap.sh"
cd "$root" || exit 1
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
kernel=${HAWK_DKMS_KERNEL:-6.1}

command -v dkms >/dev/null || skip_all "dkms is not installed"
command -v openssl >/dev/null || skip_all "openssl is not installed"
[ "$(id -u)" -eq 0 ] && unshare -m true 2>/dev/null || skip_all "needs root, for a mount namespace"
need_lab
headers=$(tools/lab/hawk-lab kernel --kernel "$kernel" --headers) || skip_all "no headers of $kernel"
release=${headers##*/linux-headers-}

ok()
{
	report "$1" "$2" "$tmp/log"
}

make -s dkms-deb BUILD="$tmp/build" >"$tmp/log" 2>&1 && deb=$(echo "$tmp"/build/hawk-dkms_*_all.deb) &&
	dpkg-deb -x "$deb" "$tmp/pkg" && dpkg-deb -e "$deb" "$tmp/pkg/DEBIAN"
ok $? "make dkms-deb"
version=$(dpkg-deb -f "$deb" Version)
src=$tmp/pkg/usr/src

find kmod uapi -name '*.[ch]' -o -name '*.sh' -o -name Kbuild | sort >"$tmp/want"
(cd "$src/hawk-$version" && find kmod uapi -type f | sort) >"$tmp/have"
diff "$tmp/want" "$tmp/have" >"$tmp/log"
ok $? "it has every source of the module and nothing else"
(for script in "$tmp"/pkg/DEBIAN/p*; do sh -n "$script" || exit 1; done) >"$tmp/log" 2>&1
ok $? "its scripts are in order"
! grep -rnI '@[A-Z]*@' "$tmp/pkg" >"$tmp/log"
ok $? "no placeholder is left in it"

openssl req -new -x509 -nodes -newkey rsa:2048 -days 2 -subj "/CN=hawk throwaway key/" \
	-keyout "$tmp/key" -outform DER -out "$tmp/cert" 2>"$tmp/log"
ok $? "a throwaway signing key"
cat >"$tmp/framework.conf" <<END
sign_file="$headers/scripts/sign-file"
mok_signing_key="$tmp/key"
mok_certificate="$tmp/cert"
END
mkdir "$tmp/tree"

# DKMS with our configuration over the host's, and nowhere to leave anything
dkms_here()
{
	verb=$1
	shift
	unshare -m sh -c '
		mount --bind "$0" /etc/dkms/framework.conf && mount -t tmpfs none /var/lib/dkms &&
		exec dkms "$@"' "$tmp/framework.conf" "$verb" --dkmstree "$tmp/tree" \
		--sourcetree "$src" -m hawk -v "$version" "$@" >"$tmp/log" 2>&1
}

dkms_here add
ok $? "dkms add"
dkms_here build -k "$release" -a x86_64 --kernelsourcedir "$headers"
ok $? "dkms build for $release"
ko=$(find "$tmp/tree/hawk/$version/$release" -name 'hawk.ko*' | head -n 1)
[ -n "$ko" ] && [ "$(modinfo -F vermagic "$ko" | cut -d' ' -f1)" = "$release" ]
ok $? "hawk.ko is for that kernel"
modinfo "$ko" >"$tmp/log" 2>&1
[ "$(modinfo -F signer "$ko")" = "hawk throwaway key" ]
ok $? "and signed by the key that DKMS was given"

# The kernel's own tool, as SIGNING.md tells; strip takes the signature away again
plain=$tmp/plain.ko
cp build/kmod-"$kernel"/hawk.ko "$plain" 2>"$tmp/log" || { xz -dc "$ko" 2>/dev/null || cat "$ko"; } >"$plain"
strip -g "$plain"
[ -z "$(modinfo -F signer "$plain")" ] &&
	"$headers/scripts/sign-file" sha256 "$tmp/key" "$tmp/cert" "$plain" 2>"$tmp/log" &&
	[ "$(modinfo -F signer "$plain")" = "hawk throwaway key" ]
ok $? "signing by hand"

mkdir -p "$tmp/old/include/config"
dkms_here build -k 5.10.0-30-amd64 -a x86_64 --kernelsourcedir "$tmp/old"
rc=$?
[ $rc -ne 0 ] && grep -qi "BUILD_EXCLUSIVE" "$tmp/log"
ok $? "a kernel before 6.1 is refused"
echo "1..$n"
