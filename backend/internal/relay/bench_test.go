package relay_test

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"runtime"
	"runtime/pprof"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/service-dev/service/backend/internal/relay"
	"github.com/service-dev/service/backend/internal/sessions"
	"github.com/service-dev/service/glasses"
)

// crowd is a log and a session register for any number of sessions. It stores nothing.
type crowd struct{ *memory }

func (c crowd) Open(ctx context.Context, id, _ string) (sessions.Session, error) {
	return c.Session(ctx, id)
}

func (c crowd) Session(_ context.Context, id string) (sessions.Session, error) {
	s := c.s
	s.ID = id
	return s, nil
}

func (c crowd) SomeSessions(ctx context.Context, ids []string) (found []sessions.Session, err error) {
	for _, id := range ids {
		one, _ := c.Session(ctx, id)
		found = append(found, one)
	}
	return found, nil
}

func (crowd) AppendEvents(context.Context, []sessions.Row, sessions.Quota) error { return nil }

func (crowd) SessionEvents(context.Context, string, int64, int) ([]glasses.Event, error) {
	return nil, nil
}

func (crowd) Memory(context.Context, string) (sessions.Memory, error) { return sessions.Memory{}, nil }

// relayServer returns the address of a hub; bareServer returns the address of a relay that only forwards frames.
func relayServer(b testing.TB) string {
	m := crowd{newMemory()}
	hub := relay.New(relay.Options{Sessions: m, Log: m})
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- hub.Serve(ctx) }()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /app/{id}", hub.ServeApp)
	mux.HandleFunc("GET /page/{id}", func(rw http.ResponseWriter, r *http.Request) {
		hub.ServePage(rw, r, r.PathValue("id"), func(context.Context) bool { return true })
	})
	mux.HandleFunc("GET /held", serveHeld)
	server := httptest.NewServer(mux)
	b.Cleanup(func() { cancel(); <-served; server.Close() })
	return server.URL
}

func bareServer(b testing.TB) string {
	var apps sync.Map
	accept := func(rw http.ResponseWriter, r *http.Request) *websocket.Conn {
		c, err := websocket.Accept(rw, r, &websocket.AcceptOptions{InsecureSkipVerify: true})
		if err != nil {
			b.Error(err)
			return nil
		}
		c.SetReadLimit(glasses.MaxBinary)
		return c
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /app/{id}", func(rw http.ResponseWriter, r *http.Request) {
		c := accept(rw, r)
		_, _, _ = c.Read(r.Context()) // hello
		apps.Store(r.PathValue("id"), c)
		_ = c.Write(r.Context(), websocket.MessageText, []byte("{}"))
		_, _, _ = c.Read(r.Context())
	})
	mux.HandleFunc("GET /page/{id}", func(rw http.ResponseWriter, r *http.Request) {
		c := accept(rw, r)
		to, _ := apps.Load(r.PathValue("id"))
		for {
			kind, data, err := c.Read(r.Context())
			if err != nil || to.(*websocket.Conn).Write(r.Context(), kind, data) != nil {
				return
			}
		}
	})
	mux.HandleFunc("GET /held", serveHeld)
	server := httptest.NewServer(mux)
	b.Cleanup(server.Close)
	return server.URL
}

type pair struct{ page, app *websocket.Conn }

func pairs(b testing.TB, url string, n int) []pair {
	all := make([]pair, n)
	for i := range all {
		dial := func(path string) *websocket.Conn {
			c, _, err := websocket.Dial(b.Context(), url+path+strconv.Itoa(i),
				&websocket.DialOptions{HTTPHeader: http.Header{"Origin": {url}}})
			if err != nil {
				b.Fatal(err)
			}
			c.SetReadLimit(-1)
			b.Cleanup(func() { _ = c.CloseNow() })
			return c
		}
		app := dial("/app/")
		hello := `{"v":1,"type":"hello","id":"h1","at":0,"payload":{"secret":"x","app":{"name":"bench"}}}`
		if err := app.Write(b.Context(), websocket.MessageText, []byte(hello)); err != nil {
			b.Fatal(err)
		}
		if _, _, err := app.Read(b.Context()); err != nil { // welcome
			b.Fatal(err)
		}
		page := dial("/page/")
		go func() {
			for {
				if _, _, err := page.Read(context.Background()); err != nil {
					return
				}
			}
		}()
		all[i] = pair{page, app}
	}
	return all
}

// BenchmarkStream measures stream frames from a page to an app, with 16 frames of a session in flight.
func BenchmarkStream(b *testing.B) {
	for _, sessions := range []int{1, 500} {
		for _, size := range []int{200, 100_000} {
			for name, start := range map[string]func(testing.TB) string{"relay": relayServer, "bare": bareServer} {
				b.Run(fmt.Sprintf("sessions=%d/size=%d/%s", sessions, size, name), func(b *testing.B) {
					stream(b, pairs(b, start(b), sessions),
						binary(b, "video.frame", "g-1", `{"width":640,"height":480}`, make([]byte, size)))
				})
			}
		}
	}
}

func stream(b *testing.B, all []pair, frame []byte) {
	b.ReportAllocs()
	b.ResetTimer()
	var wg sync.WaitGroup
	for i, p := range all {
		n := (b.N + i) / len(all)
		slots := make(chan struct{}, 16)
		wg.Go(func() {
			for range n {
				slots <- struct{}{}
				if err := p.page.Write(b.Context(), websocket.MessageBinary, frame); err != nil {
					b.Error(err)
					return
				}
			}
		})
		wg.Go(func() {
			for got := 0; got < n; {
				kind, _, err := p.app.Read(b.Context())
				if err != nil {
					b.Error(err)
					return
				}
				if kind == websocket.MessageBinary {
					got++
					<-slots
				}
			}
		})
	}
	wg.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "frames/s")
}

// BenchmarkIdle measures the memory of a session whose page and app are attached but silent: heap and stacks in use
// after a collection, in a separate process. The figure for the bare relay is the part that net/http and
// coder/websocket use.
func BenchmarkIdle(b *testing.B) {
	const n = 2000
	for _, name := range []string{"relay", "bare"} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				url := serverProcess(b, name)
				pairs(b, url, 10)
				before := held(b, url)
				pairs(b, url, n)
				time.Sleep(3 * time.Second) // until heartbeats have been sent
				b.ReportMetric(float64(held(b, url)-before)/n/1024, "KB/pair")
			}
		})
	}
}

const serverEnv = "RELAY_BENCH_SERVER"

// serverProcess starts this test binary again as a server.
func serverProcess(b *testing.B, name string) string {
	cmd := exec.CommandContext(b.Context(), os.Args[0], "-test.run=^$", "-test.bench=BenchmarkServer",
		"-test.benchtime=1x")
	cmd.Env = append(os.Environ(), serverEnv+"="+name)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if url, ok := strings.CutPrefix(lines.Text(), "serving "); ok {
			return url
		}
	}
	b.Fatal("the server did not start")
	return ""
}

// BenchmarkServer is the server that BenchmarkIdle runs in a separate process.
func BenchmarkServer(b *testing.B) {
	start := map[string]func(testing.TB) string{"relay": relayServer, "bare": bareServer}[os.Getenv(serverEnv)]
	if start == nil {
		b.Skip("runs in a separate process")
	}
	fmt.Println("\nserving " + start(b))
	<-time.After(time.Minute) // BenchmarkIdle kills it earlier
}

// serveHeld responds with the memory in use.
func serveHeld(rw http.ResponseWriter, _ *http.Request) {
	for range 6 { // each collection halves the unused stacks
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	fmt.Fprint(rw, m.HeapInuse+m.StackInuse)
	if path := os.Getenv("RELAY_BENCH_PROFILE"); path != "" {
		if f, err := os.Create(path); err == nil {
			_ = pprof.WriteHeapProfile(f)
			_ = f.Close()
		}
		fmt.Fprintln(os.Stderr, "heap", m.HeapInuse, "alloc", m.HeapAlloc, "stack", m.StackInuse, "goroutines",
			runtime.NumGoroutine())
	}
}

func held(b *testing.B, url string) int64 {
	res, err := http.Get(url + "/held") //nolint:noctx // a benchmark
	if err != nil {
		b.Fatal(err)
	}
	defer res.Body.Close()
	var n int64
	if _, err := fmt.Fscan(res.Body, &n); err != nil {
		b.Fatal(err)
	}
	return n
}
