//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/coder/websocket"

	"github.com/service-dev/service/glasses"
)

// otherUser is the uid of the user nobody, another user of this machine.
const otherUser = 65534

// intrudeCommand is the argument that makes this program act as the other user.
const intrudeCommand = "intrude"

// targets lists what the other user attacks: sockets, files, and URLs of apps whose secret has leaked.
type targets struct {
	Sockets   []string
	Files     []string
	Endpoints []string
	Secret    string
}

// intrude runs a process of another user of the machine, which tries to access everything within reach.
func (s *soak) intrude(*rand.Rand) (string, func() error, error) {
	run := filepath.Join(s.state, "run")
	t := targets{
		Sockets: []string{filepath.Join(run, "control.sock"), filepath.Join(run, "mcp.sock")},
		Files: []string{s.auth(), filepath.Join(s.state, "install.json"), filepath.Join(run, "codes.json"),
			filepath.Join(run, "daemon.json")},
	}
	for _, h := range s.workers {
		if endpoint, file := h.localEndpoint(); endpoint != "" {
			t.Endpoints = append(t.Endpoints, endpoint)
			if data, err := os.ReadFile(file); err == nil {
				t.Secret = string(bytes.TrimSpace(data))
			}
		}
	}
	given, err := json.Marshal(t)
	if err != nil {
		return "", nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, s.intruder, intrudeCommand)
	cmd.Stdin, cmd.Env, cmd.Dir = bytes.NewReader(given), []string{}, "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: otherUser, Gid: otherUser}}
	out, err := cmd.Output()
	if err != nil {
		return "", nil, fmt.Errorf("run as the other user: %w", err)
	}
	var got []string
	if err := json.Unmarshal(out, &got); err != nil {
		return "", nil, err
	}
	if len(got) > 0 {
		s.results.report("another user of this machine gained access: %v", got)
	}
	return fmt.Sprintf("(%d addresses of apps)", len(t.Endpoints)), nil, nil
}

// copyIntruder copies this program to a directory where the other user may run it.
func (w *testbed) copyIntruder() error {
	if os.Getuid() != 0 {
		w.results.skip("another user of this machine, because only root can switch users")
		return nil
	}
	dir, err := os.MkdirTemp("/tmp", "other")
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	w.intruder = filepath.Join(dir, "intruder")
	if err := copyFile(self, w.intruder); err != nil {
		return err
	}
	if err := os.Chmod(w.intruder, 0o755); err != nil {
		return err
	}
	return os.Chmod(dir, 0o755)
}

// tryAll runs as the other user. It prints what it was able to access, as a JSON list.
func tryAll(in io.Reader, out io.Writer) error {
	var t targets
	if err := json.NewDecoder(in).Decode(&t); err != nil {
		return err
	}
	got := []string{}
	for _, path := range t.Files {
		if data, err := os.ReadFile(path); err == nil {
			got = append(got, fmt.Sprintf("%s: %d bytes", path, len(data)))
		}
	}
	for _, path := range t.Sockets {
		if answer, ok := speak(path); ok {
			got = append(got, fmt.Sprintf("%s: %q", path, answer))
		}
	}
	for _, endpoint := range t.Endpoints {
		if f, ok := sayHello(endpoint, t.Secret); ok {
			got = append(got, fmt.Sprintf("%s: %s", endpoint, f))
		}
	}
	return json.NewEncoder(out).Encode(got)
}

// speak reports whether a socket accepts a handshake.
func speak(path string) (answer string, ok bool) {
	conn, err := net.DialTimeout("unix", path, 2*time.Second)
	if err != nil {
		return "", false
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(2 * time.Second))
	_, _ = io.WriteString(conn, `{"mcp":1,"protocolMin":1,"protocolMax":1,"version":"1","client":"other"}`+"\n")
	buf := make([]byte, 512)
	n, _ := conn.Read(buf)
	return string(buf[:n]), bytes.Contains(buf[:n], []byte(`"ok":true`))
}

// sayHello reports whether an app endpoint accepts the secret.
func sayHello(endpoint, secret string) (answer string, ok bool) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	ws, _, err := websocket.Dial(ctx, endpoint, nil) //nolint:bodyclose // the body need not be closed
	if err != nil {
		return "", false
	}
	defer ws.CloseNow()
	payload, _ := json.Marshal(glasses.Hello{Secret: secret, App: glasses.AppInfo{Name: "other"}})
	frame, _ := json.Marshal(glasses.Frame{V: glasses.Version, Type: glasses.TypeHello, ID: "hello", Payload: payload})
	if ws.Write(ctx, websocket.MessageText, frame) != nil {
		return "", false
	}
	_, data, err := ws.Read(ctx)
	return string(data), err == nil && bytes.Contains(data, []byte(glasses.TypeWelcome))
}
