// Package osservice connects the daemon to the system's service manager: it runs the daemon in a terminal and under the
// manager, takes over systemd's sockets, and installs, starts, stops and removes the service. It knows nothing of what
// it runs.
//
// The service is optional, because clients start a daemon on demand. It makes the daemon's sockets (systemd) or the
// daemon (launchd, Windows) available from login on. kardianos/service runs the program but does not install it: it
// does not support systemd sockets, loads launchd agents with deprecated commands and does not wait for their end,
// removes files that it did not write, and creates Windows services, which need an administrator and cannot open the
// person's browser.
package osservice

// Name is the service's name at the service manager.
const Name = "serviced"
