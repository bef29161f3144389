#!/bin/sh
# Runs every fuzz target of the module and stops at the first crash. The argument is go's -fuzztime: a time (20s) or a
# number of inputs (3000x). Use a number in CI: a target whose time expires while a worker is busy may fail with
# "context deadline exceeded" although it found nothing.
set -eu
budget=${1:-3000x}
grep -rl --include='*_test.go' '^func Fuzz' . | xargs -n1 dirname | sort -u | while read -r dir; do
	for target in $(grep -h '^func Fuzz' "$dir"/*_test.go | sed 's/func \(Fuzz[A-Za-z0-9_]*\).*/\1/'); do
		echo "fuzz $dir $target"
		go test -run '^$' -fuzz "^$target\$" -fuzztime "$budget" -fuzzminimizetime 10x "$dir"
	done
done
