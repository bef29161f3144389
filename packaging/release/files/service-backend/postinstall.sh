#!/bin/sh
# Creates the user of the server, and lets systemd read the unit. It starts nothing: a new version migrates the database
# when it starts, so the operator decides when to restart the server.
set -e
if command -v systemd-sysusers >/dev/null; then
	systemd-sysusers service-backend.conf
fi
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
fi
