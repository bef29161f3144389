package session

import (
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/daemon/internal/caller"
	"github.com/service-dev/service/internal/problem"
)

// knownPairs is a Pairs that remembers one pair.
type knownPairs struct {
	used  []backend.Pair
	panel backend.PairPanel
}

func (k *knownPairs) Last(string) backend.Pair { return backend.Pair{Name: "Even G1_27"} }
func (k *knownPairs) Named(_, name string) backend.Pair {
	return backend.Pair{Name: name, PairPanel: k.panel}
}

func (k *knownPairs) IsUncleared(_, _ string) bool { return false }

func (k *knownPairs) SetPanel(_, _ string, p backend.PairPanel) error { k.panel = p; return nil }
func (k *knownPairs) Use(_ string, p backend.Pair) error              { k.used = append(k.used, p); return nil }

func realTransports() *fakeTransports {
	return &fakeTransports{added: map[string]backend.Transport{
		RealDevice: {Name: RealDevice, DeviceModels: []string{"even_g1"}}, "own": {Name: "own"},
	}}
}

func connected(name string) backend.Hardware {
	return backend.Hardware{Pair: backend.Pair{Name: name}, Links: []backend.HardwareLink{{Key: "left", State: "up"}}}
}

// The connected pair can be named by a later request, and is remembered.
func TestConnectReal_FindsTheSessionOfTheConnectedPair(t *testing.T) {
	transports, pairs := realTransports(), &knownPairs{}
	m := newLocal(t, t.TempDir(), transports, nil)
	m.local.pairs = pairs
	request := RealRequest{Project: "a.b", Wait: time.Millisecond}
	first, err := m.ConnectReal(t.Context(), caller.Caller{}, request)
	if err != nil {
		t.Fatal(err)
	}
	open := transports.last().open
	if open.Pair.Name != "Even G1_27" {
		t.Errorf("got the pair %q, want the one used last", open.Pair.Name)
	}
	open.OnHardware(connected("Even G1_27"))
	if len(pairs.used) != 1 || pairs.used[0].Name != "Even G1_27" {
		t.Errorf("remembered %v, want the connected pair", pairs.used)
	}
	request.Name = "even g1_27"
	again, err := m.ConnectReal(t.Context(), caller.Caller{}, request)
	if err != nil || again.SessionID != first.SessionID || !IsConnected(&again.Hardware) {
		t.Errorf("by name: got session %s, %+v (error %v), want %s connected", again.SessionID, again.Hardware, err,
			first.SessionID)
	}
	request.Name = "Even G1_31"
	if other, err := m.ConnectReal(t.Context(), caller.Caller{}, request); err != nil ||
		other.SessionID == first.SessionID {
		t.Errorf("another pair: got session %s (error %v), want another session", other.SessionID, err)
	}
}

// Only the adapter of real glasses may report their state.
func TestSetHardware_IgnoresOtherAdapters(t *testing.T) {
	transports := realTransports()
	m := newLocal(t, t.TempDir(), transports, nil)
	for _, transport := range []string{"own", localSim} {
		start(t, m, LocalRequest{Project: "a.b", Transport: transport})
		if transports.last().open.OnHardware != nil {
			t.Errorf("transport %s may report hardware", transport)
		}
	}
}

// A session that looks for any glasses uses the pair that is requested next, and forgets the pairs it looked for.
func TestConnectReal_NamesTheSessionThatIsStillLooking(t *testing.T) {
	transports := realTransports()
	m := newLocal(t, t.TempDir(), transports, nil)
	m.local.pairs = &knownPairs{}
	request := RealRequest{Project: "a.b", Wait: time.Millisecond}
	first, err := m.ConnectReal(t.Context(), caller.Caller{}, request)
	if err != nil {
		t.Fatal(err)
	}
	looking := transports.last()
	if !looking.open.AnyPair {
		t.Error("the first request keeps to the pair used last, want any pair")
	}
	request.Name = "Even G1_31"
	again, err := m.ConnectReal(t.Context(), caller.Caller{}, request)
	if err != nil || again.SessionID != first.SessionID {
		t.Fatalf("by name: got session %s (error %v), want %s", again.SessionID, err, first.SessionID)
	}
	<-looking.gone
	open := awaitAttached(t, m, first.SessionID, transports, 2).open
	if open.Pair.Name != "Even G1_31" || open.AnyPair {
		t.Errorf("got the pair %q (any: %v), want only Even G1_31", open.Pair.Name, open.AnyPair)
	}
	request.Name = "Even G1_44"
	if other, err := m.ConnectReal(t.Context(), caller.Caller{}, request); err != nil ||
		other.SessionID == first.SessionID {
		t.Errorf("a third pair: got session %s (error %v), want another session", other.SessionID, err)
	}
}

// awaitAttached waits until a session has been attached to glasses n times.
func awaitAttached(t *testing.T, m *Manager, id string, transports *fakeTransports, n int) *fakeGlasses {
	t.Helper()
	for {
		s, err := m.local.ready(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if s.state.read().Attached >= n {
			return transports.last()
		}
		runtime.Gosched()
	}
}

// The user's description of a panel is sent to the glasses while they stay attached.
func TestSetPanel_TellsTheGlasses(t *testing.T) {
	transports, pairs := realTransports(), &knownPairs{}
	m := newLocal(t, t.TempDir(), transports, nil)
	m.local.pairs = pairs
	s, err := m.ConnectReal(t.Context(), caller.Caller{}, RealRequest{Project: "a.b", Wait: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	if err := m.SetPanel(s.SessionID, backend.PairPanel{}); err == nil {
		t.Error("set the panel of glasses that were never found")
	}
	g := transports.last()
	g.open.OnHardware(connected("Even G1_27"))
	if got := m.RealPairs(); len(got) != 1 || got[0] != (RealPair{s.SessionID, "even_g1", "Even G1_27", false}) {
		t.Errorf("got the connected pairs %+v, want Even G1_27", got)
	}
	want := backend.PairPanel{Rows: 135, IsChecked: true}
	if err := m.SetPanel(s.SessionID, want); err != nil || pairs.panel != want {
		t.Errorf("got %+v (error %v), want %+v stored", pairs.panel, err, want)
	}
	if got := g.panel(); got != want {
		t.Errorf("the glasses were told %+v, want %+v", got, want)
	}
	if len(m.RealPairs()) != 1 || transports.last() != g {
		t.Error("the glasses were attached again")
	}
}

// The user's answer on the glasses' page is stored once. The page's earlier answer does not overwrite an answer given
// on the terminal since then.
func TestSetHardware_StoresWhatThePageSaid(t *testing.T) {
	transports, pairs := realTransports(), &knownPairs{}
	m := newLocal(t, t.TempDir(), transports, nil)
	m.local.pairs = pairs
	s, err := m.ConnectReal(t.Context(), caller.Caller{}, RealRequest{Project: "a.b", Wait: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	state, report := connected("Even G1_27"), transports.last().open.OnHardware
	report(state)
	said := backend.PairPanel{Inverted: true, IsChecked: true}
	state.Answered = &said
	report(state)
	if pairs.panel != said {
		t.Errorf("stored %+v, want %+v", pairs.panel, said)
	}
	later := backend.PairPanel{Rows: 135, IsChecked: true}
	if err := m.SetPanel(s.SessionID, later); err != nil {
		t.Fatal(err)
	}
	state.Links[0].BatteryPercent = 50
	again := said
	state.Answered = &again
	report(state)
	if pairs.panel != later {
		t.Errorf("stored %+v, want %+v, which was said last", pairs.panel, later)
	}
}

// If the adapter chose another pair than requested, and more is known about that pair's panel, the adapter receives the
// settings now.
func TestConnectReal_TellsThePanelOfAnotherPair(t *testing.T) {
	transports, pairs := realTransports(), &knownPairs{panel: backend.PairPanel{Rows: 135}}
	m := newLocal(t, t.TempDir(), transports, nil)
	m.local.pairs = pairs
	request := RealRequest{Project: "a.b", Wait: time.Millisecond}
	if _, err := m.ConnectReal(t.Context(), caller.Caller{}, request); err != nil {
		t.Fatal(err)
	}
	g := transports.last()
	g.open.OnHardware(connected("Even G1_31"))
	if got := g.panel(); got.Rows != 135 {
		t.Errorf("the glasses were told %+v, want 135 rows", got)
	}
}

// A page that the user has to open is returned once, without waiting; then a call waits for the glasses.
func TestConnectReal_ReturnsANewPageOnce(t *testing.T) {
	transports := realTransports()
	m := newLocal(t, t.TempDir(), transports, nil)
	request := RealRequest{Project: "a.b", Via: ViaBrowser, Wait: time.Millisecond}
	first, err := m.ConnectReal(t.Context(), caller.Caller{}, request)
	if err != nil {
		t.Fatal(err)
	}
	open := transports.last().open
	if open.Via != ViaBrowser || !open.AnyPair {
		t.Errorf("got via %q, any pair %v, want the browser and any pair", open.Via, open.AnyPair)
	}
	waits := connected("")
	waits.Carrier, waits.ConnectURL, waits.Links[0].State = ViaBrowser, "http://127.0.0.1:1/#one", "down"
	waits.Problem = &problem.Error{Code: "not_chosen"}
	for _, url := range []string{"http://127.0.0.1:1/#one", "http://127.0.0.1:1/#two"} {
		waits.ConnectURL = url
		open.OnHardware(waits)
		request.Wait = time.Hour
		got, err := m.ConnectReal(t.Context(), caller.Caller{}, request)
		if err != nil || got.NewPage != url || got.SessionID != first.SessionID {
			t.Errorf("got %+v (error %v), want the page %s", got, err, url)
		}
		request.Wait = time.Millisecond
		if got, err = m.ConnectReal(t.Context(), caller.Caller{}, request); err != nil || got.NewPage != "" {
			t.Errorf("again: got the page %q (error %v), want none", got.NewPage, err)
		}
	}
	request.Via = ViaBlueZ
	if other, err := m.ConnectReal(t.Context(), caller.Caller{}, request); err != nil ||
		other.SessionID == first.SessionID {
		t.Errorf("another carrier: got session %s (error %v), want another session", other.SessionID, err)
	}
}

// An unknown carrier is refused with a list of the valid ones, and no session is opened for it.
func TestConnectReal_RefusesAnUnknownCarrier(t *testing.T) {
	transports := realTransports()
	m := newLocal(t, t.TempDir(), transports, nil)
	_, err := m.ConnectReal(t.Context(), caller.Caller{}, RealRequest{Project: "a.b", Via: "wire", Wait: time.Millisecond})
	var p *problem.Error
	if !errors.As(err, &p) || p.Code != problem.CodeInvalidRequest || !strings.Contains(p.FixHint, "bluez or browser") {
		t.Errorf("got %v, want a refusal that names the carriers", err)
	}
	if open := m.local.list(); len(open) > 0 {
		t.Errorf("got %d sessions, want none", len(open))
	}
}
