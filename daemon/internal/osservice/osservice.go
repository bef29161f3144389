// Package osservice is the daemon's side of the system's service manager: it runs the daemon in a terminal and under
// the manager, takes over systemd's sockets, and installs, starts, stops and removes the service. It knows nothing of
// what runs.
//
// The service is optional, because clients start a daemon on demand. It keeps the daemon's sockets (systemd) or the
// daemon (launchd, Windows) there from login on. kardianos/service runs the program, but does not install it: it has no
// systemd sockets, loads launchd agents by deprecated commands and does not wait for their end, removes files that it
// did not write, and makes Windows services, which need an administrator and cannot open the person's browser.
package osservice

// Name is the service's name at the service manager.
const Name = "serviced"
