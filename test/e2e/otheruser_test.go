//go:build unix

package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/service-dev/service/test/browser"
)

// stranger is the environment variable that makes this test binary act as another user of the machine. Its value is
// the action with its arguments.
const stranger = "E2E_STRANGER"

// asStranger returns a command that runs this test binary as another user, from a directory where that user may
// execute it.
func asStranger(t *testing.T, does ...string) *exec.Cmd {
	t.Helper()
	if os.Getuid() != 0 {
		missing(t, "another user", "run this as root")
	}
	dir, err := os.MkdirTemp("/tmp", "n")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	self, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "self")
	if err := errors.Join(os.WriteFile(program, self, 0o755), os.Chmod(dir, 0o755)); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program)
	cmd.Dir, cmd.Env = "/", []string{stranger + "=" + strings.Join(does, " ")}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	return cmd
}

// strangerSays returns the complete output of a program run by the other user.
func strangerSays(t *testing.T, does ...string) string {
	t.Helper()
	out, err := asStranger(t, does...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v\n%s", does, err, out)
	}
	return strings.TrimSpace(string(out))
}

// playStranger performs the action of the other user and prints the result.
func playStranger(does []string) {
	switch does[0] {
	case "approve":
		p, err := browser.New()
		if err == nil {
			err = p.Approve(does[1], "thief@example.org", "a password of ten letters")
		}
		fmt.Println("approve:", err)
	case "get":
		req, _ := http.NewRequest(http.MethodGet, does[1], nil)
		req.Header.Set("Cookie", does[2])
		resp, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			fmt.Println("error:", err)
			return
		}
		resp.Body.Close()
		fmt.Println("status:", resp.StatusCode)
	case "attach":
		fmt.Println("attach:", attachApp(does[1], does[2]))
	case "hold":
		holdPort(does[1])
	}
}

// attachApp sends hello to an app's endpoint and waits for the welcome.
func attachApp(endpoint, secret string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	ws, _, err := websocket.Dial(ctx, endpoint, nil)
	if err != nil {
		return err
	}
	defer func() { _ = ws.CloseNow() }()
	hello := fmt.Sprintf(`{"v":1,"type":"hello","id":"x-1","at":0,"payload":{"secret":%q,"app":{"name":"app"}}}`,
		secret)
	if err := ws.Write(ctx, websocket.MessageText, []byte(hello)); err != nil {
		return err
	}
	_, data, err := ws.Read(ctx)
	if err != nil {
		return err
	}
	if !strings.Contains(string(data), `"welcome"`) {
		return fmt.Errorf("response to hello: %s", data)
	}
	return nil
}

// holdPort listens on a localhost port that its owner has released, prints a line for each secret that it receives,
// and stops at the end of its input.
func holdPort(port string) {
	handler := http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") == "" {
			fmt.Println("cookie:", r.Header.Get("Cookie"))
			return
		}
		ws, err := websocket.Accept(rw, r, nil)
		if err != nil {
			return
		}
		_, data, _ := ws.Read(r.Context())
		fmt.Println("hello:", string(data))
		_ = ws.CloseNow()
	})
	for _, host := range []string{"127.0.0.1", "::1"} {
		l, err := net.Listen("tcp", net.JoinHostPort(host, port))
		if err != nil {
			if host == "127.0.0.1" {
				fmt.Println("held:", err)
				return
			}
			continue
		}
		go func() { _ = http.Serve(l, handler) }()
	}
	fmt.Println("held: yes")
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// thief is another user's process that listens on a port.
type thief struct {
	t     *testing.T
	cmd   *exec.Cmd
	stdin io.Closer
	lines *bufio.Scanner
}

func hold(t *testing.T, port string) *thief {
	t.Helper()
	h := &thief{t: t, cmd: asStranger(t, "hold", port)}
	stdin, err := h.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := h.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	h.stdin, h.lines = stdin, bufio.NewScanner(stdout)
	if err := h.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stdin.Close(); _ = h.cmd.Wait() })
	if got := h.next(); got != "held: yes" {
		t.Fatalf("take port %s: got %s, want the port held", port, got)
	}
	return h
}

func (h *thief) next() string {
	h.t.Helper()
	stop := time.AfterFunc(30*time.Second, func() { _ = h.cmd.Process.Kill() })
	defer stop.Stop()
	if !h.lines.Scan() {
		h.t.Fatal("the other user's program exited")
	}
	return h.lines.Text()
}

func (h *thief) letGo() {
	h.stdin.Close()
	_ = h.cmd.Wait()
}

func portOf(t *testing.T, address string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return u.Port()
}

// stopDaemon stops the daemon and its adapters.
func (w *world) stopDaemon() {
	w.t.Helper()
	pid := w.daemonPID()
	w.ctl("daemon", "stop")
	if pid == 0 || !waitGone(pid, 15*time.Second) {
		w.t.Fatalf("daemon %d did not stop", pid)
	}
}

// Another user of the machine who reads the URL in the arguments of xdg-open cannot sign up there and approve instead
// of the owner. The owner's own approval succeeds.
func TestActivationPage_AnotherUserCannotApprove(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	l := startLogin(w)
	l.until("code")
	var seen string
	must(t, "the page is opened", func() bool {
		if urls := w.openedURLs(); len(urls) > 0 {
			seen = urls[0]
		}
		return seen != ""
	})
	for _, address := range []string{seen, strings.Replace(seen, "localhost", "127.0.0.1", 1)} {
		if said := strangerSays(t, "approve", address); !strings.HasPrefix(said, "approve:") ||
			strings.Contains(said, "<nil>") || strings.Contains(said, "/activate/approved") {
			t.Errorf("another user at %s: got %s, want a refusal", address, said)
		}
	}
	owner, err := browser.New()
	if err != nil {
		t.Fatal(err)
	}
	if err := owner.Approve(seen, "ada@example.org", "a password of ten letters"); err != nil {
		t.Fatal(err)
	}
	l.until("linked")
	if code := l.exit(); code != 0 {
		t.Errorf("login: exit %d, want 0", code)
	}
	log, err := os.ReadFile(filepath.Join(w.dir, "log", "serviced.log"))
	if err != nil || !strings.Contains(string(log), "another user, uid 65534") {
		t.Errorf("the log does not mention the refused user: %v", err)
	}
}

// signedIn returns a browser that has linked the machine and is signed in, and the browser's cookie.
func signedIn(t *testing.T, w *world) (ada *browser.Browser, site *url.URL, cookie string) {
	t.Helper()
	ada, err := browser.New()
	if err != nil {
		t.Fatal(err)
	}
	l := startLogin(w)
	page := l.until("code")["verificationUrl"].(string)
	if err := ada.Approve(page, "ada@example.org", "a password of ten letters"); err != nil {
		t.Fatal(err)
	}
	l.until("linked")
	l.exit()
	if site, err = url.Parse(page); err != nil {
		t.Fatal(err)
	}
	site.Path, site.RawQuery = "/", ""
	for _, c := range ada.Client().Jar.Cookies(site) {
		cookie += c.Name + "=" + c.Value + "; "
	}
	return ada, site, strings.TrimSuffix(cookie, "; ")
}

// backendURL returns the URL of the daemon's embedded backend, and starts the daemon if necessary.
func backendURL(t *testing.T, w *world) string {
	t.Helper()
	w.ctl("tool", "call", "listProjects") // any tool that requires the backend
	out, errs, _ := w.ctl("status", "--json")
	var status map[string]any
	if err := json.Unmarshal([]byte(out), &status); err != nil {
		t.Fatalf("%v: %s%s", err, out, errs)
	}
	port, err := os.ReadFile(filepath.Join(w.dir, "backend", "port"))
	if err != nil {
		t.Fatal(err)
	}
	return "http://localhost:" + strings.TrimSpace(string(port))
}

// While the daemon is down, another user takes the embedded backend's port and receives the cookie from the owner's
// browser. The cookie is useless to that user and, if the port had to change, to every user.
func TestEmbeddedBackend_StolenCookieIsUseless(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	ada, site, cookie := signedIn(t, w)
	w.stopDaemon()

	h := hold(t, site.Port())
	_, _, _ = ada.Get(site.String())
	stolen := strings.TrimPrefix(h.next(), "cookie: ")
	if stolen != cookie {
		t.Fatalf("the other user received %q, want %q", stolen, cookie)
	}
	h.letGo()
	setPortHeld(t, w, time.Now())
	if address := backendURL(t, w); portOf(t, address) != site.Port() {
		t.Fatalf("the free port was not reused: the address is %s", address)
	}
	if said := strangerSays(t, "get", site.JoinPath("account").String(),
		strings.ReplaceAll(stolen, "; ", ";")); !strings.HasPrefix(said, "error:") {
		t.Errorf("another user with the owner's cookie: got %s, want an error", said)
	}
	if _, at, err := ada.Get(site.JoinPath("account").String()); err != nil || at.Path != "/account" {
		t.Errorf("the owner with the same cookie: at %v (error %v), want /account", at, err)
	}

	w.stopDaemon()
	hold(t, site.Port())
	address := backendURL(t, w)
	if portOf(t, address) == site.Port() {
		t.Fatal("the backend uses the port that another process holds")
	}
	page, at, err := ada.Get(address + "/account")
	if err != nil || at.Path != "/signin" || !strings.Contains(page, "Every browser was signed out") {
		t.Errorf("the owner's browser after the port changed: at %v (error %v), want /signin and an explanation", at, err)
	}
	if out, _, code := w.ctl("whoami"); code != 0 {
		t.Errorf("the install is no longer linked: exit %d, %s", code, out)
	}
}

type localSession struct{ SessionID, AppEndpoint, AppTokenFile string }

func startLocal(t *testing.T, w *world) (s localSession, secret string) {
	t.Helper()
	out, errs, code := w.ctl("tool", "call", "startLocalSimulation", `{"project":"com.example.app"}`, "--json")
	if code != 0 || json.Unmarshal([]byte(out), &s) != nil || s.AppEndpoint == "" {
		t.Fatalf("startLocalSimulation: exit %d, want 0 and an app endpoint: %s%s", code, out, errs)
	}
	data, err := os.ReadFile(s.AppTokenFile)
	if err != nil {
		t.Fatal(err)
	}
	return s, string(data)
}

// An app that reconnects while the daemon is down sends its secret to the process that took the port. The secret is
// useless to another user and, if the port had to change, to every user.
func TestAppEndpoint_StolenSecretIsUseless(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	s, secret := startLocal(t, w)
	if err := attachApp(s.AppEndpoint, secret); err != nil {
		t.Fatal(err)
	}
	if said := strangerSays(t, "attach", s.AppEndpoint, secret); !strings.Contains(said, "attach:") ||
		strings.Contains(said, "<nil>") {
		t.Errorf("another user with the app secret: got %s, want an error", said)
	}
	w.stopDaemon()
	port := portOf(t, s.AppEndpoint)
	h := hold(t, port)
	_ = attachApp(s.AppEndpoint, secret)
	if got := h.next(); !strings.HasPrefix(got, "hello:") || !strings.Contains(got, secret) {
		t.Fatalf("the other user received %s, want a hello with the secret", got)
	}

	moved, fresh := startLocal(t, w)
	if moved.SessionID != s.SessionID || portOf(t, moved.AppEndpoint) == port {
		t.Fatalf("got session %s at %s, want the same session at a new port", moved.SessionID, moved.AppEndpoint)
	}
	if fresh == secret {
		t.Error("the session still has the secret that another process received")
	}
	if err := attachApp(moved.AppEndpoint, secret); websocket.CloseStatus(err) != 4401 {
		t.Errorf("attach with the old secret: got %v, want close code 4401", err)
	}
	if err := attachApp(moved.AppEndpoint, fresh); err != nil {
		t.Errorf("attach with the new secret: %v", err)
	}
	h.letGo()
	w.stopDaemon()
	again, same := startLocal(t, w)
	if again.AppEndpoint != moved.AppEndpoint || same != fresh {
		t.Error("a restart at the same port changed the address or the secret")
	}
}
