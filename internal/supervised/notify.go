package supervised

import (
	"net"
	"os"
	"strconv"
	"time"
)

// Environment variables that contain systemd's notification socket and watchdog limit (sd_notify(3),
// sd_watchdog_enabled(3)).
const (
	notifySocket = "NOTIFY_SOCKET"
	watchdogUSec = "WATCHDOG_USEC"
	watchdogPID  = "WATCHDOG_PID"
)

// Notifier reports the program's state to the service manager. The zero value and nil do not report it. Its methods do
// not block and do not return errors.
type Notifier struct {
	socket   string
	interval time.Duration
	last     time.Time
}

// NewNotifier returns the Notifier described by the environment. It removes the variables from the environment, so
// that child processes do not send notifications themselves.
func NewNotifier() *Notifier {
	n := &Notifier{socket: os.Getenv(notifySocket)}
	usec, pid := os.Getenv(watchdogUSec), os.Getenv(watchdogPID)
	for _, name := range []string{notifySocket, watchdogUSec, watchdogPID} {
		_ = os.Unsetenv(name)
	}
	limit, err := strconv.ParseInt(usec, 10, 64)
	ours := pid == "" || pid == strconv.Itoa(os.Getpid())
	if err == nil && ours && limit > 0 && limit < int64(time.Hour/time.Microsecond) {
		n.interval = time.Duration(limit) * time.Microsecond / 3
	}
	return n
}

// Ready reports that the program is serving.
func (n *Notifier) Ready() { n.send("READY=1\nSTATUS=serving") }

// Stopping reports that the program is shutting down because of why.
func (n *Notifier) Stopping(why string) { n.send("STOPPING=1\nSTATUS=stopping: " + why) }

// Waiting reports what the program is waiting for before it is ready.
func (n *Notifier) Waiting(what string) { n.send("STATUS=" + what) }

// Alive resets the watchdog, at most once in each third of its limit. Call it from a single goroutine, on every
// iteration of the loop that must not hang.
func (n *Notifier) Alive(now time.Time) {
	if n == nil || n.interval <= 0 || now.Sub(n.last) < n.interval && !now.Before(n.last) {
		return
	}
	n.last = now
	n.send("WATCHDOG=1")
}

// send writes one datagram. A socket name that begins with @ is in the abstract namespace, both for package net and for
// systemd.
func (n *Notifier) send(text string) {
	if n == nil || n.socket == "" {
		return
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: n.socket, Net: "unixgram"})
	if err != nil {
		return
	}
	_ = conn.SetWriteDeadline(time.Now().Add(time.Second))
	_, _ = conn.Write([]byte(text))
	_ = conn.Close()
}
