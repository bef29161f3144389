package session

import (
	"testing"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/glasses"
)

// After glasses restart, their panel is clear if the link was lost and restored before the restart.
func TestSnapshot_IsClearAfterALostLink(t *testing.T) {
	for _, test := range []struct {
		links   []string
		isClear bool
	}{
		{[]string{"lost"}, false}, {[]string{"lossy", "connected"}, false}, {[]string{"lost", "connected"}, true},
	} {
		tr := &fakeTransports{}
		m := newLocal(t, t.TempDir(), tr, nil)
		o := start(t, m, LocalRequest{Project: "com.example.app"})
		a, p := admit(t, m, o, nil)
		send(t, a, glasses.TypeDisplayShow, "a-1", hello)
		p.result(t, "a-1")
		for _, link := range test.links {
			payload := `{"state":"` + link + `"}`
			tr.last().emit(glasses.TypeLink, glasses.StateWord{State: link})
			p.wait(t, link, func(f glasses.Frame) bool { return f.Type == glasses.TypeLink && string(f.Payload) == payload })
		}
		_ = tr.last().Close()
		p.wait(t, "the link to be lost", func(f glasses.Frame) bool {
			return f.Type == glasses.TypeLink && string(f.Payload) == `{"state":"disconnected"}`
		})
		if _, err := m.Control(t.Context(), backend.Target{}, o.SessionID, glasses.SimState, nil, nil); err != nil {
			t.Fatal(err)
		}
		tr.mu.Lock()
		open := tr.opened[len(tr.opened)-1]
		tr.mu.Unlock()
		if isClear := open.Snapshot.View.Tree == nil; isClear != test.isClear {
			t.Errorf("link states %v: panel clear %v, want the opposite", test.links, isClear)
		}
	}
}
