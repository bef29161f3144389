#!/bin/sh
# Stops and disables the server when the package is removed, not when it is upgraded. dpkg passes "remove" or "upgrade",
# and rpm passes the number of remaining versions.
set -e
case "$1" in
upgrade | deconfigure | failed-upgrade | 1) exit 0 ;;
esac
if [ -d /run/systemd/system ]; then
	systemctl stop service-backend.service || true
fi
if command -v systemctl >/dev/null; then
	systemctl --no-reload disable service-backend.service || true
fi
