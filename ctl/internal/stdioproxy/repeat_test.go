package stdioproxy

import (
	"fmt"
	"maps"
	"strings"
	"testing"
)

// A read-only call and a request for a list are repeated once, with the next daemon.
func TestRepeat_ReadsInFlightOnce(t *testing.T) {
	r := newRig(t)
	d := r.daemon()
	call, write, list := fmt.Sprintf(look, 1), `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"write"}}`,
		`{"jsonrpc":"2.0","id":3,"method":"tools/list"}`
	for _, line := range []string{call, write, list} {
		r.say(line)
		d.expect(line)
	}
	d.Close()
	if got := r.hear(); !strings.Contains(got, `"id":2`) || !strings.Contains(got, "daemon_restarted") {
		t.Fatalf("response to the call with side effects: got %s, want daemon_restarted", got)
	}
	d = r.daemon()
	got := map[string]bool{d.get(): true, d.get(): true}
	if !got[call] || !got[list] {
		t.Fatalf("the next daemon received %v, want both requests", got)
	}
	d.put(`{"jsonrpc":"2.0","id":3,"result":{}}`)
	r.expect(`{"jsonrpc":"2.0","id":3,"result":{}}`)
	d.Close() // the second failure is reported
	if got := r.hear(); !strings.Contains(got, `"id":1`) || !strings.Contains(got, "daemon_restarted") {
		t.Fatalf("response after two daemons: got %s, want daemon_restarted", got)
	}
}

// Requests sent before the daemon accepted the handshake are repeated as well, except calls that have been cancelled in
// the meantime.
func TestRepeat_NotAfterCancel(t *testing.T) {
	r := newRig(t)
	r.until("the proxy has connected", r.linked)
	r.say(fmt.Sprintf(look, 1)) // before the response to the handshake
	d := r.daemon()
	d.expect(fmt.Sprintf(look, 1))
	r.say(fmt.Sprintf(look, 2))
	d.expect(fmt.Sprintf(look, 2))
	r.say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`)
	d.get()
	d.Close()
	d = r.daemon()
	d.expect(fmt.Sprintf(look, 1))
	r.say(`{"method":"after"}`)
	d.expect(`{"method":"after"}`)
}

// Calls that share an id are not repeated, because only one of them would get a response. Each fails with
// daemon_restarted.
func TestRepeat_NotWithSharedID(t *testing.T) {
	r := newRig(t)
	d := r.daemon()
	for range 2 {
		r.say(fmt.Sprintf(look, 1))
		d.expect(fmt.Sprintf(look, 1))
	}
	d.Close()
	for range 2 {
		if got := r.hear(); !strings.Contains(got, `"id":1`) || !strings.Contains(got, "daemon_restarted") {
			t.Fatalf("got response %s, want daemon_restarted", got)
		}
	}
}

func TestRepeat_KeepsBoundedSize(t *testing.T) {
	l := newConnection(nil)
	l.admit([]byte(`{"ok":true,"repeatable":["look"]}`))
	padding := strings.Repeat(" ", maxRepeated-200)
	for id := range 2 * maxRepeatedSize / maxRepeated {
		line := []byte(fmt.Sprintf(look, id) + padding)
		m := scan(line)
		l.expect(m, false)
		l.keepForRepeat(m, line)
	}
	held := 0
	for _, call := range l.inflight {
		held += len(call.line)
	}
	if held > maxRepeatedSize || held < maxRepeatedSize/2 || held != l.kept {
		t.Errorf("lines of %d bytes are kept, but kept is %d", held, l.kept)
	}
	// Each id is reused before its call has a response.
	for range maxRepeatedSize / maxRepeated {
		line := []byte(fmt.Sprintf(look, 0))
		m := scan(line)
		l.expect(m, false)
		l.keepForRepeat(m, line)
	}
	for id, call := range maps.Clone(l.inflight) {
		for range call.uses {
			l.answered(id)
		}
	}
	if l.kept != 0 {
		t.Errorf("after all responses kept is %d, want 0", l.kept)
	}
}
