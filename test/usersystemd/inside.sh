# Runs one test of a test binary under the systemd of an ordinary user that exists for this test only: in a control group,
# and in new namespaces of mounts, processes and control groups. It does not change the machine.
# Arguments: the machine's cgroup2 mount, the test's directory, the user id, the test binary, its directory, the test.
set -u
groups=$1 dir=$2 user=$3 exe=$4 src=$5 name=$6
group=$groups/service-test-${dir##*/}
cleanup() { find "$group" -depth -type d -exec rmdir {} \; 2>/dev/null; }
trap cleanup EXIT
trap 'exit 143' TERM INT # because dash does not run an EXIT trap when a signal ends it
mkdir "$group" && chown "$user" "$group" "$group/cgroup.procs" "$group/cgroup.subtree_control" || exit 77

export dir user exe src name
sh -c 'echo $$ >"$1/cgroup.procs" && exec unshare --mount --pid --fork --mount-proc --cgroup --kill-child sh -c "$2"' sh "$group" '
	set -eu
	mount --make-rprivate /
	mount -t tmpfs tmpfs /run && mkdir -p /run/systemd/system # required by systemctl and systemd
	umount -R -l /sys/fs/cgroup && mount -t cgroup2 none /sys/fs/cgroup
	mount --bind "$(dirname "$exe")" "$dir/exe" && mount --bind "$src" "$dir/src" && mount --bind "$BIN" "$dir/bin"
	cd "$dir/src"
	touch "$dir/entered"
	setpriv --reuid "$user" --regid "$user" --clear-groups --inh-caps=-all -- \
		env -i PATH="$dir/home/tools:$dir/bin:$PATH" HOME="$dir/home" TMPDIR="$dir/tmp" XDG_RUNTIME_DIR="$dir/run" LANG=C.UTF-8 CI="${CI-}" \
		SERVICE_TEST_FULL="${SERVICE_TEST_FULL-}" SERVICE_TEST_SYSTEMD="$dir" \
		"$dir/exe/$(basename "$exe")" -test.run "^$name\$" -test.v -test.timeout 280s
'
