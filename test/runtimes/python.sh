#!/bin/sh
# Unpacks the oldest and the newest Python of Debian's archive, each with the libraries that it needs, into the folder
# python next to this file, where Python finds them. It installs no packages on the machine. It needs apt and patchelf.
set -eu
cd "$(dirname "$0")"
# shellcheck disable=SC2016 # apt-get fills it in
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Label: Debian' | head -n 1)
[ -n "$mirror" ] || {
	echo "apt has no source of Debian packages" >&2
	exit 1
}
work=
trap '[ -z "$work" ] || rm -rf "$work"' EXIT

# unpack SUITE unpacks the Python of a suite. It fails if the mirror no longer has the suite.
unpack() {
	root=$PWD/python/$1
	[ ! -e "$root/.complete" ] || return 0
	work=$(mktemp -d)
	mkdir -p "$work/lists/partial" "$work/archives/partial"
	: >"$work/status" # of a machine without packages, so that everything that Python needs is downloaded
	echo "deb $mirror $1 main" >"$work/sources.list"
	set -- -qq -o Acquire::Retries=3 -o APT::Sandbox::User=root -o Dir::Cache="$work" -o Dir::State::lists="$work/lists" \
		-o Dir::State::status="$work/status" -o Dir::Etc::sourcelist="$work/sources.list" -o Dir::Etc::sourceparts=-
	apt-get "$@" update || return 1
	apt-get "$@" install -y --no-install-recommends --download-only python3 || return 1

	rm -rf "$root"
	mkdir -p "$root"
	for package in "$work"/archives/*.deb; do
		dpkg-deb -x "$package" "$root" || return 1
	done
	rm -rf "$work"
	work=
	# The program gets the loader and the libraries of its own suite, because those of this machine may be too old.
	loader=$(find "$root" -name 'ld-linux*.so.*' | head -n 1)
	folder=$(basename "$(dirname "$(find "$root" -name 'libssl.so.*' | head -n 1)")")
	patchelf --set-interpreter "$loader" --force-rpath --set-rpath "$root/lib/$folder:$root/usr/lib/$folder" \
		"$(readlink -f "$root/usr/bin/python3")" || return 1
	"$root/usr/bin/python3" -c 'import platform, ssl; print("Python", platform.python_version())' || return 1
	: >"$root/.complete"
}

for suite in bullseye bookworm trixie; do
	unpack "$suite" && break
done
unpack sid
