#!/bin/sh
{{header}}# chkconfig: 2345 90 10
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
	pid=$(cat "$pid_file" 2>/dev/null) && [ -n "$pid" ] && grep -qs "{{program}}" "/proc/$pid/cmdline"
}

start() {
	is_running && { echo "Running"; return 0; }
	touch "$log" && chown {{user}} "$log" && chmod 0640 "$log" || return 1
	cd /
	pid=$(su -s /bin/sh -c 'umask 077; {{program}} --config {{settings}} </dev/null >>/var/log/service-backend.log 2>&1 & echo $!' {{user}}) || return 1
	echo "$pid" >"$pid_file"
	sleep 1
	is_running || { rm -f "$pid_file"; echo "The server exited immediately: see $log" >&2; return 1; }
}

stop() {
	is_running || { rm -f "$pid_file"; return 0; }
	kill "$pid"
	waited=0
	while is_running; do
		[ "$waited" -ge {{stop}} ] && kill -9 "$pid"
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
