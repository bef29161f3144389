//go:build unix

package e2e

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// The daemon responds to anything that it receives on its two sockets or closes the connection, and keeps serving
// others.
func TestDaemonSockets_SurviveGarbage(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	w.ctl("whoami")
	pid := w.daemonPID()
	random := make([]byte, 64<<10)
	noise := rand.New(rand.NewPCG(1, 2))
	for i := range random {
		random[i] = byte(noise.Uint32())
	}
	good := `{"mcp":1,"protocolMin":1,"protocolMax":1,"version":"1","client":"e2e","env":{}}` + "\n"
	cases := map[string]struct{ socket, text, answer string }{
		"control: noise":         {"control.sock", string(random), ""},
		"control: a request":     {"control.sock", "GET / HTTP/1.1\r\nHost: x\r\n\r\n", ""},
		"control: nothing":       {"control.sock", "", ""},
		"mcp: noise":             {"mcp.sock", string(random) + "\n", "invalid_preface"},
		"mcp: a long line":       {"mcp.sock", strings.Repeat("x", 1<<20) + "\n", "invalid_preface"},
		"mcp: another handshake": {"mcp.sock", `{"hello":1}` + "\n", "invalid_preface"},
		"mcp: another protocol": {"mcp.sock", `{"mcp":1,"protocolMin":7,"protocolMax":9,"env":{}}` + "\n",
			"protocol_mismatch"},
		"mcp: noise inside":       {"mcp.sock", good + "\x00\xff{]\n" + initialize, `"serverInfo"`},
		"mcp: a huge line inside": {"mcp.sock", good + strings.Repeat("y", 5<<20) + "\n" + initialize, `"serverInfo"`},
		"mcp: a cut line":         {"mcp.sock", good + initialize[:40], ""},
	}
	for name, c := range cases {
		if answer := say(t, filepath.Join(w.dir, "run", c.socket), c.text, c.answer); !strings.Contains(answer,
			c.answer) {
			t.Errorf("%s: response %.300q, want %s", name, answer, c.answer)
		}
	}
	if line, err := firstAnswer(w, initialize); err != nil || !strings.Contains(line, `"serverInfo"`) {
		t.Errorf("initialize after the garbage: got error %v, answer %s, want the server's answer", err, line)
	}
	if out, errs, exit := w.ctl("whoami"); exit != 1 || w.daemonPID() != pid || starts(w) != 1 {
		t.Errorf("whoami after the garbage: exit %d, want 1; pid %d, want %d: %s%s", exit, w.daemonPID(), pid, out, errs)
	}
}

// say writes text to a socket and reads until the expected response arrives, the connection ends, or no data arrives
// for a short time.
func say(t *testing.T, socket, text, want string) string {
	t.Helper()
	conn, err := net.Dial("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetWriteDeadline(time.Now().Add(5 * time.Second))
	_, _ = io.WriteString(conn, text) // the daemon may close the socket before it has read everything
	limit := 10 * time.Second
	if want == "" {
		limit = 200 * time.Millisecond
	}
	conn.SetReadDeadline(time.Now().Add(limit))
	var heard strings.Builder
	for r := bufio.NewReader(conn); ; {
		line, err := r.ReadString('\n')
		heard.WriteString(line)
		if err != nil || want != "" && strings.Contains(line, want) {
			return heard.String()
		}
	}
}

// An app that sends garbage gets an error, and no other client is affected.
func TestAppEndpoint_SurvivesGarbage(t *testing.T) {
	t.Parallel()
	b := startBackend(t, "")
	w := newWorld(t, "", "SERVICE_BACKEND_URL="+b.url, "SERVICE_NO_AUTO_OPEN=1")
	link(w, "doors@example.org")
	out, errs, exit := w.ctl("tool", "call", "createSimulatorSession", `{"project":"com.example.doors"}`)
	if exit != 0 {
		t.Fatalf("createSimulatorSession: %s%s", out, errs)
	}
	_, after, _ := strings.Cut(out, `"appEndpoint": "`)
	endpoint, _, _ := strings.Cut(after, `"`)
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	for name, frame := range map[string][]byte{
		"noise":           {0, 1, 2, 0xff},
		"no hello":        []byte(`{"v":1,"type":"display.show","id":"1","at":0,"payload":{}}`),
		"a wrong secret":  []byte(`{"v":1,"type":"hello","id":"1","at":0,"payload":{"secret":"sst_wrong"}}`),
		"a huge hello":    bytes.Repeat([]byte("x"), 1<<20),
		"a nested object": bytes.Repeat([]byte(`{"a":`), 1000),
	} {
		ws, _, err := websocket.Dial(ctx, endpoint, nil)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		_ = ws.Write(ctx, websocket.MessageText, frame)
		for err = nil; err == nil; {
			_, _, err = ws.Read(ctx)
		}
		ws.CloseNow()
		if ctx.Err() != nil {
			t.Fatalf("%s: the connection was not closed", name)
		}
	}
	if get(b.url+"/api/health") != 200 {
		t.Error("the backend no longer serves /api/health")
	}
	out, errs, exit = w.ctl("tool", "call", "getSessionStatus", `{}`)
	if exit != 0 {
		t.Errorf("getSessionStatus: %s%s", out, errs)
	}
}

// An unreadable install.json or config.yaml causes a clear error or a defined state, and no data is lost.
func TestStateFiles_Unreadable(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "backend_url: [not, a, url\n")
	config := filepath.Join(w.dir, "config.yaml")
	if out, errs, exit := w.ctl("whoami"); exit != 2 || !strings.Contains(errs, config) {
		t.Errorf("broken config.yaml: exit %d, want 2 and its path: %s%s", exit, out, errs)
	}
	write(t, config, []byte("bakend_url: http://localhost:1\n"))
	if _, errs, exit := w.ctl("whoami"); exit != 2 || !strings.Contains(errs, config) ||
		!strings.Contains(errs, "bakend_url") {
		t.Errorf("misspelt setting: exit %d, want 2 with path and setting: %s", exit, errs)
	}
	write(t, config, []byte("log_level: info\n"))

	install := filepath.Join(w.dir, "install.json")
	write(t, install, []byte("{\"installId\":\x00"))
	out, errs, exit := w.ctl("whoami", "--json")
	if exit != 1 || !strings.Contains(out, `"inst_`) {
		t.Fatalf("broken install.json: exit %d, want 1 and a new install id: %s%s", exit, out, errs)
	}
	if kept, _ := filepath.Glob(install + ".corrupt-*"); len(kept) != 1 {
		t.Errorf("copies of the broken install.json: got %v, want one", kept)
	}

	// A running daemon keeps its previous settings.
	pid := w.daemonPID()
	write(t, config, []byte("log_level: loud\n"))
	write(t, filepath.Join(w.dir, "auth.json"), []byte(`{"authToken":7,`))
	must(t, "both files are noticed", func() bool {
		log, _ := os.ReadFile(filepath.Join(w.dir, "log", "serviced.log"))
		out, _, _ := w.ctl("whoami", "--json")
		return strings.Contains(string(log), "failed to load the configuration") && strings.Contains(out, `"corrupt"`)
	})
	if out, errs, exit := w.ctl("whoami"); exit != 1 || w.daemonPID() != pid {
		t.Errorf("whoami with the broken file: exit %d, want 1; pid %d, want %d: %s%s", exit, w.daemonPID(), pid, out, errs)
	}
}
