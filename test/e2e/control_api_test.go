//go:build unix

package e2e

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"testing"
	"time"
)

// The documented request, with curl if it is installed, gets the status that servicectl prints.
func TestControlAPI_DocumentedRequest(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "pages", "state-files.md"))
	if err != nil {
		t.Fatal(err)
	}
	command := regexp.MustCompile(`curl --unix-socket ~/.service/run/control.sock (http://\S+)`).FindSubmatch(page)
	if command == nil {
		t.Fatal("the page has no request")
	}
	w := newWorld(t, "")
	w.ctl("whoami")
	socket, url := filepath.Join(w.dir, "run", "control.sock"), string(command[1])
	var got, want map[string]any
	if err := json.Unmarshal(requestOver(t, socket, url), &got); err != nil {
		t.Fatal(err)
	}
	out, errs, exit := w.ctl("status", "--json")
	if exit != 0 || json.Unmarshal([]byte(out), &want) != nil {
		t.Fatalf("status: exit %d: %s%s", exit, out, errs)
	}
	for name, value := range got {
		if name != "uptimeMs" && !reflect.DeepEqual(value, want[name]) {
			t.Errorf("%s is %v, but servicectl prints %v", name, value, want[name])
		}
	}
	if len(got) < 15 {
		t.Errorf("the answer has only the fields %v", got)
	}
}

// requestOver makes a GET request over a socket and returns the answer.
func requestOver(t *testing.T, socket, url string) []byte {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if curl, err := exec.LookPath("curl"); err == nil {
		out, err := exec.CommandContext(ctx, curl, "-sS", "--unix-socket", socket, url).Output()
		if err != nil {
			t.Fatalf("curl: %v", err)
		}
		return out
	}
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}}
	defer transport.CloseIdleConnections()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := transport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
