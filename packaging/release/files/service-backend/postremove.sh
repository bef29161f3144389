#!/bin/sh
# Lets systemd forget the unit. Settings that the operator made, keys and data stay.
set -e
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
fi
