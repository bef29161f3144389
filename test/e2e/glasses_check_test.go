//go:build linux

package e2e

import (
	"encoding/json"
	"fmt"
	"image"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/service-dev/service/test/glassestest/peripheral/g1"
)

// terminal is a program that runs in its own pseudo-terminal.
type terminal struct {
	t      *testing.T
	master *os.File
	cmd    *exec.Cmd
	reader sync.WaitGroup

	mu   sync.Mutex
	text strings.Builder
	seen int // offset up to which await has read
}

// startTerminal runs servicectl in a terminal.
func (w *world) startTerminal(args ...string) *terminal {
	w.t.Helper()
	master, slave := openTerminal(w.t)
	cmd := exec.Command(filepath.Join(w.bin, "servicectl"), args...)
	cmd.Env, cmd.Dir = slices.Concat(w.env, []string{"TERM=dumb"}), filepath.Dir(w.dir)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	slave.Close()
	p := &terminal{t: w.t, master: master, cmd: cmd}
	p.reader.Go(func() {
		part := make([]byte, 4096)
		for {
			n, err := master.Read(part)
			p.mu.Lock()
			p.text.Write(part[:n])
			p.mu.Unlock()
			if err != nil {
				return
			}
		}
	})
	return p
}

func openTerminal(t *testing.T) (master, slave *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { master.Close() })
	number, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		slave, err = os.OpenFile(fmt.Sprint("/dev/pts/", number), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	return master, slave
}

// await waits until a text appears after the last awaited one.
func (p *terminal) await(text string) {
	p.t.Helper()
	isThere := func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		at := strings.Index(p.text.String()[p.seen:], text)
		if at >= 0 {
			p.seen += at + len(text)
		}
		return at >= 0
	}
	if !eventually(time.Minute, isThere) { // a bench may show 20 pictures first
		p.t.Fatalf("%q is not on the terminal:\n%s", text, p.text.String())
	}
}

func (p *terminal) answer(text string) {
	p.t.Helper()
	if _, err := p.master.WriteString(text + "\n"); err != nil {
		p.t.Fatal(err)
	}
}

// exit waits for the program to exit with the given code.
func (p *terminal) exit(code int) {
	p.t.Helper()
	_ = p.cmd.Wait()
	p.reader.Wait()
	if got := p.cmd.ProcessState.ExitCode(); got != code {
		p.t.Fatalf("%v: got exit code %d, want %d\n%s", p.cmd.Args, got, code, p.text.String())
	}
}

// isTest reports whether both arms show the test picture with this many rows. Pixels of colour 1 are lit unless the
// panel is inverted.
func (w *airSpace) isTest(rows int, inverted bool) bool {
	shown := w.panels()
	if len(shown) != 2 {
		return false
	}
	lit := func(img image.Image, x, y int) bool {
		r, g, b, _ := img.At(x, y).RGBA()
		return (r|g|b != 0) != inverted
	}
	for _, img := range shown {
		size := img.Bounds().Size()
		corners := lit(img, 0, 0) && lit(img, size.X-1, 0) && lit(img, 0, rows-1) && lit(img, size.X-1, rows-1)
		squares := lit(img, size.X/6, rows/2) && !lit(img, size.X-size.X/6, rows/2)
		if size.Y != rows || !corners || !squares || lit(img, 4, 4) {
			return false
		}
	}
	return true
}

// A user connects glasses for the first time and answers two questions about the test picture. The answers change how
// pictures are sent and are remembered. The user can repeat the check.
func TestRealGlasses_LearnTheirPanelFromAPerson(t *testing.T) {
	t.Parallel()
	w := newAirSpace(t)
	upright, border, again := "is the LEFT square filled with light?", "on all four sides?", "border on all four sides?"

	p := w.startTerminal("glasses", "connect", "Even G1_27", "--timeout", "30")
	p.await(upright)
	if !w.isTest(136, false) {
		t.Errorf("both arms do not show the test picture: %v", w.panels())
	}
	p.answer("what?")
	p.await(upright)
	p.answer("n")
	p.await(border)
	p.answer("no")
	p.await(again)
	if !w.isTest(135, true) {
		t.Error("both arms do not show the test picture with swapped light and 135 rows")
	}
	p.answer("y")
	p.await("Your answers are saved.")
	p.exit(0)
	must(t, "both arms are dark", func() bool { return len(w.panels()) == 0 })
	var file struct {
		Pairs []struct {
			Inverted, PanelChecked bool
			Rows                   int
		}
	}
	known := filepath.Join(w.dir, "glasses.json")
	if !readJSON(known, &file) || len(file.Pairs) != 1 || !file.Pairs[0].Inverted || file.Pairs[0].Rows != 135 ||
		!file.Pairs[0].PanelChecked {
		t.Fatalf("got %+v in glasses.json, want one inverted panel with 135 rows that was checked", file)
	}
	if info, err := os.Stat(known); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("glasses.json: got %v (error %v), want mode 0600", info, err)
	}

	w.startTerminal("glasses", "connect").exit(0) // the check is not repeated
	p = w.startTerminal("glasses", "check")
	p.await(upright)
	p.answer("n")
	p.await(border)
	p.answer("y")
	p.await(again)
	if !w.isTest(135, false) {
		t.Error("both arms do not show the test picture with 135 rows")
	}
	p.answer("n")
	p.await("no setting of the service can change that")
	p.exit(1)
	if !readJSON(known, &file) || !file.Pairs[0].Inverted || file.Pairs[0].Rows != 135 {
		t.Errorf("got %+v in glasses.json, want the settings before the check", file)
	}
	w.radio.Emulate(func(int64) {
		if v := w.pair.Violations(); len(v) > 0 {
			t.Errorf("the adapter broke the protocol of the glasses: %v", v)
		}
	})
}

// A user runs a bench on glasses. The record contains the measurements, and that it ran against an emulation.
func TestRealGlasses_AreMeasured(t *testing.T) {
	t.Parallel()
	w := newAirSpace(t)
	file := filepath.Join(w.project, "record.json")
	p := w.startTerminal("glasses", "bench", "--out", file)
	p.await("not an emulation of them?")
	p.answer("n")
	p.await("Tap the glasses")
	for range 3 {
		w.radio.Emulate(func(now int64) { w.pair.Tap(now, g1.Right) })
	}
	p.await("Speak for three seconds.")
	w.radio.Emulate(func(now int64) { w.pair.Speak(now, make([]byte, 5000)) })
	p.await("closed case")
	w.radio.Drop(w.pair.Left())
	p.await("The connection is lossy")
	p.await("no serial number")
	p.exit(0)
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var r struct {
		Against, DeviceModel, Carrier, Name string
		Firmware                            map[string]string
		Connect                             struct{ Ms int64 }
		Pictures                            struct {
			Asked, MedianMs int
			Ms              []int64
		}
		Battery    map[string]int
		Inputs     struct{ Seen []string }
		Microphone struct {
			Chunks  int
			LevelDB float64
		}
		Reconnect struct{ AwayMs int64 }
	}
	if err := json.Unmarshal(data, &r); err != nil {
		t.Fatalf("%v\n%s", err, data)
	}
	if r.Against != "emulated" || r.DeviceModel != "even_g1" || r.Carrier != "bluez" || r.Name != "" ||
		r.Firmware["left"] == "" || r.Connect.Ms == 0 || r.Pictures.MedianMs == 0 ||
		len(r.Pictures.Ms) != r.Pictures.Asked || len(r.Battery) == 0 || len(r.Inputs.Seen) != 3 ||
		r.Microphone.Chunks == 0 || r.Microphone.LevelDB > -70 || r.Reconnect.AwayMs == 0 {
		t.Errorf("got %s, want what was measured, and that it was an emulation", data)
	}
	if out, _, code := w.ctl("glasses", "list", "--known"); code != 0 || !strings.Contains(out, "Even G1_27") {
		t.Errorf("got %q, want glasses that are free and remembered", out)
	}
	must(t, "both arms are free", func() bool {
		return !w.radio.Connected(w.pair.Left()) && !w.radio.Connected(w.pair.Right())
	})
	_, problem, code := w.ctl("glasses", "bench", "--out", file)
	if code != 2 || !strings.Contains(problem, "nothing is overwritten") {
		t.Errorf("an existing file: got the exit code %d, %q", code, problem)
	}
}

// A bench that cannot start reports why in the requested format.
func TestRealGlasses_ABenchWithoutThemAnswersInJSON(t *testing.T) {
	t.Parallel()
	w := newAirSpace(t)
	w.radio.SetPowered(false)
	out, problem, code := w.ctl("glasses", "bench", "--json")
	var answer struct {
		Status  string
		Glasses struct{ Problem struct{ Code string } }
	}
	if err := json.Unmarshal([]byte(out), &answer); err != nil || code != 1 || answer.Status != "waiting" ||
		answer.Glasses.Problem.Code != "radio_off" {
		t.Errorf("got the exit code %d, %q and %q (error %v), want JSON with radio_off", code, out, problem, err)
	}
	_, problem, code = w.ctl("glasses", "bench", "--out", filepath.Join(w.project, "none", "record.json"))
	if code != 2 || !strings.Contains(problem, "a folder that exists") {
		t.Errorf("without the folder: got the exit code %d, %q", code, problem)
	}
}
