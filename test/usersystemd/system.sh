# Runs one test of a test binary, as root, under a system's systemd that exists for this test only: in a control group,
# and in namespaces of mounts, processes, networks and control groups. /etc, /var and /usr/local/bin are temporary layers.
# Arguments: the machine's cgroup2 mount, the test's directory, unused, the test binary, its directory, the test.
set -u
groups=$1 dir=$2 exe=$4 src=$5 name=$6
group=$groups/service-test-${dir##*/}
cleanup() { find "$group" -depth -type d -exec rmdir {} \; 2>/dev/null; }
trap cleanup EXIT
trap 'exit 143' TERM INT # because dash does not run an EXIT trap when a signal ends it
mkdir "$group" || exit 77

export dir exe src name
sh -c 'echo $$ >"$1/cgroup.procs" && exec unshare --mount --net --pid --fork --mount-proc --cgroup --kill-child sh -c "$2"' sh "$group" '
	set -eu
	mount --make-rprivate /
	layers=$dir/layers
	mkdir "$layers" && mount -t tmpfs tmpfs "$layers"
	for top in etc var; do
		mkdir -p "$layers/$top/new" "$layers/$top/work"
		mount -t overlay overlay -o "lowerdir=/$top,upperdir=$layers/$top/new,workdir=$layers/$top/work" "/$top"
	done
	mount -t tmpfs -o mode=755 tmpfs /usr/local/bin && cp "$BIN"/* /usr/local/bin/
	mount -t tmpfs tmpfs /run && mkdir -p /run/systemd/system
	umount -R -l /sys/fs/cgroup && mount -t cgroup2 none /sys/fs/cgroup
	# Only the targets of the machine are available, so that none of its services start.
	units=/usr/lib/systemd/system
	[ -d "$units" ] || units=/lib/systemd/system
	mkdir "$layers/units" && cp "$units"/*.target "$layers/units/" && mount --bind "$layers/units" "$units"
	rm -rf /etc/systemd/system && mkdir /etc/systemd/system
	cat >/run/systemd/system/test.service <<-END
		[Unit]
		SuccessAction=exit-force
		FailureAction=exit-force
		[Service]
		Type=oneshot
		TimeoutStartSec=95
		WorkingDirectory=$src
		Environment="PATH=$PATH" "HOME=$dir/home" "TMPDIR=$dir/tmp" LANG=C.UTF-8 "CI=${CI-}" "SERVICE_TEST_SYSTEMD=$dir"
		ExecStart="$exe" -test.run "^$name\$\$" -test.v -test.timeout 280s
		StandardOutput=file:$dir/home/out
		StandardError=inherit
	END
	mount --make-rshared / # as container managers do: systemd passes credentials to services by mounts
	touch "$dir/entered"
	exec env -i container=test PATH="$PATH" "$SYSTEMD" --system --unit=test.service --log-target=console --show-status=no
'
code=$?
cat "$dir/home/out"
exit $code
