package modelapi

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	ws "github.com/coder/websocket"

	"github.com/service-dev/service/backend/internal/assistant"
	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/credentials"
	"github.com/service-dev/service/backend/internal/db"
	"github.com/service-dev/service/backend/internal/dbtest"
	"github.com/service-dev/service/backend/internal/gateway"
	"github.com/service-dev/service/backend/internal/memory"
	"github.com/service-dev/service/backend/internal/projects"
	"github.com/service-dev/service/backend/internal/secret"
)

func newMemories(t *testing.T, d *db.DB, key string) *memory.Service {
	t.Helper()
	keys, err := credentials.ParseKeys(key)
	if err != nil {
		t.Fatal(err)
	}
	hash := secret.NewHasher([]byte("a key of thirty-two bytes or more"))
	return &memory.Service{Store: memory.NewStore(d), Hasher: hash, Now: time.Now, Log: slog.New(slog.DiscardHandler),
		Sealer: credentials.New(credentials.Options{Store: credentials.NewStore(d), Hasher: hash, Keys: keys})}
}

// namedKeys accepts every key, which is the ID of its account.
type namedKeys struct{ anyKey }

func (namedKeys) Authenticate(_ context.Context, key string) (projects.KeyOwner, error) {
	return projects.KeyOwner{AccountID: key, Project: "com.example.app", KeyID: key}, nil
}

const userSecret = "0123456789abcdef0123456789abcdef"

// memoryAPI is an API of two accounts, acc and bob, that remembers.
type memoryAPI struct {
	*world
	db *db.DB
}

func newMemoryAPI(t *testing.T) *memoryAPI {
	t.Helper()
	d := dbtest.Open(t)
	for _, id := range []string{"acc", "bob"} {
		dbtest.AddAccount(t, d, id)
		dbtest.AddProject(t, d, id, "com.example.app")
	}
	w := &memoryAPI{newWorldOf(t, namedKeys{}, nil, 0, gateway.Limits{}), d}
	catalogue, err := assistant.LoadCatalogue("")
	if err != nil {
		t.Fatal(err)
	}
	w.api.Gateway.Memory = newMemories(t, d, strings.Repeat("01", 32))
	w.api.Gateway.Settings = &assistant.Service{Store: assistant.NewStore(d), Catalogue: catalogue, Now: time.Now}
	return w
}

// request sends a request for a user, and returns the status and the answer.
func (w *memoryAPI) request(t *testing.T, method, path, account, body string, header ...string) (int, map[string]any) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, w.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+account)
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var answer map[string]any
	if err := json.NewDecoder(res.Body).Decode(&answer); err != nil && res.StatusCode != http.StatusNoContent {
		t.Fatal(err)
	}
	if failure, ok := answer["error"].(map[string]any); ok {
		answer = failure
	}
	return res.StatusCode, answer
}

func (w *memoryAPI) memory(t *testing.T, method, account, body string) (int, map[string]any) {
	t.Helper()
	return w.request(t, method, "/v1/memory", account, body, userHeader, userSecret, memoryHeader, agreed)
}

func TestMemory_Routes(t *testing.T) {
	w := newMemoryAPI(t)
	status, got := w.memory(t, "GET", "acc", "")
	if status != 200 || got["object"] != "memory" || got["enabled"] != true || got["why"] != nil || got["profile"] != "" ||
		got["updatedAt"] != nil || got["expiresAt"] != nil || len(got) != 6 {
		t.Errorf("before: got %d %v, want an enabled memory without a profile", status, got)
	}
	for _, method := range []string{"PUT", "GET"} {
		status, got = w.memory(t, method, "acc", `{"profile":"Drinks tea.\n"}`)
		updated, _ := got["updatedAt"].(string)
		expires, _ := got["expiresAt"].(string)
		at, err := time.Parse(time.RFC3339, updated)
		until, untilErr := time.Parse(time.RFC3339, expires)
		if status != 200 || got["profile"] != "Drinks tea.\n" || errors.Join(err, untilErr) != nil ||
			!until.Equal(at.AddDate(0, 0, 30)) {
			t.Errorf("%s: got %d %v, want the profile for 30 days", method, status, got)
		}
	}
	if _, got := w.memory(t, "GET", "bob", ""); got["profile"] != "" {
		t.Errorf("another account reads the profile: %v", got)
	}
	if _, got := w.request(t, "GET", "/v1/memory", "acc", "", userHeader, strings.Repeat("f", 32)); got["profile"] != "" {
		t.Errorf("another user reads the profile: %v", got)
	}
	for range 2 {
		if status, _ := w.request(t, "DELETE", "/v1/memory", "acc", "", userHeader, userSecret); status != 204 {
			t.Errorf("erasure: got %d, want 204", status)
		}
	}
	if _, got := w.memory(t, "GET", "acc", ""); got["profile"] != "" {
		t.Errorf("after the erasure: got %v", got)
	}
}

func TestMemory_Refusals(t *testing.T) {
	w := newMemoryAPI(t)
	long := `{"profile":"` + strings.Repeat("x", memory.MaxProfile+1) + `"}`
	chat := `{"model":"good","messages":[{"role":"user","content":"Hello"}]}`
	for _, c := range []struct {
		name, method, path, body string
		header                   []string
		status                   int
		code                     string
	}{
		{"no user", "GET", "/v1/memory", "", nil, 400, "invalid_value"},
		{"no user to erase", "DELETE", "/v1/memory", "", nil, 400, "invalid_value"},
		{"upper case", "GET", "/v1/memory", "", []string{userHeader, strings.ToUpper(userSecret)}, 400, "invalid_value"},
		{"two users", "GET", "/v1/memory", "", []string{userHeader, userSecret, userHeader, strings.Repeat("f", 32)}, 400,
			"invalid_value"},
		{"31 digits", "GET", "/v1/memory", "", []string{userHeader, userSecret[1:]}, 400, "invalid_value"},
		{"put without agreement", "PUT", "/v1/memory", `{"profile":"x"}`, []string{userHeader, userSecret}, 400,
			"invalid_value"},
		{"too long", "PUT", "/v1/memory", long, []string{userHeader, userSecret, memoryHeader, agreed}, 400, "invalid_value"},
		{"far too long", "PUT", "/v1/memory", `"` + strings.Repeat("x", maxMemoryBody) + `"`,
			[]string{userHeader, userSecret, memoryHeader, agreed}, 400, "invalid_value"},
		{"another field", "PUT", "/v1/memory", `{"profile":"x","more":1}`,
			[]string{userHeader, userSecret, memoryHeader, agreed}, 400, "invalid_json"},
		{"no profile", "PUT", "/v1/memory", `{}`, []string{userHeader, userSecret, memoryHeader, agreed}, 400, "invalid_json"},
		{"another word", "POST", "/v1/chat/completions", chat, []string{userHeader, userSecret, memoryHeader, "on"}, 400,
			"invalid_value"},
		{"an empty word", "POST", "/v1/chat/completions", chat, []string{userHeader, userSecret, memoryHeader, ""}, 400,
			"invalid_value"},
		{"memory without a user", "POST", "/v1/chat/completions", chat, []string{memoryHeader, agreed}, 400, "invalid_value"},
		{"realtime without a user", "GET", "/v1/realtime?model=voice", "", []string{memoryHeader, agreed}, 400,
			"invalid_value"},
		{"another method", "POST", "/v1/memory", `{}`, []string{userHeader, userSecret}, 405, "method_not_allowed"},
	} {
		status, got := w.request(t, c.method, c.path, "acc", c.body, c.header...)
		if status != c.status || got["code"] != c.code {
			t.Errorf("%s: got %d %v, want %d %s", c.name, status, got, c.status, c.code)
		}
	}
	if _, got := w.memory(t, "PUT", "acc", long); !strings.Contains(got["message"].(string), "4096") {
		t.Errorf("message: got %v, want the limit", got["message"])
	}
	// A user alone does not remember.
	if status, got := w.request(t, "POST", "/v1/chat/completions", "acc", chat, userHeader, userSecret); status != 200 {
		t.Errorf("a call with a user only: got %d %v", status, got)
	}
}

func TestMemory_RoutesWhenOff(t *testing.T) {
	w := newMemoryAPI(t)
	w.memory(t, "PUT", "acc", `{"profile":"Drinks tea."}`)
	none := assistant.NoMemory
	if _, _, err := w.api.Gateway.Settings.Change(t.Context(), "acc", "com.example.app",
		assistant.Change{MemoryModel: &none}, audit.Person()); err != nil {
		t.Fatal(err)
	}
	if status, got := w.memory(t, "GET", "acc", ""); status != 200 || got["enabled"] != false || got["why"] == nil ||
		got["profile"] != "Drinks tea." {
		t.Errorf("off: got %d %v, want the reason and the stored profile", status, got)
	}
	if status, got := w.memory(t, "PUT", "acc", `{"profile":"x"}`); status != 403 || got["code"] != "memory_off" {
		t.Errorf("off: got %d %v, want 403 memory_off", status, got)
	}
	w.api.Gateway.Memory = newMemories(t, w.db, "")
	if status, got := w.memory(t, "GET", "bob", ""); status != 200 || got["enabled"] != false || got["profile"] != "" {
		t.Errorf("without a key: got %d %v, want a reason", status, got)
	}
	if status, got := w.memory(t, "PUT", "bob", `{"profile":"x"}`); status != 403 || got["code"] != "memory_off" {
		t.Errorf("without a key: got %d %v, want 403 memory_off", status, got)
	}
	if status, _ := w.memory(t, "DELETE", "acc", ""); status != 204 {
		t.Errorf("erasure without a key: got %d, want 204", status)
	}
	w.api.Gateway.Memory = newMemories(t, w.db, strings.Repeat("01", 32))
	if _, got := w.memory(t, "GET", "acc", ""); got["profile"] != "" {
		t.Errorf("after the erasure: got %v", got)
	}
}

func TestMemory_Preflight(t *testing.T) {
	w := newMemoryAPI(t)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodOptions, w.url+"/v1/memory", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Access-Control-Request-Headers", "x-service-user, x-service-memory")
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if methods := res.Header.Get("Access-Control-Allow-Methods"); methods != "GET, POST, PUT, DELETE" ||
		res.Header.Get("Access-Control-Allow-Headers") != "x-service-user, x-service-memory" {
		t.Errorf("preflight: got %v, want the methods of the memory and its headers", res.Header)
	}
}

// TestMemory_Subprotocol opens realtime sessions as a page does.
func TestMemory_Subprotocol(t *testing.T) {
	w := newMemoryAPI(t)
	for _, c := range []struct {
		protocol, header string
		status           int
	}{
		{memoryProtocol + userSecret, "", 101},
		{memoryProtocol + userSecret, userSecret, 101},
		{memoryProtocol + userSecret, strings.Repeat("f", 32), 400},
		{memoryProtocol + "short", "", 400},
	} {
		header := http.Header{}
		if c.header != "" {
			header.Set(userHeader, c.header)
		}
		conn, res, err := ws.Dial(t.Context(), w.url+"/v1/realtime?model=voice", &ws.DialOptions{HTTPHeader: header,
			Subprotocols: []string{realtimeProtocol, tokenProtocol + "acc", c.protocol}})
		if conn != nil {
			_ = conn.CloseNow()
		}
		if res == nil || res.StatusCode != c.status || c.status == 101 && conn.Subprotocol() != realtimeProtocol {
			t.Errorf("%v: got response %v (error %v), want %d", c, res, err, c.status)
		}
	}
}
