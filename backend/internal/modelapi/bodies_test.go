package modelapi

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/service-dev/service/backend/internal/gateway"
)

// Bodies that apps do not finish sending use a limited number of buffers. Small calls are served meanwhile.
func TestCall_LimitsLargeBodies(t *testing.T) {
	w := newWorld(t, 0, gateway.Limits{})
	address := strings.TrimPrefix(w.url, "http://")
	const head = "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer svp_x\r\nContent-Type: application/json\r\n"

	for n := range largeBodiesEach {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		length := "Content-Length: 1000000\r\n"
		if n%2 == 0 {
			length = "Transfer-Encoding: chunked\r\n"
		}
		if _, err := io.WriteString(conn, head+length+"\r\n"); err != nil {
			t.Fatal(err)
		}
	}
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		running, _ := w.api.bodies.Used()
		if running == largeBodiesEach {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("%d bodies are being received, want %d", running, largeBodiesEach)
		}
	}
	for body, want := range map[string]int{
		fmt.Sprintf(`{"model":"good","messages":[{"role":"user","content":"%s"}]}`, strings.Repeat("x", largeBody)): http.StatusServiceUnavailable,
		`{"model":"good","messages":[{"role":"user","content":"Hi"}]}`:                                              http.StatusOK,
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.url+"/v1/chat/completions", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer svp_x")
		r.Header.Set("Content-Type", "application/json")
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("a body of %d bytes: got status %d, want %d: %s", len(body), resp.StatusCode, want, text)
		}
	}
}
