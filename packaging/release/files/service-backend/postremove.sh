#!/bin/sh
# Makes systemd forget the unit. The operator's settings, keys and data stay.
set -e
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
fi
