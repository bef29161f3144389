#!/bin/sh
# Installs the service's programs for one user, without root:
#
#   PREFIX/lib/service/VERSION      the programs of each version, side by side
#   PREFIX/lib/service/current      a link to the version in use, replaced in one step
#   PREFIX/bin                      links to servicectl and service-mcp
#   PREFIX/share                    links to the man pages and shell completions
#
# Until that step the version in use is not touched, so it keeps working after a failure. Only PREFIX is changed.
set -eu
umask 022

# The release writes these values.
VERSION=''
RELEASE_URL=''
RELEASE_KEY=''

usage() {
	cat <<USAGE
Installs the service $VERSION for you, without root.

usage: install.sh [OPTION]...

  --prefix DIR   install below DIR (default: ~/.local)
  --from FILE    install this archive instead of downloading one; SHA256SUMS must be beside it
  --uninstall    remove what this script installed below DIR; your settings are kept
  --version      print the version that this script installs
  --help         print this text

Run it again to upgrade or repair. The version before is kept.
USAGE
}

say() { printf '%s\n' "$*"; }
fail() {
	printf 'install.sh: %s\n' "$1" >&2
	[ -z "${2-}" ] || printf 'Next: %s\n' "$2" >&2
	exit 1
}
has() { command -v "$1" >/dev/null 2>&1; }

work=''
finish() {
	status=$?
	trap - EXIT
	trap '' HUP INT TERM
	[ -z "$work" ] || rm -rf "$work" || true
	[ "$status" -eq 0 ] || [ -z "${lib-}" ] || [ ! -L "$lib/current" ] || [ -n "${done-}" ] ||
		say "The installed version $(readlink "$lib/current" || true) was not changed." >&2
	exit "$status"
}
trap finish EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

main() {
	prefix=''
	from=''
	action=install
	while [ $# -gt 0 ]; do
		case $1 in
		--prefix | --from)
			[ -n "${2-}" ] || fail "$1 needs a value" "run install.sh --help"
			if [ "$1" = --prefix ]; then prefix=$2; else from=$2; fi
			shift
			;;
		--prefix=*) prefix=${1#--prefix=} ;;
		--from=*) from=${1#--from=} ;;
		--uninstall) action=uninstall ;;
		--version) say "$VERSION" && return ;;
		-h | --help) usage && return ;;
		*) fail "unknown option $1" "run install.sh --help" ;;
		esac
		shift
	done
	[ -n "$prefix" ] || [ -n "${HOME-}" ] || fail "HOME is not set" "name a directory with --prefix DIR"
	prefix=${prefix:-$HOME/.local}
	case $prefix in /*) ;; *) prefix=$PWD/$prefix ;; esac
	while [ "$prefix" != / ] && [ "${prefix%/}" != "$prefix" ]; do prefix=${prefix%/}; done
	lib=$prefix/lib/service
	"$action"
}

install() {
	for tool in tar gzip readlink find sort; do
		has "$tool" || fail "$tool is missing" "install $tool, then run install.sh again"
	done
	name_archive
	refuse_foreign
	make_work
	fetch
	verify
	unpack
	before=$(readlink "$lib/current" || true)
	switch
	done=1
	link_share
	remove_old
	report
}

# name_archive sets archive, the name of the file to install, and version.
name_archive() {
	case $(uname -s) in
	Linux) os=linux ;;
	Darwin) os=darwin ;;
	*) fail "there is no installation by this script for $(uname -s)" "on Windows use scoop, winget or the zip file" ;;
	esac
	case $(uname -m) in
	x86_64 | amd64) arch=amd64 ;;
	aarch64 | arm64) arch=arm64 ;;
	*) fail "there are no programs for the processor $(uname -m)" "build the service from its source" ;;
	esac
	# A shell that Rosetta translates sees an Intel processor.
	if [ "$os-$arch" = darwin-amd64 ] && [ "$(sysctl -n sysctl.proc_translated 2>/dev/null || true)" = 1 ]; then
		arch=arm64
	fi
	if [ -z "$from" ]; then
		[ -n "$RELEASE_URL" ] || fail "this copy of install.sh knows no address to download from" \
			"download the archive for $os-$arch and SHA256SUMS, and run install.sh --from FILE"
		version=$VERSION
		archive=service-$version-$os-$arch.tar.gz
		return
	fi
	[ -e "$from" ] || fail "$from does not exist" "pass the path of service-VERSION-$os-$arch.tar.gz"
	[ -f "$from" ] || fail "$from is not a file" "pass the path of service-VERSION-$os-$arch.tar.gz"
	archive=$(basename "$from")
	version=${archive#service-}
	version=${version%"-$os-$arch.tar.gz"}
	case $archive in "service-$version-$os-$arch.tar.gz") ;; *) version='' ;; esac
	case $version in
	'' | [!0-9]* | *[!0-9A-Za-z.+~-]*)
		fail "$archive is not an archive for this system" "pass the path of service-VERSION-$os-$arch.tar.gz"
		;;
	esac
}

# refuse_foreign fails if a program of another origin already has the path of one of ours.
refuse_foreign() {
	for program in servicectl service-mcp; do
		file=$prefix/bin/$program
		[ "$(readlink "$file" || true)" != "$(target "$program")" ] || continue
		if [ -e "$file" ] || [ -L "$file" ]; then
			fail "$file exists and was not installed by this script" "move it away, or use another --prefix"
		fi
	done
	[ ! -e "$lib/current" ] || [ -L "$lib/current" ] ||
		fail "$lib/current is not a link" "move it away, or use another --prefix"
}

# target prints the target of the link to a program.
target() {
	if [ -L "$prefix/bin" ]; then
		printf '%s' "$lib/current/bin/$1"
	else
		printf '%s' "../lib/service/current/bin/$1"
	fi
}

# make_work makes the work directory, on the file system of the installation. Its name contains this process id, so that
# the remains of a killed installation can be distinguished from a running one. It is made before looking for others, so
# that of two installations that start together at least one sees the other.
make_work() {
	made=$(for folder in . lib lib/service; do [ -d "$prefix/$folder" ] || echo "$folder"; done)
	mkdir -p "$lib" || fail "cannot write to $prefix" "pass a directory of yours with --prefix DIR"
	work=$lib/.install.$$
	{ rm -rf "$work" && mkdir "$work"; } || fail "cannot write to $lib" "pass a directory of yours with --prefix DIR"
	for other in "$lib"/.install.*; do
		process=${other#"$lib/.install."}
		if [ "$process" = $$ ] || [ ! -d "$other" ]; then continue; fi
		! kill -0 "$process" 2>/dev/null ||
			fail "another installation is running (process $process)" "wait until it ends; if none runs, remove $other"
		rm -rf "$other"
	done
	[ -z "$made" ] || printf '%s\n' "$made" >>"$lib/folders" ||
		fail "cannot write to $lib" "free disk space, then run install.sh again"
	make_folder bin || fail "cannot write to $prefix" "pass a directory of yours with --prefix DIR"
}

# make_folder makes a folder below PREFIX, including its parents. It lists the folders that it made in
# lib/service/folders, so that uninstall removes only those.
make_folder() {
	[ ! -d "$prefix/$1" ] || return 0
	case $1 in */*) make_folder "${1%/*}" || return ;; esac
	mkdir "$prefix/$1" && printf '%s\n' "$1" >>"$lib/folders"
}

# fetch puts the archive, SHA256SUMS and, if it can be checked, its signature into the work directory. The archive of
# --from is copied, too, because other users may be able to replace it after its checksum was computed.
fetch() {
	signed=''
	[ -z "$RELEASE_KEY" ] || ! has minisign || signed=1
	if [ -n "$from" ]; then
		beside=$(dirname "$from")
		for file in SHA256SUMS ${signed:+SHA256SUMS.minisig}; do
			[ -f "$beside/$file" ] || fail "$file is missing beside $from" "download it too"
		done
		for file in SHA256SUMS ${signed:+SHA256SUMS.minisig} "$archive"; do
			cp "$beside/$file" "$work/" ||
				fail "cannot copy $file" "check that you may read it and that the disk has space, then run install.sh again"
		done
		return
	fi
	say "Downloading the service $version for $os-$arch ..."
	for file in SHA256SUMS ${signed:+SHA256SUMS.minisig} "$archive"; do
		download "$RELEASE_URL/$file" "$work/$file" ||
			fail "cannot download $RELEASE_URL/$file" "check the network and the free disk space, then run install.sh again"
	done
}

# download accepts only https with TLS 1.2 or later, unless the address of the release begins with http:.
download() {
	only=''
	case $1 in https://*) only='--proto =https --tlsv1.2' ;; esac
	if has curl; then
		# A curl from snap can write to a pipe, but neither to hidden folders nor to /tmp.
		case $(command -v curl) in
		*/snap/*) { run_curl - "$1" 0 || : >"$2.failed"; } | cat >"$2" && [ ! -e "$2.failed" ] ;;
		*) run_curl "$2" "$1" 2 ;;
		esac
	elif has wget; then
		case $1 in
		https://*) wget_https "$1" "$2" ;;
		*) wget -q -T 60 -O "$2" "$1" ;;
		esac
	else
		fail "neither curl nor wget is installed" "install one of them, or use --from FILE"
	fi
}

# run_curl FILE URL RETRIES. In a pipe, the output of a second attempt would follow the output of the first one.
run_curl() {
	# shellcheck disable=SC2086 # several words, or none
	curl -fsSL $only --connect-timeout 20 --speed-limit 100 --speed-time 60 --retry "$3" -o "$1" "$2"
}

# wget_https follows redirects itself, because wget would also follow redirects to http.
wget_https() {
	case $(wget --version 2>/dev/null || true) in
	"GNU Wget"*) ;;
	*)
		# Other versions of wget cannot be stopped at a redirect, so the signature must protect the download.
		[ -n "$signed" ] || fail "this wget is not GNU wget, and cannot download securely" \
			"install curl, GNU wget or minisign, or use --from FILE"
		wget -q -T 60 -O "$2" "$1"
		return
		;;
	esac
	url=$1
	for _ in 1 2 3 4 5 6; do
		wget -S -T 60 --max-redirect=0 --secure-protocol=TLSv1_2 -o "$work/headers" -O "$2" "$url" && return
		next=$(sed -n '/^  *[Ll]ocation: */{s///;s/[[:space:]].*//;p;q;}' "$work/headers")
		case $next in
		https://*) url=$next ;;
		//*) url=https:$next ;;
		/[!/]*) url=$(printf '%s' "$url" | sed 's,^\(https://[^/]*\).*,\1,')$next ;;
		'') return 1 ;;
		*) fail "$url redirects to $next, which is not https" "ask the distributor of the service for another address" ;;
		esac
	done
	return 1
}

sha256() {
	if has sha256sum; then
		sha256sum <"$1"
	elif has shasum; then
		shasum -a 256 <"$1"
	else
		openssl dgst -sha256 -r <"$1"
	fi | cut -d ' ' -f 1
}

# verify fails unless the archive has the checksum in SHA256SUMS, and SHA256SUMS our signature if that can be checked.
verify() {
	has sha256sum || has shasum || has openssl ||
		fail "nothing here computes SHA-256 sums" "install coreutils, then run install.sh again"
	if [ -n "$signed" ]; then
		minisign -V -q -P "$RELEASE_KEY" -m "$work/SHA256SUMS" -x "$work/SHA256SUMS.minisig" >/dev/null ||
			fail "the signature of SHA256SUMS is wrong" "install nothing of this download; get it again from its origin"
	fi
	want=''
	while read -r sum file; do
		case $file in "$archive" | "*$archive") want=$sum ;; esac
	done <"$work/SHA256SUMS"
	[ -n "$want" ] || fail "SHA256SUMS does not list $archive" "download SHA256SUMS of the same version"
	[ "$(sha256 "$work/$archive")" = "$want" ] ||
		fail "$archive is damaged: its SHA-256 differs from SHA256SUMS" "download it again"
}

# unpack puts the version next to the others and sets dir to its name. It reuses an identical version that is already
# installed. It compares the version in use first, because after a repair that is named VERSION.2.
unpack() {
	say "Installing in $lib ..."
	mkdir "$work/unpacked"
	new=$work/unpacked/service-$version-$os-$arch
	if ! problems=$({ gzip -dc "$work/$archive" | tar -xof - -C "$work/unpacked"; } 2>&1); then
		say "$problems" | sed 1q >&2 # on a full disk, tar complains about every file
		{ gzip -t "$work/$archive" && gzip -dc "$work/$archive" | tar -tf - >/dev/null; } 2>/dev/null ||
			fail "cannot read $archive, though its SHA-256 is right" "report it to the distributor of the service"
		fail "cannot unpack $archive in $lib" "free disk space, then run install.sh again"
	fi
	"$new/bin/servicectl" version >/dev/null ||
		fail "the programs of $archive do not run here" "check that programs below $prefix may be run"
	unpacked=$(sums "$new")
	dir=$(readlink "$lib/current" || true)
	case $dir in "$version" | "$version".*)
		[ ! -d "$lib/$dir" ] || [ "$(sums "$lib/$dir")" != "$unpacked" ] || return 0
		;;
	esac
	dir=$version
	copy=1
	while [ -e "$lib/$dir" ]; do
		[ "$(sums "$lib/$dir")" != "$unpacked" ] || return 0
		copy=$((copy + 1))
		dir=$version.$copy
	done
	mv "$new" "$lib/$dir" || fail "cannot write $lib/$dir" "free disk space, then run install.sh again"
}

# sums prints the checksum and the name of every file of a directory, and the target and the name of every link. Python
# adds __pycache__ when an example is run.
sums() {
	(
		cd "$1"
		find . -name __pycache__ -prune -o \( -type f -o -type l \) -print | LC_ALL=C sort | while read -r file; do
			if [ -L "$file" ]; then
				printf '> %s %s\n' "$(readlink "$file")" "$file"
				continue
			fi
			[ ! -x "$file" ] || printf 'x '
			printf '%s %s\n' "$(sha256 "$file")" "$file"
		done
	)
}

# switch makes the new version the one in use. The links in bin are made first; for an upgrade they already exist.
switch() {
	[ -L "$lib/current" ] || ln -s "$dir" "$lib/current"
	for program in servicectl service-mcp; do
		[ -L "$prefix/bin/$program" ] || ln -s "$(target "$program")" "$prefix/bin/$program"
	done
	if ! ln -s "$dir" "$work/current" || ! replace "$work/current" "$lib/current"; then
		fail "cannot replace $lib/current" "free disk space, then run install.sh again"
	fi
}

# replace renames one link to another. By default, mv would move it into the directory that the other link points to.
replace() {
	mv -fT "$1" "$2" 2>/dev/null || mv -fh "$1" "$2" 2>/dev/null || ln -sfn "$(readlink "$1")" "$2"
}

# link_share links man pages and completions. The programs work without them, so a failure is only reported.
link_share() {
	unlink_share
	for file in "$lib"/current/man/*.[1-8]; do
		[ ! -f "$file" ] || link_one "$file" "man/man${file##*.}" "${file##*/}"
	done
	for file in "$lib"/current/completions/*; do
		name=${file##*/}
		case $name in
		*.bash) link_one "$file" bash-completion/completions "${name%.bash}" ;;
		*.fish) link_one "$file" fish/vendor_completions.d "$name" ;;
		_*) link_one "$file" zsh/site-functions "$name" ;;
		*.zsh) link_one "$file" zsh/site-functions "_${name%.zsh}" ;;
		esac
	done
}

link_one() {
	link=$prefix/share/$2/$3
	[ ! -e "$link" ] || return 0
	up=$(printf '%s' "$2" | sed 's,[^/][^/]*,..,g')
	{ make_folder "share/$2" && ln -s "../$up/${1#"$prefix/"}" "$link"; } 2>/dev/null || say "Not linked: $link"
}

# unlink_share removes our links below PREFIX/share.
unlink_share() {
	for link in "$prefix"/share/man/man*/* "$prefix"/share/bash-completion/completions/* \
		"$prefix"/share/fish/vendor_completions.d/* "$prefix"/share/zsh/site-functions/*; do
		case $(readlink "$link" || true) in */lib/service/current/*) rm -f "$link" || true ;; esac
	done
}

# remove_old removes every version except the one in use and the previous one. After a repeated installation the
# previous one is unknown, so no version is removed.
remove_old() {
	[ "$before" != "$dir" ] || return 0
	for old in "$lib"/[0-9]*; do
		case ${old##*/} in "$dir" | "$before") continue ;; esac
		[ ! -d "$old" ] || mv "$old" "$work/" 2>/dev/null || say "Not removed: $old"
	done
}

report() {
	say ""
	say "Installed the service $version in $lib/$dir"
	if [ -n "$signed" ]; then
		say "Checked: the SHA-256 of the archive, and the signature of SHA256SUMS."
	elif [ -n "$RELEASE_KEY" ]; then
		say "Checked: the SHA-256 of the archive. Not checked: the signature, because minisign is not installed."
	else
		say "Checked: the SHA-256 of the archive. This release is not signed."
	fi
	[ -z "$before" ] || [ "$before" = "$dir" ] || say "The version before, $before, is kept in $lib/$before"
	say ""
	next="Next: servicectl agent add --all"
	case ":${PATH-}:" in
	*":$prefix/bin:"*) ;;
	*)
		say "Your PATH does not contain $prefix/bin. Add this line to your shell's profile:"
		say "  export PATH=$(quote "$prefix/bin"):\"\$PATH\""
		next="Next, in a new shell: servicectl agent add --all"
		;;
	esac
	[ -z "$before" ] || next="The entries in your coding agents need no change."
	say "$next"
}

quote() { printf "'%s'" "$(printf '%s' "$1" | sed "s/'/'\\\\''/g")"; }

uninstall() {
	[ -L "$lib/current" ] || [ -d "$lib" ] ||
		fail "the service is not installed in $prefix" "name its directory with --prefix DIR"
	for folder in "$lib" "$lib"/[0-9]* "$prefix/bin"; do
		[ ! -d "$folder" ] || [ -w "$folder" ] ||
			fail "cannot write to $folder" "run install.sh --uninstall as the user who installed this, or as root"
	done
	done=1
	for program in servicectl service-mcp; do
		file=$prefix/bin/$program
		[ "$(readlink "$file" || true)" != "$(target "$program")" ] || rm -f "$file"
	done
	unlink_share
	rm -f "$lib/current"
	for old in "$lib"/[0-9]* "$lib"/.install.*; do
		[ ! -d "$old" ] || rm -rf "$old"
	done
	folders=$(LC_ALL=C sort -r "$lib/folders" 2>/dev/null || true)
	rm -f "$lib/folders"
	rmdir "$lib" 2>/dev/null || say "Not removed, because it contains other files: $lib"
	for folder in $folders; do
		case $folder in .) rmdir "$prefix" ;; *) rmdir "$prefix/$folder" ;; esac 2>/dev/null || true
	done
	say "Removed the service from $prefix"
	settings=${SERVICE_CONFIG_DIR:-${HOME-}/.service}
	kept='' # after a purge, the directory contains at most the user's own files
	for file in install.json auth.json config.yaml consent adapters.json sessions/latest.json backend/service.db \
		fonts/fonts.json; do
		[ ! -e "$settings/$file" ] || kept=1
	done
	[ -n "$kept" ] || return 0
	say "Kept: your settings, sessions and the link to your account, in $settings"
	say "To remove these and the entries in your coding agents too, install the service again, run"
	say "\`servicectl uninstall --purge\`, and then install.sh --uninstall."
}

main "$@"
