#!/bin/sh
# Two accounts use the package on one machine: neither can read anything of the other, although their homes are open.
set -eu
as() {
	uid=$1
	shift
	setpriv --reuid="$uid" --regid="$uid" --clear-groups \
		env -i HOME="/home/$uid" PATH=/usr/bin:/bin LC_ALL=C.UTF-8 SERVICE_NO_AUTO_OPEN=1 "$@"
}
for uid in 6001 6002; do
	mkdir -p "/home/$uid"
	chown "$uid:$uid" "/home/$uid"
	chmod 0755 "/home/$uid"
done
dpkg -i /release-test/toolkit.deb
as 6001 servicectl tool call startLocalSimulation '{}'
[ ! -e /home/6002/.service ] || { echo "FAIL: who ran nothing has state"; exit 1; }
as 6002 servicectl tool call startLocalSimulation '{}'
find /home/6001/.service /home/6002/.service >/release-test/all
wc -l </release-test/all
echo "== read"
chmod 0644 /release-test/all
for uid in 6001 6002; do
	other=$((12003 - uid))
	# shellcheck disable=SC2016 # the inner shell expands it
	as "$uid" sh -c 'while read -r f; do
		case $f in "$1"/*) [ -r "$f" ] || [ -w "$f" ] || [ -x "$f" ] && echo "FAIL: $(id -u) can reach $f" ;; esac
	done </release-test/all; true' sh "/home/$other"
	! as "$uid" env SERVICE_CONFIG_DIR="/home/$other/.service" servicectl session list || { echo "FAIL: $uid uses the daemon of $other"; exit 1; }
	as "$uid" servicectl status --json
done
echo "== end"
as 6001 servicectl daemon stop
as 6002 servicectl daemon stop
