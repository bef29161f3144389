#!/bin/sh
# Installs the packages of /release-test in this root, uses them as an ordinary user, and removes them.
set -eu
user() {
	setpriv --reuid=65534 --regid=65534 --clear-groups \
		env -i HOME=/home/ada PATH=/usr/bin:/bin LC_ALL=C.UTF-8 SERVICE_NO_AUTO_OPEN=1 "$@"
}
# Whoever runs no program of the package has no state, and nothing is enabled.
check_quiet() {
	[ ! -e /home/ada/.service ] || { echo "FAIL: installing made state"; exit 1; }
	for unit in serviced.socket serviced.service service-backend.service; do
		! find /etc/systemd /usr/lib/systemd -name "$unit" -path '*.wants/*' | grep . || { echo "FAIL: $unit is enabled"; exit 1; }
	done
}
mkdir -p /home/ada
chown 65534:65534 /home/ada
cd /home/ada
echo "== install"
dpkg -i /release-test/*.deb
check_quiet
echo "== use"
user servicectl version
user servicectl tool call getPlatformInfo
examples=/usr/share/service-toolkit/examples
user servicectl session run $examples/scenarios/desk.json -- python3 $examples/apps/desk-py/desk.py
user servicectl daemon stop
service-backend version
man -w servicectl service-mcp serviced servicectl-session-run service-backend
getent passwd service-backend
echo "== remove"
dpkg -r service-toolkit service-backend
[ -f /etc/service-backend/config.yaml ] || { echo "FAIL: removing the package removed its settings"; exit 1; }
dpkg -P service-toolkit service-backend
