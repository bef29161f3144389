#!/bin/sh
# Runs the tests of test/e2e with the tag release whose names match $1.
set -eu
cd /release-test/source/test/e2e
export TMPDIR=/tmp
export SERVICE_E2E_BIN=/usr/lib/service SERVICE_E2E_OLD_DEB=/release-test/old.deb SERVICE_E2E_NEW_DEB=/release-test/new.deb
exec /release-test/e2e.test -test.v -test.run "$1" -test.timeout 20m
