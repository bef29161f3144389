package main

import (
	"path/filepath"
	"strings"
	"testing"
)

// inRoot runs a script of testdata as root of an overlay of this machine's root. There, /release-test has the content
// of dir, and /release-test/source is this repository, read-only. It returns the script's output and the files that
// the script leaves elsewhere.
func inRoot(t *testing.T, script, dir string, args ...string) (printed string, left []string) {
	t.Helper()
	requireRoot(t)
	require(t, map[string]string{"unshare": "util-linux", "setpriv": "util-linux", "dpkg": "dpkg"})
	const outside = `set -eu
place=$1 dir=$2 script=$3
shift 3
mount -t tmpfs tmpfs "$place"
mkdir "$place/upper" "$place/work" "$place/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$place/upper,workdir=$place/work" "$place/root"
mount -t proc proc "$place/root/proc"
mount --rbind /dev "$place/root/dev"
mount -t tmpfs -o mode=1777 tmpfs "$place/root/tmp"
mkdir "$place/root/release-test"
cp -R "$dir/." "testdata/$script" "$place/root/release-test/"
chmod -R a+rX "$place/root/release-test"
mkdir "$place/root/release-test/source"
mount --bind ../.. "$place/root/release-test/source" # the overlay hides a repository below /tmp
mount -o remount,bind,ro "$place/root/release-test/source"
chroot "$place/root" sh "/release-test/$script" "$@"
cd "$place/upper"
echo "== left"
find . \( -type f -o -type l \) ! -path './release-test/*' | sort
`
	out := output(t, "unshare", append([]string{
		"--mount", "--pid", "--fork", "--kill-child", "sh", "-c", outside, "sh", t.TempDir(), dir, script,
	}, args...)...)
	t.Log(out)
	printed, after, _ := strings.Cut(out, "== left\n")
	return printed, strings.Fields(after)
}

// copyFiles returns a new directory with copies of files under new names, for inRoot.
func copyFiles(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, file := range files {
		output(t, "cp", "-R", file, filepath.Join(dir, name))
	}
	return dir
}
