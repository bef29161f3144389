#!/bin/sh
# Installs the npm tools that tests and `make check` use, unless they already match package-lock.json: here, other
# versions of Node and TypeScript in node20, node24 and typescript, llama.cpp in llama, and the tools of the release
# tests in packaging/release/npm. A failed install changes no files. With --strict it is an error; otherwise it is
# reported, and the tests that need the tools are skipped.
set -eu
cd "$(dirname "$0")"
strict=${1-}
give_up() {
	echo "SKIPPED: the npm tools are not installed: $1. Tests that need them will be skipped." >&2
	[ "$strict" != --strict ] && [ -z "${CI-}" ] && exit 0
	exit 1
}
fresh=
trap '[ -z "$fresh" ] || rm -rf "$fresh"' EXIT
trap 'exit 130' HUP INT TERM

# install FOLDER [OPTION...] runs npm ci in a copy of a folder and moves its node_modules here.
install() {
	folder=$1
	shift
	stamp=$folder/node_modules/.installed
	wanted=$(cat "$folder/package.json" "$folder/package-lock.json" .npmrc | cksum)
	[ "$(cat "$stamp" 2>/dev/null)" = "$wanted" ] && return
	command -v npm >/dev/null || give_up "npm is missing (apt-get install npm)"

	fresh=$(mktemp -d "$PWD/.install.XXXXXX")
	cp "$folder/package.json" "$folder/package-lock.json" .npmrc "$fresh/"
	echo "npm ci in $PWD/$folder"
	retries=${CI:+3}
	(cd "$fresh" && npm ci "$@" --prefer-offline --fetch-retries="${retries:-0}" >npm.log 2>&1) || {
		tail -n 20 "$fresh/npm.log" >&2
		give_up "npm ci failed, see above"
	}
	mkdir -p "$fresh/node_modules"
	echo "$wanted" >"$fresh/node_modules/.installed"
	rm -rf "$folder/node_modules"
	mv "$fresh/node_modules" "$folder/node_modules"
	rm -rf "$fresh"
	fresh=
}
install .
install node20
install node24
install typescript
install ../../../packaging/release/npm
# Its builds for graphics cards are optional packages of hundreds of megabytes, and its script would look for a compiler.
[ "$(uname -sm)" != "Linux x86_64" ] || install llama --omit=optional --ignore-scripts
