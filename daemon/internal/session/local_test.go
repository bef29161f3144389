package session

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/daemon/internal/caller"
	"github.com/service-dev/service/proto/glasses"
)

func rowsOf(t *testing.T, m *Manager, id string) []glasses.Event {
	t.Helper()
	page, err := m.Since(t.Context(), backend.Target{}, id, 0, MaxLimit)
	if err != nil {
		t.Fatal(err)
	}
	rows := make([]glasses.Event, 0, len(page.Events))
	for _, raw := range page.Events {
		var e glasses.Event
		if err := json.Unmarshal(raw, &e); err != nil {
			t.Fatal(err)
		}
		rows = append(rows, e)
	}
	return rows
}

func types(rows []glasses.Event) string {
	var words []string
	for _, e := range rows {
		words = append(words, e.Type)
	}
	return strings.Join(words, " ")
}

func TestStartLocalIsGetOrCreate(t *testing.T) {
	m := newLocal(t, t.TempDir(), &fakeTransports{}, nil)
	first := start(t, m, LocalRequest{Project: "com.example.app"})
	if !first.Created || !IsLocal(first.SessionID) || !localPattern.MatchString(first.SessionID) || first.Transport != backend.TransportLocal ||
		first.Clock != backend.ClockReal || first.DeviceModel != glasses.DefaultDeviceModel || !strings.HasSuffix(first.AppEndpoint, first.SessionID+"/app") {
		t.Errorf("opened %+v", first)
	}
	secret, err := os.ReadFile(first.AppTokenFile)
	if err != nil || !strings.HasPrefix(string(secret), "sst_") {
		t.Fatalf("secret %q, %v", secret, err)
	}
	if again := start(t, m, LocalRequest{Project: "com.example.app"}); again.Created || again.SessionID != first.SessionID {
		t.Errorf("again: %+v", again)
	}
	if fresh := start(t, m, LocalRequest{Project: "com.example.app", Fresh: true, Clock: "virtual"}); !fresh.Created || fresh.Clock != "virtual" {
		t.Errorf("fresh: %+v", fresh)
	}
	if got := types(rowsOf(t, m, first.SessionID)); got != "glasses.attached" {
		t.Errorf("rows %s", got)
	}
	closed, err := m.Close(t.Context(), backend.Target{}, first.SessionID)
	if err != nil || closed.State != "closed" {
		t.Errorf("closed %+v, %v", closed, err)
	}
	if again, err := m.Close(t.Context(), backend.Target{}, first.SessionID); err != nil || again.State != "closed" {
		t.Errorf("closed again %+v, %v", again, err)
	}
	if list, _ := m.List(t.Context(), backend.Target{}); len(list) != 1 {
		t.Errorf("list %+v", list)
	}
}

func TestStartLocalRefuses(t *testing.T) {
	m := newLocal(t, t.TempDir(), &fakeTransports{}, nil)
	for name, req := range map[string]LocalRequest{
		"clock": {Clock: "lunar"}, "model": {DeviceModel: "monocle"}, "fixtures": {FixturesDir: "/no/such/folder"}, "project": {Project: "x"},
	} {
		if _, err := m.StartLocal(t.Context(), caller.Caller{}, req); code(err) != CodeInvalidArguments {
			t.Errorf("%s: %v", name, err)
		}
	}
	tr := &fakeTransports{err: &backend.Problem{Code: backend.CodeAdapterUnavailable, Message: "no adapter"}}
	m = newLocal(t, t.TempDir(), tr, nil)
	if _, err := m.StartLocal(t.Context(), caller.Caller{}, LocalRequest{}); code(err) != backend.CodeAdapterUnavailable {
		t.Errorf("without adapter: %v", err)
	}
	if list, _ := m.List(t.Context(), backend.Target{}); len(list) != 0 {
		t.Errorf("left over: %+v", list)
	}
}
