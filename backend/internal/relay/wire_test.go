package relay_test

import (
	"bytes"
	"fmt"
	"net/http"
	"testing"

	"github.com/service-dev/service/backend/internal/relay"
)

// Bytes that arrive in the same packet as the handshake are not lost.
func TestHello_InHandshakePacket(t *testing.T) {
	n := startNode(t, newMemory(), relay.Options{})
	conn := dialRaw(t, n.url)
	payload := `{"v":1,"type":"hello","id":"h1","at":1,"payload":{"secret":"right","app":{"name":"Early"}}}`
	request := "GET /api/sessions/" + testID +
		"/app HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
	frame := append([]byte{0x81, 0x80 | byte(len(payload)), 0, 0, 0, 0}, payload...) // the mask is zero
	if _, err := conn.Write(append([]byte(request), frame...)); err != nil {
		t.Fatal(err)
	}
	all := make([]byte, 0, 8192)
	for !bytes.Contains(all, []byte(`"type":"welcome"`)) {
		piece := make([]byte, 4096)
		got, err := conn.Read(piece)
		if err != nil {
			t.Fatalf("read failed after %q: %v", all, err)
		}
		all = append(all, piece[:got]...)
	}
	if !bytes.HasPrefix(all, []byte(fmt.Sprintf("HTTP/1.1 %d", http.StatusSwitchingProtocols))) {
		t.Errorf("got response %q, want status 101", all)
	}
}
