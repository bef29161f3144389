#!/bin/sh
# Creates the server's user and makes systemd read the unit. It does not start the server: a new version migrates the
# database when it starts, so the operator decides when to restart it.
set -e
if command -v systemd-sysusers >/dev/null; then
	systemd-sysusers service-backend.conf
fi
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
fi
