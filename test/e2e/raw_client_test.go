//go:build unix

package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// rawClient speaks MCP on mcp.sock without service-mcp, like a sandboxed program that may use only the socket.
type rawClient struct {
	t    *testing.T
	conn net.Conn
	in   *bufio.Reader
	next int
}

// dialRaw connects and initializes; handshake contains additional fields for the first line.
func dialRaw(w *world, handshake map[string]any) *rawClient {
	w.t.Helper()
	conn, err := net.Dial("unix", filepath.Join(w.dir, "run", "mcp.sock"))
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { conn.Close() })
	c := &rawClient{t: w.t, conn: conn, in: bufio.NewReader(conn)}
	line := map[string]any{"mcp": 1, "protocolMin": 1, "protocolMax": 1, "version": "1", "client": "raw"}
	for name, value := range handshake {
		line[name] = value
	}
	c.write(line)
	if answer := c.read(); answer["ok"] != true {
		w.t.Fatalf("the daemon answered the handshake with %v, want ok", answer)
	}
	c.request("initialize", map[string]any{"protocolVersion": "2025-06-18", "capabilities": map[string]any{},
		"clientInfo": map[string]any{"name": "raw", "version": "1"}})
	c.write(map[string]any{"jsonrpc": "2.0", "method": "notifications/initialized"})
	return c
}

func (c *rawClient) write(message map[string]any) {
	c.t.Helper()
	if err := json.NewEncoder(c.conn).Encode(message); err != nil {
		c.t.Fatal(err)
	}
}

func (c *rawClient) read() map[string]any {
	c.t.Helper()
	_ = c.conn.SetReadDeadline(time.Now().Add(time.Minute))
	line, err := c.in.ReadBytes('\n')
	if err != nil {
		c.t.Fatal(err)
	}
	var message map[string]any
	if err := json.Unmarshal(line, &message); err != nil {
		c.t.Fatalf("read %q: %v", line, err)
	}
	return message
}

// request sends a request and returns its result; it ignores other messages.
func (c *rawClient) request(method string, params map[string]any) map[string]any {
	c.t.Helper()
	c.next++
	c.write(map[string]any{"jsonrpc": "2.0", "id": c.next, "method": method, "params": params})
	for {
		answer := c.read()
		if answer["id"] == float64(c.next) {
			result, _ := answer["result"].(map[string]any)
			if result == nil {
				c.t.Fatalf("%s: no result in %v", method, answer)
			}
			return result
		}
	}
}

// call returns a tool's structured content, or its parsed text if the tool declares no schema.
func (c *rawClient) call(tool string, args map[string]any) map[string]any {
	c.t.Helper()
	result := c.request("tools/call", map[string]any{"name": tool, "arguments": args})
	if fields, ok := result["structuredContent"].(map[string]any); ok {
		return fields
	}
	block := result["content"].([]any)[0].(map[string]any)
	var fields map[string]any
	if err := json.Unmarshal([]byte(block["text"].(string)), &fields); err != nil {
		c.t.Fatalf("%s: text content is not JSON: %v", tool, result)
	}
	return fields
}

// linkByHand links the machine to an account with `servicectl login` and a user's approval.
func linkByHand(w *world, email string) {
	w.t.Helper()
	l := startLogin(w)
	newPerson(w.t).approve(l.until("code")["verificationUrl"].(string), email)
	l.until("linked")
	l.exit()
}

// A client must not choose a program that the daemon runs: variables in its handshake do not reach any command, and
// only the client's own process can open a page.
func TestRawClient_StartsNoProgram(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	ran := filepath.Join(filepath.Dir(w.dir), "ran")
	evil := filepath.Join(filepath.Dir(w.dir), "evil.sh")
	if err := os.WriteFile(evil, []byte("#!/bin/sh\necho \"$@\" >> '"+ran+"'\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	// The real xdg-open works like this.
	w.setOpener(`if [ -n "$BROWSER" ]; then exec "$BROWSER" "$1"; fi; echo "$1" >> '` + w.opened + `'`)
	w.ctl("whoami")
	desktop := map[string]any{"BROWSER": evil, "DISPLAY": ":99", "PATH": filepath.Dir(evil),
		"XDG_RUNTIME_DIR": filepath.Dir(evil)}
	for name, handshake := range map[string]map[string]any{
		"a client that executes no operations":             {"env": desktop},
		"a client that offers operations but ignores them": {"env": desktop, "clientIO": true, "cwd": w.project},
	} {
		c := dialRaw(w, handshake)
		answer := c.call("createSimulatorSession", map[string]any{"openBrowser": true})
		if answer["status"] != "auth_required" || answer["browserOpened"] != false ||
			!strings.Contains(fmt.Sprint(answer["verificationUrl"]), "/activate?code=") {
			t.Errorf("%s: got %v, want auth_required with a URL and no opened browser", name, answer)
		}
	}
	if out, err := os.ReadFile(ran); err == nil {
		t.Errorf("the daemon ran a program from the client's PATH: %s", out)
	}
	if opened := w.openedURLs(); len(opened) > 0 {
		t.Errorf("the daemon opened pages %v, want none", opened)
	}
}

// A client must not make the daemon read or write files. The result contains what the client should write, and
// requests to read a file fail with their own error code.
func TestRawClient_TouchesNoFile(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	linkByHand(w, "raw@example.org")
	victim := filepath.Join(filepath.Dir(w.dir), "victim")
	for name, text := range map[string]string{
		"service.json": `{"project":"com.example.victim"}`, "photo.png": "\x89PNG\r\n\x1a\nsecret", "s.json": `{"scenario":1,"name":"stolen","steps":[]}`, "app.py": "SECRET = 1",
	} {
		if err := os.MkdirAll(victim, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(victim, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	before := listing(t, filepath.Dir(w.dir), w.dir)
	c := dialRaw(w, map[string]any{"cwd": victim})
	session := c.call("startLocalSimulation", map[string]any{"clock": "virtual"})
	if session["status"] != "active" || session["project"] == "com.example.victim" {
		t.Fatalf("session: got %v, want an active session of another project", session)
	}
	const refused = "client_files_unavailable"
	for name, call := range map[string]struct {
		tool string
		args map[string]any
	}{
		"fixtures":  {"startLocalSimulation", map[string]any{"fixturesDir": victim, "fresh": true}},
		"a picture": {"injectSensor", map[string]any{"cameraFile": filepath.Join(victim, "photo.png")}},
		"a run":     {"replaySession", map[string]any{"file": filepath.Join(victim, "s.json")}},
		"a folder":  {"inspectIntegration", map[string]any{"dir": victim}},
		"a verdict": {"validateIntegration", map[string]any{"dir": "/"}},
	} {
		if answer := c.call(call.tool, call.args); answer["code"] != refused ||
			strings.Contains(fmt.Sprint(answer), "SECRET") {
			t.Errorf("%s: got %v, want a refusal without file content", name, answer)
		}
	}
	attach(t, session["appEndpoint"].(string), readText(t, session["appTokenFile"].(string)))
	recorded := c.call("recordSession", map[string]any{"dir": filepath.Join(victim, "recording")})
	if contents, _ := recorded["contents"].([]any); recorded["status"] != "recorded" || len(contents) == 0 {
		t.Errorf("recordSession: got %v, want the file contents in the result", recorded)
	}
	made := c.call("generateConnectionModule", map[string]any{"language": "python", "project": "com.example.raw"})
	if contents, _ := made["contents"].([]any); len(contents) < 3 || made["keyFile"] != "" ||
		made["keyMinted"] != false {
		t.Errorf("generateConnectionModule: got %v, want the file contents and no new key", made)
	}
	if after := listing(t, filepath.Dir(w.dir), w.dir); after != before {
		t.Errorf("the daemon changed files outside the state directory: before\n%s\nafter\n%s", before, after)
	}
}

// listing returns the name and size of every file below root, except those below except.
func listing(t *testing.T, root, except string) string {
	t.Helper()
	var names []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if path == except {
			return fs.SkipDir
		}
		if err == nil && !d.IsDir() {
			info, infoErr := d.Info()
			if infoErr != nil {
				return infoErr
			}
			names = append(names, fmt.Sprintf("%s %d", path, info.Size()))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(names, "\n")
}

func readText(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(data))
}

// Through service-mcp, the same calls use files with the agent's own permissions, because service-mcp, a child
// process of the agent, performs the file operations.
func TestServiceMCP_CarriesOperationsOut(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	if err := os.WriteFile(filepath.Join(w.project, "service.json"), []byte(`{"project":"com.example.mine"}`),
		0o600); err != nil {
		t.Fatal(err)
	}
	a := startAgent(w, "legacy", false)
	session := a.call("startLocalSimulation", map[string]any{"clock": "virtual"})
	if session.Structured["project"] != "com.example.mine" {
		t.Fatalf("service.json was not used: %v", session.Structured)
	}
	if r := a.call("createSimulatorSession",
		map[string]any{"openBrowser": true}); r.Structured["browserOpened"] != true {
		t.Errorf("no page was opened: %v", r.Structured)
	}
	must(t, "the page is opened", func() bool { return len(w.openedURLs()) == 1 })
	attach(t, session.Structured["appEndpoint"].(string), readText(t, session.Structured["appTokenFile"].(string)))
	r := a.call("recordSession", map[string]any{"dir": "recording"})
	if r.Structured["status"] != "recorded" || r.Structured["contents"] != nil {
		t.Fatalf("recordSession: got %v, want a written file and no contents", r.Structured)
	}
	if _, err := os.Stat(filepath.Join(w.project, "recording", "scenario.json")); err != nil {
		t.Error(err)
	}
	if r := a.call("inspectIntegration", map[string]any{}); r.Structured["project"] != "com.example.mine" {
		t.Errorf("inspectIntegration: got %v, want the project of service.json", r.Structured)
	}
}
