package frame

import (
	"fmt"
	"strings"
	"testing"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/device"
	"github.com/service-dev/service/glasses/driver"
)

// FuzzDisplayText shows arbitrary texts of an app. Once the program of boot.lua runs, every written value is display
// data for it. The interpreter receives only the lines of boot.lua, and neither other code nor control bytes.
func FuzzDisplayText(f *testing.F) {
	for _, text := range []string{
		"Hello", "", "')os.remove(\"main.lua\")--", "\"]]..os.remove('x')..[[", "print(7)", "\x03", "\x04", "\x05", "\x07",
		"\x01\x00b", "\nframe.file.remove('main.lua')\n", "\u202e\x00\xff", readyLine, leaveLine,
		strings.Repeat("\x03\x04", 300),
	} {
		f.Add(true, text, "OK")
		f.Add(false, "title", text)
	}
	f.Fuzz(func(t *testing.T, halo bool, text, label string) {
		r := newREPL(t, halo)
		r.run(20_000)
		if !r.isRunning {
			t.Fatal("the program was not installed")
		}
		show, err := glasses.New(glasses.TypeDisplayShow, "c-1", r.now, glasses.Show{Tree: glasses.Node{Type: glasses.NodeColumn, Children: []glasses.Node{
			{Type: glasses.NodeText, Text: text}, {Type: glasses.NodeButton, ID: "ok", Text: label},
		}}})
		if err != nil {
			t.Fatal(err)
		}
		r.glasses.Handle(r.now, show, nil)
		r.run(r.now + 60_000)
		if !r.isAnswered {
			t.Error("the app got no result")
		}
		if text == "Hello" && r.tiles == 0 {
			t.Error("a plain text does not reach the panel, so this target shows nothing")
		}
	})
}

// repl acts as the glasses: first as an interpreter that answers the lines of boot.lua and then, once the program is
// installed, as the program, which acknowledges data.
type repl struct {
	t         *testing.T
	glasses   *driver.Glasses
	now       int64
	lines     map[string]int // lines of boot.lua, with the number that each prints
	isRunning bool
	// isAnswered is set once the app's command has a result.
	isAnswered bool
	tiles      int // of the pictures that the program drew
}

func newREPL(t *testing.T, halo bool) *repl {
	id := "brilliant_frame"
	if halo {
		id = "brilliant_halo"
	}
	model, _ := glasses.Model(id)
	r := &repl{t: t, glasses: driver.NewGlasses(model, newDriver(halo), device.Options{}), lines: map[string]int{}}
	for line := range strings.Lines(bootText) { // parsed here independently of the driver
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "--") {
			n := len(r.lines) + 1
			r.lines[fmt.Sprintf("%s print(%d)", line, n)] = n
		}
	}
	return r
}

// run advances time up to until.
func (r *repl) run(until int64) {
	for r.settle(); ; r.settle() {
		at, ok := r.glasses.Next()
		if !ok || at > until {
			r.now = until
			return
		}
		r.now = max(r.now, at)
		r.glasses.Tick(r.now)
	}
}

func (r *repl) settle() {
	for outs := r.glasses.Take(); len(outs) > 0; outs = r.glasses.Take() {
		for _, o := range outs {
			switch {
			case o.Connect != nil:
				r.glasses.Event(r.now, driver.Event{Kind: driver.LinkUp, Link: Main, MTU: 247})
			case o.Write != nil:
				answer := r.receive(o.Write.Data)
				r.glasses.Event(r.now, driver.Event{Kind: driver.Written, Link: Main})
				if answer != nil {
					r.glasses.Event(r.now, driver.Event{Kind: driver.Notified, Link: Main, Data: answer})
				}
			case o.Frame != nil && o.Frame.Type == glasses.TypeResult:
				r.isAnswered = true
			}
		}
	}
}

// receive checks a written value and returns the answer to it.
func (r *repl) receive(data []byte) []byte {
	text := string(data)
	switch {
	case r.isRunning:
		if len(data) < 3 || data[0] != byteData || strings.IndexByte("bts", data[2]) < 0 {
			r.t.Fatalf("the running program gets %q, want only data of the display", data)
		}
		if data[2] == 't' {
			r.tiles++
		}
		return []byte{byteData, saysAck, data[1], 0}
	case text == readyLine:
		r.isRunning = true
		return []byte{byteData, saysReady}
	case text == "\x03":
		return nil
	}
	n := r.lines[text]
	if n == 0 {
		r.t.Fatalf("the interpreter gets %q, want only lines of boot.lua", data)
	}
	return fmt.Append(nil, n)
}
