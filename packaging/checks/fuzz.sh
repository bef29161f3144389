#!/bin/sh
# Runs every fuzz target of the module for the given time each; the first crash ends it.
set -eu
time=${1:-5s}
grep -rl --include='*_test.go' '^func Fuzz' . | xargs -n1 dirname | sort -u | while read -r dir; do
	for target in $(grep -h '^func Fuzz' "$dir"/*_test.go | sed 's/func \(Fuzz[A-Za-z0-9_]*\).*/\1/'); do
		echo "fuzz $dir $target"
		go test -run '^$' -fuzz "^$target\$" -fuzztime "$time" "$dir"
	done
done
