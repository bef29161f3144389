#!/bin/sh
# Fails if generated code or go.mod does not match the sources. Works on a copy, so nothing is changed here.
set -eu
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
git ls-files -z --cached --others --exclude-standard | xargs -0 sh -c 'for f; do [ -e "$f" ] && printf "%s\0" "$f"; done' sh |
	tar --null -cf - -T - | tar -xf - -C "$copy"
cd "$copy"
generated() { find proto -name '*.pb.go' | sort | xargs cksum; }
modules() { cksum go.mod go.sum; }
before=$(generated)
go tool -modfile=proto/tools/buf.mod buf generate
[ "$before" = "$(generated)" ] || { echo "generated code is stale: run make generate"; exit 1; }
before=$(modules)
go mod tidy
[ "$before" = "$(modules)" ] || { echo "go.mod is not tidy: run go mod tidy"; exit 1; }
