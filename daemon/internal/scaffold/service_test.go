package scaffold

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/guide"
	"github.com/service-dev/service/test/reaper"
)

const secret = "sst_secret"

// service is a session of the protocol whose frames are sent by the test.
type service struct {
	t     *testing.T
	url   string
	conns chan *peer
	gate  *gate
	// gateway is the AI gateway named in welcomes.
	gateway *glasses.Gateway
}

// peer is one connection of the app.
type peer struct {
	t     *testing.T
	ws    *websocket.Conn
	done  chan struct{}
	seq   int64
	hello glasses.Hello
}

func newService(t *testing.T) *service {
	s := &service{t: t, conns: make(chan *peer)}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ws, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		ws.SetReadLimit(1 << 20)
		p := &peer{t: t, ws: ws, done: make(chan struct{})}
		select {
		case s.conns <- p:
			<-p.done
		case <-r.Context().Done():
		}
		ws.CloseNow()
	}))
	s.gate = &gate{Listener: server.Listener, broken: make(chan struct{}, 100)}
	server.Listener = s.gate
	server.Start()
	t.Cleanup(server.Close)
	s.url = "ws" + strings.TrimPrefix(server.URL, "http") + "/api/sessions/loc_x/app"
	return s
}

func (s *service) accept(lastSeq int64) *peer {
	s.t.Helper()
	select {
	case p := <-s.conns:
		_, data, err := p.ws.Read(p.ctx())
		if err != nil {
			s.t.Fatal(err)
		}
		h, f, err := glasses.ParseHello(data)
		if err != nil {
			s.t.Fatal(err)
		}
		if h.Secret != secret || !h.Barrier {
			s.t.Errorf("hello %+v", h)
		}
		p.hello, p.seq = h, lastSeq
		model, _ := glasses.Model(glasses.DefaultDeviceModel)
		p.send(glasses.TypeWelcome, f.ID, glasses.Welcome{SessionID: "loc_x", DeviceModel: model, Link: "connected",
			LastSeq: lastSeq, Glasses: glasses.FreshState().ForApp(glasses.LinkConnected, glasses.ClockVirtual),
			Gateway: s.gateway})
		return p
	case <-time.After(2 * time.Minute):
		s.t.Fatal("no app attached within 2 minutes")
		return nil
	}
}

func (p *peer) ctx() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	p.t.Cleanup(cancel)
	return ctx
}

func (p *peer) send(typ, id string, payload any) {
	p.t.Helper()
	p.sendAt(typ, id, 1, payload)
}

func (p *peer) sendAt(typ, id string, at int64, payload any) {
	p.t.Helper()
	f, err := glasses.New(typ, id, at, payload)
	if err != nil {
		p.t.Fatal(err)
	}
	data, err := f.Encode()
	if err != nil {
		p.t.Fatal(err)
	}
	if err := p.ws.Write(p.ctx(), websocket.MessageText, data); err != nil {
		p.t.Fatal(err)
	}
}

func (p *peer) binary(typ, id string, payload any, body []byte) {
	p.t.Helper()
	f, _ := glasses.New(typ, id, 1, payload)
	data, err := glasses.EncodeBinary(f, body)
	if err != nil {
		p.t.Fatal(err)
	}
	if err := p.ws.Write(p.ctx(), websocket.MessageBinary, data); err != nil {
		p.t.Fatal(err)
	}
}

func (p *peer) input(id, target string) {
	p.send(glasses.TypeInput, id, glasses.Input{Kind: glasses.InputTap, Target: target})
}

// next returns the app's next frame, barriers included, and its text.
func (p *peer) next() (glasses.Frame, string) {
	p.t.Helper()
	_, data, err := p.ws.Read(p.ctx())
	if err != nil {
		p.t.Fatal(err)
	}
	f, err := glasses.Parse(data)
	if err != nil {
		p.t.Fatalf("%s: %v", data, err)
	}
	return f, string(data)
}

// expect receives the next frame, checks its type and payload, and acknowledges it.
func (p *peer) expect(typ, payload string) glasses.Frame {
	p.t.Helper()
	f, _ := p.next()
	if f.Type != typ || payload != "" && !sameJSON(f.Payload, payload) {
		p.t.Fatalf("got %s %s, want %s %s", f.Type, f.Payload, typ, payload)
	}
	if glasses.IsCommand(typ) {
		if _, err := glasses.ParseCommand(typ, f.Payload); err != nil {
			p.t.Errorf("%s: %v", typ, err)
		}
	}
	if typ != glasses.TypeBarrier {
		p.ack(f)
	}
	return f
}

func (p *peer) ack(f glasses.Frame) {
	p.seq++
	p.send(glasses.TypeAck, "", glasses.Ack{ID: f.ID, Kind: glasses.KindOf(f.Type), Seq: p.seq})
	p.send(glasses.TypeCursor, "", glasses.Cursor{Seq: p.seq})
}

func (p *peer) ok(f glasses.Frame) { p.send(glasses.TypeResult, f.ID, glasses.Result{OK: true}) }

func (p *peer) barrier(id string) {
	p.t.Helper()
	p.barrierDuring(0, id)
}

// barrierDuring sends a barrier while calls to the AI gateway are in progress.
func (p *peer) barrierDuring(calls int, id string) {
	p.t.Helper()
	p.send(glasses.TypeBarrier, id, struct{}{})
	if f := p.expect(glasses.TypeBarrier, fmt.Sprintf(`{"calls":%d}`, calls)); f.ID != id {
		p.t.Fatalf("barrier %s was answered as %s", id, f.ID)
	}
}

func (p *peer) close(code int, why string) {
	p.ws.Close(websocket.StatusCode(code), why)
	close(p.done)
}

func (p *peer) cut() {
	p.ws.CloseNow()
	close(p.done)
}

func sameJSON(a json.RawMessage, b string) bool {
	var x, y any
	if json.Unmarshal(a, &x) != nil || json.Unmarshal([]byte(b), &y) != nil {
		return false
	}
	p, _ := json.Marshal(x)
	q, _ := json.Marshal(y)
	return bytes.Equal(p, q)
}

// app is a running probe.
type app struct {
	t   *testing.T
	cmd *exec.Cmd
	out bytes.Buffer
}

// kotlinProbe compiles the largest and the smallest Kotlin module with the probe, the examples, and stubs of the
// platform's classes that the documented attestation uses. It does so once for all tests, because the compiler takes
// seconds to start. It returns the jar, or "" if there is no compiler.
func kotlinProbe(t *testing.T) string {
	t.Helper()
	kotlinc := tool(t, "kotlinc")
	if kotlinc == "" || testing.Short() {
		return ""
	}
	jar := filepath.Join(probes, "probe.jar")
	onceKotlin.Do(func() { compileKotlin(t, kotlinc, jar) })
	if _, err := os.Stat(jar); err != nil {
		t.Fatal("the Kotlin module does not compile")
	}
	return jar
}

func compileKotlin(t *testing.T, kotlinc, jar string) {
	t.Helper()
	documented := filepath.Join(t.TempDir(), "attestation.kt")
	write(t, documented, []byte(exampleOf(t, "```kotlin attestation\n")))
	sources := []string{documented}
	for _, pattern := range []string{"examples/" + Kotlin, "testdata", "testdata/stubs"} {
		found, err := filepath.Glob(filepath.Join(filepath.FromSlash(pattern), "*.kt"))
		if err != nil {
			t.Fatal(err)
		}
		sources = append(sources, found...)
	}
	for name, capabilities := range map[string][]string{"service": guide.CapabilityIDs(), "small": {guide.Camera}} {
		files, err := Generate(Request{Language: Kotlin, Capabilities: capabilities})
		if err != nil {
			t.Fatal(err)
		}
		module := filepath.Join(t.TempDir(), files[0].Name)
		write(t, module, bytes.Replace(files[0].Data, []byte("package service\n"), []byte("package "+name+"\n"), 1))
		sources = append(sources, module)
	}
	cmd := exec.Command(kotlinc, append(sources, "-include-runtime", "-d", jar)...)
	cmd.Env = append(os.Environ(), "JAVA_OPTS=-Xmx512M -XX:+UseSerialGC -XX:TieredStopAtLevel=1")
	if out, err := cmd.CombinedOutput(); err != nil || bytes.Contains(out, []byte("warning: '")) ||
		bytes.Contains(out, []byte(".kt:")) {
		t.Errorf("kotlinc: %v\n%s", err, out)
	}
}

var (
	onceKotlin sync.Once
	// probes is a folder shared by all tests.
	probes string
)

func TestMain(m *testing.M) {
	// The tests mostly wait for other programs.
	reaper.Parallel(6)
	os.Exit(reaper.Run(func() int {
		dir, err := os.MkdirTemp("", "scaffold")
		if err != nil {
			panic(err)
		}
		probes = dir
		return m.Run()
	}))
}

// start writes a module with every capability and the probe into a folder, and runs it.
func start(t *testing.T, v variant, env ...string) *app {
	t.Helper()
	dir := t.TempDir()
	writeProbe(t, dir, v)
	write(t, filepath.Join(dir, "secret"), []byte(secret+"\n"))
	a := &app{t: t, cmd: exec.Command(v.command[0], v.command[1:]...)}
	a.cmd.Dir = dir
	a.cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "NODE_NO_WARNINGS=1", "PYTHONIOENCODING=utf-8",
		"SERVICE_GLASSES_SECRET_FILE=" + filepath.Join(dir, "secret")}, env...)
	a.cmd.Stdout, a.cmd.Stderr = &a.out, &a.out
	if err := a.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		a.cmd.Process.Kill()
		a.cmd.Wait()
		if t.Failed() {
			t.Logf("output of the app: %s", a.out.String())
		}
	})
	return a
}

// says waits until the app exits and compares its output.
func (a *app) says(want string) {
	a.t.Helper()
	ended := make(chan error, 1)
	go func() { ended <- a.cmd.Wait() }()
	select {
	case err := <-ended:
		if err != nil {
			a.t.Errorf("the app exited with %v, want success", err)
		}
	case <-time.After(2 * time.Minute):
		a.cmd.Process.Kill()
		<-ended
		a.t.Error("the app did not exit within 2 minutes")
	}
	if got := strings.TrimSpace(a.out.String()); got != want {
		a.t.Errorf("the app printed %q, want %q", got, want)
	}
}

func write(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}
