#!/sbin/openrc-run
# Written by `service-backend service install`; `service-backend service uninstall` removes it.
# Program: /usr/local/bin/service-backend
# Settings: /etc/service/backend.yaml
# Data: /var/lib/service-backend
# User: service-backend
# Stop: 40

name="service-backend"
description="HTTP server of the service"
supervisor=supervise-daemon
command="/usr/local/bin/service-backend"
command_args="--config /etc/service/backend.yaml"
command_user="service-backend"
directory="/"
umask=0077
error_log="/var/log/service-backend.log"
respawn_delay=1
respawn_max=5
respawn_period=60
retry="TERM/40/KILL/5"

depend() {
	need net
	after postgresql
}

start_pre() {
	checkpath --file --owner "service-backend" --mode 0640 "/var/log/service-backend.log"
}
