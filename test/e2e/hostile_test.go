//go:build unix

package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/png"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/google/go-cmp/cmp"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/test/chromium"
)

// arena is a transport on which hostile peers run beside a well-behaved session.
type arena struct {
	where string
	// open creates another session. Unless bare is set, the session has glasses that answer.
	open func(t *testing.T, bare bool) target
	// rows reads a session's whole log.
	rows func(t *testing.T, id string) []map[string]any
	// pid is the process that connects the apps with the glasses.
	pid int
	// agent drives sessions in virtual time; nil if the transport has none.
	agent *agent
	// site is the backend that pages attach to; nil if the transport has no pages.
	site *site
}

// target is a session that is attacked.
type target struct{ id, endpoint, secret string }

// Hostile apps and pages receive the close code or error that PROTOCOL.md specifies. They do not disturb other
// sessions and leave no resources behind.
func TestHostileAppsAndPages(t *testing.T) {
	t.Parallel()
	for where, open := range map[string]func(*testing.T) arena{"local": localArena, "browser": browserArena} {
		t.Run(where, func(t *testing.T) {
			t.Parallel()
			a := open(t)
			good := a.open(t, false)
			b := watch(t, attach(t, good.endpoint, good.secret))
			before := usageOf(t, a.pid)

			t.Run("attacks", func(t *testing.T) { attackAll(t, a) })
			b.checkLog(t, func() []map[string]any { return a.rows(t, good.id) })
			backToNormal(t, a.pid, before)
		})
	}
}

// attackAll runs the attacks and returns when all hostile connections have ended.
func attackAll(t *testing.T, a arena) {
	var patient sync.WaitGroup
	for _, slow := range []func(*testing.T, arena, target){noHello, halfOpen, halfOpenPage, halfRequest, silentPage} {
		patient.Go(func() { slow(t, a, a.open(t, false)) })
	}
	for _, attack := range []struct {
		name string
		do   func(*testing.T, arena, target)
	}{{"hello", badHellos}, {"frames", badFrames}, {"trees", badTrees}, {"sizes", tooBig},
		{"door", foreignRequests}, {"barriers", barrierStorm},
		{"flood", flood}, {"eager", eager}, {"slow", slowReader}, {"crowd", crowd}, {"time", stubbornApp},
		{"pages", badPages}, {"accounts", otherAccounts}, {"slow page", slowPage}} {
		t.Run(attack.name, func(t *testing.T) { attack.do(t, a, a.open(t, false)) })
	}
	patient.Wait()
}

// bystander is a well-behaved app with its own session.
type bystander struct {
	app   *socket
	stop  chan struct{}
	done  chan struct{}
	sent  []string
	worst time.Duration
	late  string
}

const patience = 2 * time.Second

// watch makes a well-behaved app send commands continuously.
func watch(t *testing.T, app *socket) *bystander {
	b := &bystander{app: app, stop: make(chan struct{}), done: make(chan struct{})}
	go func() {
		defer close(b.done)
		for n := 0; ; n++ {
			select {
			case <-b.stop:
				return
			case <-time.After(50 * time.Millisecond):
			}
			typ, payload := glasses.TypeDisplayShow, fmt.Sprintf(`{"tree":{"type":"text","text":"frame %d"}}`, n)
			if n%2 == 1 {
				typ, payload = glasses.TypeClockSleep, `{"ms":1}`
			}
			id, from, began := fmt.Sprintf("good-%d", n), app.place(), time.Now()
			app.send(typ, id, json.RawMessage(payload))
			b.sent = append(b.sent, id)
			f, _, ok := app.find(from, 5*patience, func(f appFrame) bool {
				return f.Type == glasses.TypeResult &&
					f.ID == id
			})
			took := time.Since(began)
			b.worst = max(b.worst, took)
			if r, err := glasses.ParseResult(f.Payload); !ok || took > patience || err != nil || !r.OK {
				b.late = fmt.Sprintf("%s: answered %v after %v: %s", id, ok, took, f.Payload)
				return
			}
		}
	}()
	t.Cleanup(b.end)
	return b
}

func (b *bystander) end() {
	select {
	case <-b.stop:
	default:
		close(b.stop)
	}
	<-b.done
}

// checkLog compares the bystander's log with what it sent: the same rows in the same order.
func (b *bystander) checkLog(t *testing.T, log func() []map[string]any) {
	t.Helper()
	b.end()
	t.Logf("%d commands of the session beside were answered, the slowest after %v", len(b.sent),
		b.worst.Round(time.Millisecond))
	if b.late != "" || len(b.sent) < 20 {
		t.Errorf("the well-behaved session was disturbed after %d commands, want no disturbance: %s", len(b.sent), b.late)
	}
	var got, want []string
	for _, id := range b.sent {
		want = append(want, id+" request app", id+" result glasses")
	}
	eventually(patience, func() bool { // rows are written shortly after the frames were sent
		got = nil
		for _, row := range log() {
			if typ := row["type"].(string); !strings.HasSuffix(typ, ".attached") {
				got = append(got, fmt.Sprint(row["id"], " ", row["kind"], " ", row["sender"]))
			}
		}
		return len(got) >= len(want)
	})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the log of the well-behaved session differs from its commands:\n%s", diff)
	}
}

// localArena returns a daemon with its local simulator.
func localArena(t *testing.T) arena {
	w := newWorld(t, "")
	a := startAgent(w, "modern", false)
	arena := arena{where: "local", agent: a}
	scene := noise(t)
	arena.open = func(t *testing.T, _ bool) target {
		s := a.call("startLocalSimulation", map[string]any{"fresh": true})
		id := s.str(t, "sessionId")
		must(t, "glasses are attached", func() bool {
			return !a.call("getDisplayState",
				map[string]any{"sessionId": id}).IsError
		})
		a.call("injectSensor", map[string]any{"sessionId": id, "cameraFile": scene})
		return target{id, s.str(t, "appEndpoint"), secretIn(t, s.str(t, "appTokenFile"))}
	}
	arena.rows = func(t *testing.T, id string) []map[string]any { return eventRows(t, a, id) }
	arena.open(t, true)
	arena.pid = w.daemonPID()
	return arena
}

// noise returns a picture that cannot be compressed.
func noise(t *testing.T) string {
	t.Helper()
	img := image.NewRGBA(image.Rect(0, 0, 500, 500))
	random := rand.NewChaCha8([32]byte{})
	_, _ = random.Read(img.Pix)
	for i := 3; i < len(img.Pix); i += 4 {
		img.Pix[i] = 255
	}
	path := filepath.Join(t.TempDir(), "noise.png")
	file, err := os.Create(path)
	if err == nil {
		err = errors.Join(png.Encode(file, img), file.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// browserArena returns a backend with simulator pages. The well-behaved user Ada uses Chromium; Mallory's pages are
// scripted.
func browserArena(t *testing.T) arena {
	b := startBackend(t, "")
	ada, mallory := newSite(t, b, "ada@example.org"), newSite(t, b, "mallory@example.org")
	var mu sync.Mutex // sessions are opened from several goroutines
	opened := 0
	arena := arena{where: "browser", site: mallory, pid: b.cmd.Process.Pid}
	owners := map[string]*site{}
	arena.open = func(t *testing.T, bare bool) target {
		owner := mallory
		mu.Lock()
		if opened++; opened == 1 {
			owner = ada
		}
		mu.Unlock()
		s := owner.session(t)
		mu.Lock()
		owners[s.id] = owner
		mu.Unlock()
		switch {
		case owner == ada:
			browser := newBrowser(t)
			run(t, browser, "sign in", chromedp.Navigate(b.url+"/s/"+s.id),
				chromium.Type("input[name=email]", "ada@example.org"),
				chromium.Type("input[name=password]", password), chromedp.Submit("input[name=email]"),
				until(`document.querySelector("#simulator")?.dataset.live === "yes"`))
		case !bare:
			owner.puppet(t, s.id)
		}
		return s
	}
	arena.rows = func(t *testing.T, id string) []map[string]any {
		mu.Lock()
		owner := owners[id]
		mu.Unlock()
		return owner.rows(t, id)
	}
	return arena
}

// usage is the resource usage of a process.
type usage struct{ sockets, files, kilobytes int }

func usageOf(t *testing.T, pid int) usage {
	t.Helper()
	var u usage
	proc := filepath.Join("/proc", strconv.Itoa(pid))
	entries, err := os.ReadDir(filepath.Join(proc, "fd"))
	if err != nil {
		missing(t, "/proc", "run this on Linux")
	}
	for _, e := range entries {
		u.files++
		if to, _ := os.Readlink(filepath.Join(proc, "fd", e.Name())); strings.HasPrefix(to, "socket:") {
			u.sockets++
		}
	}
	status, _ := os.ReadFile(filepath.Join(proc, "status"))
	_, rest, _ := strings.Cut(string(status), "VmRSS:")
	if f := strings.Fields(rest); len(f) > 0 {
		u.kilobytes, _ = strconv.Atoi(f[0])
	}
	return u
}

// Allowed growth: files that the store opened for reading, session logs, and memory that Go has not yet returned to
// the system.
const (
	spareFiles = 32
	mostMemory = 300 << 10 // kB
)

func backToNormal(t *testing.T, pid int, before usage) {
	t.Helper()
	http.DefaultClient.CloseIdleConnections()
	var now usage
	if !eventually(10*time.Second, func() bool {
		now = usageOf(t, pid)
		return now.sockets <= before.sockets && now.files <= before.files+spareFiles
	}) {
		t.Errorf("%d sockets and %d files are open after the attack, want at most %d and about %d", now.sockets, now.files,
			before.sockets, before.files)
	}
	t.Logf("before: %+v, after: %+v", before, now)
	if now.kilobytes > mostMemory {
		t.Errorf("the process uses %d kB of memory, more than allowed", now.kilobytes)
	}
}
