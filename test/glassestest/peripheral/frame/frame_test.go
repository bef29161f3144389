package frame

import (
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/service-dev/service/test/glassestest/peripheral"
)

// client is the part of a driver that these tests need: a clock and a bonded connection.
type client struct {
	t   *testing.T
	d   *Device
	now int64
}

func needLua(t testing.TB) {
	t.Helper()
	if _, err := exec.LookPath("lua5.4"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("lua5.4 is missing: nothing runs the Lua of the emulated Frame (apt-get install lua5.4)")
		}
		t.Skip("SKIPPED, lua5.4 is missing: apt-get install lua5.4")
	}
}

func start(t *testing.T, o Options) *Device {
	t.Helper()
	needLua(t)
	d, err := New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return d
}

func connect(t *testing.T, o Options) *client {
	t.Helper()
	c := &client{t: t, d: start(t, o)}
	c.open()
	return c
}

func (c *client) open() {
	c.t.Helper()
	err := errors.Join(c.d.Connect(c.now, 247), c.d.Pair(c.now), c.d.Subscribe(c.now, NotifyUUID, true))
	if err != nil {
		c.t.Fatal(err)
	}
}

func (c *client) send(value string) {
	c.t.Helper()
	if err := c.d.Write(c.now, WriteUUID, []byte(value), false); err != nil {
		c.t.Fatal(err)
	}
}

// wait returns what the device sends within the given ms.
func (c *client) wait(ms int64) (values []string) {
	c.now += ms
	c.d.Tick(c.now)
	for _, o := range c.d.Take() {
		if o.Dropped {
			values = append(values, "dropped")
			continue
		}
		values = append(values, string(o.Value))
	}
	return values
}

// line runs a line in the REPL and checks the values that the device sends within 100 ms.
func (c *client) line(lua string, want ...string) {
	c.t.Helper()
	c.send(lua)
	if got := c.wait(100); !slices.Equal(got, want) {
		c.t.Errorf("%s sent %q, want %q", lua, got, want)
	}
}

// fails runs a line that must raise an error with the given text.
func (c *client) fails(lua, text string) {
	c.t.Helper()
	c.send(lua)
	if got := c.wait(100); len(got) != 1 || !strings.Contains(got[0], text) {
		c.t.Errorf("%s sent %q, want an error with %q", lua, got, text)
	}
}

func (c *client) violations(want ...string) {
	c.t.Helper()
	got := c.d.Violations()
	if len(got) != len(want) {
		c.t.Fatalf("violations %q, want %q", got, want)
	}
	for i, text := range want {
		if !strings.Contains(got[i], text) {
			c.t.Errorf("violation %q, want one with %q", got[i], text)
		}
	}
}

func TestDevice_AnswersREPL(t *testing.T) {
	c := connect(t, Options{Number: 0xAB})
	adv, _ := start(t, Options{Number: 0xAB}).Advertisement()
	if adv.Name != "Frame AB" || adv.Services[0] != ServiceUUID {
		t.Errorf("advertisement %+v", adv)
	}
	c.line("print(1 << 4)", "16") // an operator that Lua 5.1 lacks
	c.line("print(frame.HARDWARE_VERSION)", "Frame")
	c.line("print(frame.bluetooth.max_length())", "243")
	c.line("print(frame.bluetooth.address())", "C0:02:00:00:00:AB")
	c.line("print(frame.battery_level())", "80.0")
	c.line("x = 5")
	c.line("print(x)", "5")
	c.line("print(x, 6)", "5") // the radio is busy for the rest of the output
	c.fails("print(", "[string \"print(\"]:1:")
	c.fails("error('no')", "[string \"error('no')\"]:1: no")
	c.line("frame.bluetooth.send('12\\0003')", "\x0112\x003")
	c.fails("frame.bluetooth.send(string.rep('a', 244))", "greater than max_length()")
	c.line("print(frame.display.clear)", "nil")
	c.violations()
}

func TestDevice_CallsBackWithData(t *testing.T) {
	c := connect(t, Options{NotifyTime: -1})
	c.line("frame.bluetooth.receive_callback(function(d) frame.bluetooth.send(d) end)")
	c.send("\x01first")
	if got := c.wait(4); got != nil {
		t.Errorf("%q before the hook ran", got)
	}
	if got := c.wait(1); !slices.Equal(got, []string{"\x01first"}) {
		t.Errorf("the callback sent %q", got)
	}
	c.violations()
	c.send("\x01one")
	c.send("\x01two")
	if got := c.wait(100); !slices.Equal(got, []string{"\x01two"}) {
		t.Errorf("of two writes the callback received %q, want the second", got)
	}
	c.violations("overwrites data")
	c.line("frame.bluetooth.receive_callback(nil)")
	c.line("\x01none")
}

func TestDevice_HasOneLineForTheREPL(t *testing.T) {
	c := connect(t, Options{NotifyTime: -1})
	c.send("print('a')")
	c.send("print('b')")
	if got := c.wait(10); !slices.Equal(got, []string{"b"}) {
		t.Errorf("got %q, want the second line only", got)
	}
	c.violations("overwrites one that has not run")
}

func TestDevice_BreaksAndResets(t *testing.T) {
	c := connect(t, Options{Main: "n = 0 while true do n = n + 1 frame.sleep(0.1) end"})
	c.now = 1000
	c.send("print(n)")
	if got := c.wait(500); got != nil {
		t.Errorf("the REPL answered %q while a program runs", got)
	}
	c.send("\x03")
	if got := c.wait(100); !slices.Equal(got, []string{"break signal"}) { // the radio is busy for the output of the line
		t.Errorf("a break led to %q", got)
	}
	c.line("y = 1 print(n)", "16")
	c.line("\x03")
	c.line("\x04")
	c.line("print(y)") // the owner's program runs again
	c.send("\x03")
	c.wait(100)
	c.line("print(y)", "nil")
}

func TestDevice_RaisesErrorsOfCallbacksInTheProgram(t *testing.T) {
	c := connect(t, Options{})
	c.line("frame.bluetooth.receive_callback(function(d) error('oops', 0) end)")
	c.line("\x01x")
	c.line("while true do frame.sleep(1) end")
	c.line("\x01x", "oops")
}

func TestDevice_SendsOneNotificationPerInterval(t *testing.T) {
	c := connect(t, Options{})
	c.line("print(pcall(frame.bluetooth.send, 'a') == true and pcall(frame.bluetooth.send, 'b') == false)", "\x01a")
	c.send("for i = 1, 4 do while not pcall(frame.bluetooth.send, tostring(i)) do frame.sleep(0.001) end end")
	if got := c.wait(10 + 3*15 + 3); !slices.Equal(got, []string{"\x011", "\x012", "\x013"}) {
		t.Errorf("got %q", got)
	}
	c.wait(100)
	c.send("for i = 1, 4 do while not pcall(frame.bluetooth.send, tostring(i)) do end end") // without sleep
	if got := c.wait(200); len(got) != 4 {
		t.Errorf("a loop without sleep sent %q", got)
	}
}

func TestDevice_RecordsGraveViolations(t *testing.T) {
	c := connect(t, Options{})
	lines := []string{
		"frame.file.open('main.lua', 'w')", "local f = frame['file']", "os.remove('x')", "io.write('x')", "require('main')",
		"frame.update()", "dofile('x')", "\x05", "\x07", "\x02", "\x06", "frame.fpga.write(1, 'a')",
	}
	for _, l := range lines {
		c.send(l)
		c.wait(100)
	}
	if n := len(c.d.Grave()); n != len(lines) {
		t.Errorf("%d grave violations, want %d: %q", n, len(lines), c.d.Grave())
	}
	c.send("frame.sleep()")
	if got := c.wait(100); !slices.Equal(got, []string{"dropped"}) || len(c.d.Grave()) != len(lines)+1 {
		t.Errorf("frame.sleep() led to %q", got)
	}
}

// A display text cannot reach the interpreter through the data channel, and a program cannot access the test's
// machine.
func TestDevice_KeepsLuaInside(t *testing.T) {
	c := connect(t, Options{})
	c.line("frame.bluetooth.receive_callback(function(d) frame.bluetooth.send(d) end)")
	c.line("\x01')os.remove('x')--", "\x01')os.remove('x')--")
	c.violations()
	c.line("print(load('return type(string) == \"table\" and _G == _ENV')())", "true")
	c.fails("load('return os.time()')()", "nil value (global 'os')")
	c.fails("('x'):rep(1e9)", "not enough memory")
	c.fails("coroutine.yield()", "outside a coroutine")
	c.line("f = coroutine.wrap(function() frame.sleep(0.05) coroutine.yield(7) end) print(f())", "7")
}

func TestDevice_StopsEndlessLua(t *testing.T) {
	c := connect(t, Options{})
	c.send("while true do end")
	if got := c.wait(6_000); len(got) != 1 || !strings.Contains(got[0], "without frame.sleep") {
		t.Errorf("got %q", got)
	}
	c.line("print(1)", "1")
	c.send("while true do pcall(function() while true do end end) end")
	c.wait(100)
	c.violations("more than 6 s")
	c.line("print(1)")
}

func TestDevice_Bonds(t *testing.T) {
	d := start(t, Options{})
	if err := d.Pair(0); !errors.Is(err, peripheral.ErrNotConnected) {
		t.Errorf("bond without a connection: %v", err)
	}
	if err := d.Connect(0, 517); err != nil {
		t.Fatal(err)
	}
	if n := d.Payload(); n != 244 {
		t.Errorf("payload %d, want 244", n)
	}
	for name, err := range map[string]error{
		"write": d.Write(0, WriteUUID, []byte("x=1"), true), "subscribe": d.Subscribe(0, NotifyUUID, true),
	} {
		if !errors.Is(err, peripheral.ErrAuthentication) {
			t.Errorf("%s without a bond: %v", name, err)
		}
	}
	if err := errors.Join(d.Pair(0), d.Write(0, WriteUUID, []byte("x=1"), true)); err != nil {
		t.Error(err)
	}
	if err := d.Write(0, WriteUUID, make([]byte, 245), true); !errors.Is(err, peripheral.ErrTooLong) {
		t.Errorf("245 bytes: %v", err)
	}
	other := start(t, Options{BondedElsewhere: true})
	if err := errors.Join(other.Connect(0, 247)); err != nil {
		t.Fatal(err)
	}
	if err := other.Pair(0); !errors.Is(err, peripheral.ErrPairing) || other.Connected() {
		t.Errorf("second bond: %v", err)
	}
}

func TestDevice_LosesNotificationsAndDrops(t *testing.T) {
	c := connect(t, Options{LoseNotification: 1})
	c.line("print(1)")
	c = connect(t, Options{Drop: 1, AwayMs: 500})
	c.line("print(1)", "dropped")
	if err := c.d.Connect(c.now, 247); !errors.Is(err, peripheral.ErrUnreachable) {
		t.Errorf("connection to a silent device: %v", err)
	}
	c.now += 500
	if err := c.d.Connect(c.now, 247); err != nil {
		t.Error(err)
	}
}

// Lua keeps running without a connection, so a client finds the state that an earlier one left.
func TestDevice_KeepsLuaWithoutAConnection(t *testing.T) {
	c := connect(t, Options{})
	c.line("z = 3")
	c.d.Disconnect(c.now)
	c.open()
	c.line("print(z)", "3")
}
