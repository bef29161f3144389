#!/bin/sh
# Written by `service-backend service install`; `service-backend service uninstall` removes it.
# Program: /usr/local/bin/service-backend
# Settings: /etc/service/backend.yaml
# Data: /var/lib/service-backend
# User: service-backend
# Stop: 40
# chkconfig: 2345 90 10
# description: HTTP server of the service

### BEGIN INIT INFO
# Provides:          service-backend
# Required-Start:    $local_fs $network $remote_fs
# Required-Stop:     $local_fs $network $remote_fs
# Should-Start:      postgresql
# Should-Stop:       postgresql
# Default-Start:     2 3 4 5
# Default-Stop:      0 1 6
# Short-Description: HTTP server of the service
### END INIT INFO

pid_file=/var/run/service-backend.pid
log=/var/log/service-backend.log

is_running() {
	# Another process may have reused the PID of a server that exited.
	pid=$(cat "$pid_file" 2>/dev/null) && [ -n "$pid" ] && grep -qs "/usr/local/bin/service-backend" "/proc/$pid/cmdline"
}

start() {
	is_running && { echo "Running"; return 0; }
	touch "$log" && chown service-backend "$log" && chmod 0640 "$log" || return 1
	cd /
	pid=$(su -s /bin/sh -c 'umask 077; /usr/local/bin/service-backend --config /etc/service/backend.yaml </dev/null >>/var/log/service-backend.log 2>&1 & echo $!' service-backend) || return 1
	echo "$pid" >"$pid_file"
	sleep 1
	is_running || { rm -f "$pid_file"; echo "The server exited immediately: see $log" >&2; return 1; }
}

stop() {
	is_running || { rm -f "$pid_file"; return 0; }
	kill "$pid"
	waited=0
	while is_running; do
		[ "$waited" -ge 40 ] && kill -9 "$pid"
		waited=$((waited + 1))
		sleep 1
	done
	rm -f "$pid_file"
}

case "$1" in
start) start ;;
stop) stop ;;
restart | force-reload) stop && start ;;
status)
	is_running && { echo "Running"; exit 0; }
	echo "Stopped"
	exit 3
	;;
*)
	echo "usage: $0 start|stop|restart|status" >&2
	exit 2
	;;
esac
