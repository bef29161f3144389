#!/bin/bash
# Runs `make test` without CI in a separate mount namespace that has Go, make, gcc and git, but none of the other programs
# that tests use. It runs only the packages whose tests may start programs (they call reaper.Run, which test/checks
# enforces), because the other packages have the same results. It fails if a test fails because a program is missing,
# and if a missing program is not reported. It needs root and Debian. Arguments replace the packages.
set -euo pipefail
cd "$(dirname "$0")/../.."
parts=(chromium PostgreSQL npm python3 kotlinc systemd hb-shape elc3 lua5.4 dbus-daemon bleak mypy)

if [ "${1-}" != inside ]; then
	place=$(mktemp -d /run/bare.XXXXXX)
	trap 'rmdir "$place"' EXIT
	env -u CI BARE_PLACE="$place" BARE_GO="$(go env GOROOT)/bin" BARE_GOPATH_BIN="$(go env GOPATH)/bin" \
		unshare --mount --propagation private "$0" inside "$@"
	exit
fi
shift

place=$BARE_PLACE
mount -t tmpfs -o mode=755 tmpfs "$place"
mkdir "$place/bin" "$place/usr" "$place/usr/bin" "$place/usr/lib"
mount --bind /usr/bin "$place/usr/bin"
mount --bind /usr/lib "$place/usr/lib" # gcc finds its components relative to itself
# Programs of Debian's essential packages and of the packages of the four; alternatives by name.
packages=$(dpkg-query -Wf '${Package} ${Essential} ${Status}\n' | awk '$2 == "yes" || /^(gcc|cpp|binutils)[-a-z0-9]* .* installed$/ || /^(make|git) / { print $1 }')
programs=$(dpkg -L $packages | sed -nE 's#^(/usr)?/bin/([^/]+)$#\2#p' | sort -u)
for program in $programs cc awk which; do
	[ -e "$place/usr/bin/$program" ] && ln -s "$place/usr/bin/$program" "$place/bin/$program"
done
mkdir "$place/empty"
hide() { [ ! -d "$1" ] || mount --bind "$place/empty" "$1"; }
for dir in /usr/lib/postgresql /usr/lib/systemd /usr/lib/chromium /usr/lib/jvm /usr/share/kotlin /usr/lib/node_modules \
	/usr/local/bin /usr/local/sbin /usr/sbin "$BARE_GOPATH_BIN" "$HOME/.pyenv" test/runtimes/python test/e2e/npm/node_modules \
	test/e2e/npm/*/node_modules; do
	hide "$dir"
done
mount --bind "$place/bin" /usr/bin
export PATH="$BARE_GO:/usr/bin:/bin"
hash -r

# Of the tests of stores only those on PostgreSQL differ.
store='./backend/internal/db ./backend/internal/credit ./backend/internal/storetest'
tests=$(git grep -l 'os\.Exit(reaper\.Run(' -- '*_test.go' | xargs -n1 dirname | sed 's#^#./#' | sort -u | grep -vxF "${store// /$'\n'}")
log=$place/log
status=0
make test TESTS="${*:-$(echo $tests)}" 2>&1 | tee "$log" || status=1
[ $# -gt 0 ] || make test TESTS="-run /postgres $store" 2>&1 | tee -a "$log" || status=1
for part in "${parts[@]}"; do
	grep -qi "SKIPP.*$part" "$log" || { echo "no test reported that $part is missing"; status=1; }
done
exit "$status"
