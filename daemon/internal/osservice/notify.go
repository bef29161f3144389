package osservice

import (
	"net"
	"os"
	"strconv"
	"time"
)

// The variables in which systemd says where it wants to hear of the service (sd_notify(3), sd_watchdog_enabled(3)).
const (
	notifySocket = "NOTIFY_SOCKET"
	watchdogUSec = "WATCHDOG_USEC"
	watchdogPID  = "WATCHDOG_PID"
)

// Notifier tells the service manager how the service is. The zero value and nil tell nobody: no service manager asks.
// Its methods return at once and never fail; a manager that does not listen is its own problem.
type Notifier struct {
	socket   string
	interval time.Duration
	last     time.Time
}

// NewNotifier takes the service manager's wishes out of the environment, so that no program that is started later
// takes itself for the service.
func NewNotifier() *Notifier {
	n := &Notifier{socket: os.Getenv(notifySocket)}
	usec, pid := os.Getenv(watchdogUSec), os.Getenv(watchdogPID)
	for _, name := range []string{notifySocket, watchdogUSec, watchdogPID} {
		_ = os.Unsetenv(name)
	}
	if limit, err := strconv.ParseInt(usec, 10, 64); err == nil && limit > 0 && limit < int64(time.Hour/time.Microsecond) &&
		(pid == "" || pid == strconv.Itoa(os.Getpid())) {
		n.interval = time.Duration(limit) * time.Microsecond / 3
	}
	return n
}

// Ready says that every socket is served.
func (n *Notifier) Ready() { n.say("READY=1\nSTATUS=serving") }

// Stopping says that the service drains, and why.
func (n *Notifier) Stopping(why string) { n.say("STOPPING=1\nSTATUS=stopping: " + why) }

// Waiting says what the service waits for before it is ready.
func (n *Notifier) Waiting(what string) { n.say("STATUS=" + what) }

// Alive answers the watchdog. Call it from the loop whose standstill would be the fault, as often as it turns; it speaks
// when a third of the watchdog's time has passed. One goroutine may call it.
func (n *Notifier) Alive(now time.Time) {
	if n == nil || n.interval <= 0 || now.Sub(n.last) < n.interval && !now.Before(n.last) {
		return
	}
	n.last = now
	n.say("WATCHDOG=1")
}

// say sends one datagram. A name that begins with @ is in the abstract namespace, as package net has it too.
func (n *Notifier) say(text string) {
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
