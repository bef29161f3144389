package fakebluez

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/godbus/dbus/v5"
)

// busConfig is the configuration of a bus that cannot start services. The arguments are its directory and additional
// rules.
const busConfig = `<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <listen>unix:path=%s/bus</listen>
  <auth>EXTERNAL</auth>
  <policy context="default">
    <allow send_destination="*" eavesdrop="true"/>
    <allow eavesdrop="true"/>
    <allow own="*"/>%s
  </policy>
</busconfig>
`

// needBus skips the test if the machine has no dbus-daemon. In CI the test fails.
func needBus(t testing.TB) {
	t.Helper()
	if _, err := exec.LookPath("dbus-daemon"); err != nil {
		lack := t.Skip
		if os.Getenv("CI") == "true" {
			lack = t.Fatal
		}
		lack("SKIPPED, dbus-daemon is missing: apt-get install dbus")
	}
}

// startBus runs a dbus-daemon until the test ends and returns its address.
func startBus(t testing.TB, denied bool) string {
	t.Helper()
	address, stop, err := runBus(denied)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return address
}

// StartBus runs a bus for Options.Bus until stop is called.
func StartBus() (address string, stop func(), err error) { return runBus(false) }

func runBus(denied bool) (address string, stop func(), err error) {
	dir, err := os.MkdirTemp("", "bz") // short, because it contains a socket
	if err != nil {
		return "", nil, err
	}
	rule := ""
	if denied {
		rule = "\n    <deny send_destination=\"org.bluez\"/>"
	}
	config := filepath.Join(dir, "config")
	cmd := exec.CommandContext(context.Background(), "dbus-daemon", "--config-file="+config, "--nofork", "--nopidfile",
		"--print-address")
	var problem bytes.Buffer
	cmd.Stderr = &problem
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = os.WriteFile(config, fmt.Appendf(nil, busConfig, dir, rule), 0o600)
	}
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		os.RemoveAll(dir)
		return "", nil, err
	}
	stop = func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		os.RemoveAll(dir)
	}
	if address, err = bufio.NewReader(out).ReadString('\n'); err != nil {
		stop()
		return "", nil, fmt.Errorf("read the address of dbus-daemon: %w: %s", err, &problem)
	}
	return strings.TrimSpace(address), stop, nil
}

// maxMessages is the number of messages that may wait for the loop. Further ones are discarded by godbus.
const maxMessages = 16_384

// appear registers org.bluez on the bus.
func (r *Radio) appear() error {
	conn, err := dbus.Connect(r.Address)
	if err != nil {
		return err
	}
	// When a client disconnects, its discovery, its subscriptions and its agent end.
	err = conn.AddMatchSignal(dbus.WithMatchSender("org.freedesktop.DBus"), dbus.WithMatchMember("NameOwnerChanged"))
	if err == nil {
		// Receive calls from the connection directly, because godbus would handle each in its own goroutine, in no
		// particular order.
		r.messages = make(chan *dbus.Message, maxMessages)
		err = claim(conn, r.messages)
	}
	if err != nil {
		conn.Close()
		return err
	}
	r.conn = conn
	r.agents, r.replies = map[string]dbus.ObjectPath{}, map[uint32]func(bool){}
	for _, a := range r.adapters {
		a.scans = map[string]filter{}
	}
	return nil
}

// claim requests the name after messages has been set to receive everything, so that no call is missed. The reply
// arrives there too.
func claim(conn *dbus.Conn, messages chan *dbus.Message) error {
	conn.Eavesdrop(messages)
	conn.BusObject().Go("org.freedesktop.DBus.RequestName", 0, nil, "org.bluez", uint32(dbus.NameFlagDoNotQueue))
	for msg := range messages {
		switch msg.Type {
		case dbus.TypeError:
			return fmt.Errorf("request the name org.bluez: %v", msg.Body)
		case dbus.TypeMethodReply:
			return nil
		}
	}
	return dbus.ErrClosed
}

// leave closes the connection to the bus.
func (r *Radio) leave() {
	if r.conn == nil {
		return
	}
	r.conn.Eavesdrop(nil) // Close would close the channel while godbus may still be sending to it
	r.conn.Close()
	r.conn, r.messages = nil, nil
}
