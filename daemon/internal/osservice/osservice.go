// Package osservice connects the daemon to the system's service manager. It runs the daemon in a terminal or under the
// manager, uses systemd's sockets, and installs, starts, stops and removes the service. It does not depend on the
// program that it runs.
//
// The service is optional, because clients start a daemon on demand. From login on, it makes the daemon's sockets
// (systemd) or the daemon itself (launchd, Windows) available. kardianos/service runs the program but does not install
// it. It does not support systemd sockets, uses deprecated commands to load launchd agents without waiting for
// completion, and removes files that it did not write. It also creates Windows services, which require an administrator
// and cannot open the user's browser.
package osservice

// Name is the service's name in the service manager.
const Name = "serviced"
