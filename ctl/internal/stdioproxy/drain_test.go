package stdioproxy

import (
	"io"
	"strings"
	"testing"
	"time"
)

func TestEndOfInput_WaitsForAnswers(t *testing.T) {
	r := newRig(t)
	d := r.daemon()
	r.say(`{"id":1,"method":"tools/call"}`)
	d.get()
	r.say(`{"id":2,"method":"tools/call"}`)
	d.get()
	r.say(`{"method":"notifications/cancelled","params":{"requestId":2}}`)
	d.get()
	_ = r.in.Close()
	if _, err := d.r.ReadByte(); err != io.EOF {
		t.Fatalf("the daemon did not see the end of the input: %v", err)
	}
	d.put(`{"id":1,"result":{}}`)
	r.expect(`{"id":1,"result":{}}`)
	if err := <-r.done; err != nil {
		t.Fatal(err)
	}
}

// When the input ends, the daemon ends calls that wait for the user. service-mcp answers them with the reason and
// exits.
func TestEndOfInput_EndsWithConnection(t *testing.T) {
	r := newRig(t)
	d := r.daemon()
	r.say(`{"id":1,"method":"tools/call","params":{"name":"listen"}}`)
	d.get()
	_ = r.in.Close()
	if _, err := d.r.ReadByte(); err != io.EOF {
		t.Fatalf("the daemon did not see the end of the input: %v", err)
	}
	d.Close()
	if got := r.hear(); !strings.Contains(got, `"id":1`) || !strings.Contains(got, "input_closed") {
		t.Fatalf("response to the call: got %s, want input_closed", got)
	}
	if err := <-r.done; err != nil {
		t.Fatal(err)
	}
}

func TestEndOfInput_WaitIsBounded(t *testing.T) {
	r := newRig(t)
	d := r.daemon()
	r.say(`{"id":1,"method":"tools/call"}`)
	d.get()
	_ = r.in.Close()
	select {
	case <-r.done:
	case <-time.After(20 * time.Second):
		t.Fatal("the shim is still running 20 s after the end of its input")
	}
}
