package host

import (
	"strings"
	"testing"

	"github.com/service-dev/service/glasses"
)

func TestControls_DeliverEachResultOnce(t *testing.T) {
	var c Controls[int]
	if c.Take("ctl-1") != nil {
		t.Error("a caller waits although there is none")
	}
	first, second := c.Expect("ctl-1"), c.Expect("ctl-2")
	c.Take("ctl-1") <- 7
	if c.Take("ctl-1") != nil {
		t.Error("the same result can be delivered twice")
	}
	c.Close()
	if got := <-first; got != 7 {
		t.Errorf("received %d, want 7", got)
	}
	if _, ok := <-second; ok {
		t.Error("received a result from glasses that are gone")
	}
	if c.Take("ctl-2") != nil {
		t.Error("a caller still waits for glasses that are gone")
	}
}

func TestControlFrame_RefusesTooLongPayload(t *testing.T) {
	long := []byte(`{"a":"` + strings.Repeat("a", glasses.MaxFrame) + `"}`)
	if _, err := ControlFrame(glasses.SimState, NewControlID(), 0, long, nil); err == nil {
		t.Error("ControlFrame accepted a payload that no glasses can read")
	}
	m, err := ControlFrame(glasses.SimState, NewControlID(), 5, []byte(`{}`), nil)
	if err != nil {
		t.Fatal(err)
	}
	if f, err := glasses.Parse(m.Data); err != nil || f.At != 5 || !IsControlID(f.ID) {
		t.Errorf("frame %+v, error %v", f, err)
	}
}
