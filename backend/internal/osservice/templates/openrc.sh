#!/sbin/openrc-run
{{header}}
name="service-backend"
description="HTTP server of the service"
supervisor=supervise-daemon
command="{{program}}"
command_args="--config {{settings}}"
command_user="{{user}}"
directory="/"
umask=0077
error_log="/var/log/service-backend.log"
respawn_delay=1
respawn_max=5
respawn_period=60
retry="TERM/{{stop}}/KILL/5"

depend() {
	need net
	after postgresql
}

start_pre() {
	checkpath --file --owner "{{user}}" --mode 0640 "/var/log/service-backend.log"
}
