package appserver

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/daemon/internal/caller"
	"github.com/service-dev/service/daemon/internal/session"
	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/internal/clientio/local"
)

const (
	ann = "0123456789abcdef0123456789abcdef"
	ben = "f123456789abcdef0123456789abcdef"

	meeting = `{"rules":[
		{"when":{"contains":"I am Ann"},"reply":{"text":"Hello Ann.","remember":"Name: Ann"}},
		{"when":{"contains":"I like tea"},"reply":{"text":"Noted.","remember":"Likes tea"}},
		{"when":{"noMemory":true},"reply":{"text":"We have not met."}},
		{"when":{"memory":"name: ann"},"reply":{"text":"You are Ann."}}]}`
)

// remembering opens a new session of a project with the script meeting and returns its gateway.
func remembering(t *testing.T, m *session.Manager, project string) (session.Opened, glasses.Gateway) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "script.json")
	if err := os.WriteFile(path, []byte(meeting), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := m.StartLocal(t.Context(), caller.Caller{IO: local.New()},
		session.LocalRequest{Project: project, AssistantScript: path, Fresh: true})
	if err != nil {
		t.Fatal(err)
	}
	return s, welcomeGateway(t, s)
}

func agreed(user string) []string { return []string{userHeader, user, memoryHeader, wearerAgreed} }

// wantAnswer asks with headers and compares the answer's text.
func wantAnswer(t *testing.T, g glasses.Gateway, said, want string, header ...string) {
	t.Helper()
	status, _, text := ask(t, g, "POST", "/chat/completions", says(said, ""), header...)
	if status != 200 || !strings.Contains(text, `"content":"`+want+`"`) {
		t.Errorf("%s: got %d %.300s, want %s", said, status, text, want)
	}
}

func wantProfile(t *testing.T, g glasses.Gateway, user, want string) {
	t.Helper()
	status, _, text := ask(t, g, "GET", "/memory", "", userHeader, user)
	var got memoryAnswer
	if err := json.Unmarshal([]byte(text), &got); err != nil || status != 200 || got.Profile != want || !got.Enabled ||
		got.Object != "memory" || (got.ExpiresAt == nil) != (want == "") || (got.UpdatedAt == nil) != (want == "") {
		t.Errorf("profile: got %d %.300s, want %.100q", status, text, want)
	}
}

func TestMemory_IsSharedBySessionsOfOneUserAndProject(t *testing.T) {
	dir := t.TempDir()
	m, _, stop := serve(t, dir, Options{})
	_, first := remembering(t, m, "com.example.app")
	wantAnswer(t, first, "Who am I?", "We have not met.", agreed(ann)...)
	wantAnswer(t, first, "I am Ann", "Hello Ann.", agreed(ann)...)
	wantAnswer(t, first, "I like tea", "Noted.") // not remembered without the headers
	wantAnswer(t, first, "I like tea", "Noted.", userHeader, ann)
	wantAnswer(t, first, "Who am I?", "We have not met.", userHeader, ann)
	wantProfile(t, first, ann, "Name: Ann")
	_, second := remembering(t, m, "com.example.app")
	wantAnswer(t, second, "Who am I?", "You are Ann.", agreed(ann)...)
	wantAnswer(t, second, "Who am I?", "We have not met.", agreed(ben)...)
	_, other := remembering(t, m, "com.example.other")
	wantAnswer(t, other, "Who am I?", "We have not met.", agreed(ann)...)
	stop()

	m, _, _ = serve(t, dir, Options{})
	_, again := remembering(t, m, "com.example.app")
	wantProfile(t, again, ann, "Name: Ann")
	if status, _, text := ask(t, again, "DELETE", "/memory", "", userHeader, ann); status != 204 || text != "" {
		t.Errorf("erase: got %d %s, want 204", status, text)
	}
	wantProfile(t, again, ann, "")
	wantAnswer(t, again, "Who am I?", "We have not met.", agreed(ann)...)
	if status, _, _ := ask(t, again, "DELETE", "/memory", "", userHeader, ben); status != 204 {
		t.Errorf("erase a profile that does not exist: got %d, want 204", status)
	}
}

// A session with a private profile, which a scenario drives, is independent of the stored profiles.
func TestMemory_IsPrivateToASessionOfAScenario(t *testing.T) {
	m, _, _ := serve(t, t.TempDir(), Options{})
	_, free := remembering(t, m, "com.example.app")
	wantAnswer(t, free, "I like tea", "Noted.", agreed(ann)...)
	s, g := remembering(t, m, "com.example.app")
	if _, err := m.UseScenario(t.Context(), backend.Target{}, s.SessionID, nil, new("Name: Ann")); err != nil {
		t.Fatal(err)
	}
	wantAnswer(t, g, "Who am I?", "You are Ann.", agreed(ben)...)
	wantAnswer(t, g, "I like tea", "Noted.", agreed(ben)...)
	if text, err := m.WearerMemory(s.SessionID); err != nil || text != "Name: Ann\nLikes tea" {
		t.Errorf("got %q %v", text, err)
	}
	wantProfile(t, free, ann, "Likes tea")
	wantProfile(t, free, ben, "")
	if text, err := m.WearerMemory("ses_abcdefgh"); err == nil {
		t.Errorf("a browser session has the memory %q", text)
	}
}

func TestMemory_StoresTheAppsOwnSummary(t *testing.T) {
	m, _, _ := serve(t, t.TempDir(), Options{})
	_, g := remembering(t, m, "com.example.app")
	put := func(profile string, header ...string) (int, string) {
		body, err := json.Marshal(map[string]string{"profile": profile})
		if err != nil {
			t.Fatal(err)
		}
		status, _, text := ask(t, g, "PUT", "/memory", string(body), header...)
		return status, text
	}
	full := strings.Repeat("ä", 2048)
	if status, text := put(full, agreed(ann)...); status != 200 || !strings.Contains(text, full) {
		t.Errorf("4096 bytes: got %d %.200s", status, text)
	}
	wantProfile(t, g, ann, full)
	for name, c := range map[string]struct {
		profile string
		header  []string
		want    string
	}{
		"one byte more":     {full + "a", agreed(ann), "4097 bytes long, over the limit of 4096"},
		"control character": {"a\x00", agreed(ann), "control character U+0000"},
		"not agreed":        {"a", []string{userHeader, ann}, "X-Service-Memory is missing"},
	} {
		if status, text := put(c.profile, c.header...); status != 400 || !strings.Contains(text, c.want) ||
			!strings.Contains(text, `"code":"invalid_value"`) {
			t.Errorf("%s: got %d %.300s, want %s", name, status, text, c.want)
		}
	}
	if status, _, text := ask(t, g, "PUT", "/memory", `{"summary":"a"}`, agreed(ann)...); status != 400 {
		t.Errorf("without profile: got %d %s, want 400", status, text)
	}
	wantProfile(t, g, ann, full)
	if status, text := put("", agreed(ann)...); status != 200 {
		t.Errorf("empty: got %d %s, want 200", status, text)
	}
	wantProfile(t, g, ann, "")
}

func TestMemory_RefusesMalformedHeaders(t *testing.T) {
	m, _, _ := serve(t, t.TempDir(), Options{})
	_, g := remembering(t, m, "com.example.app")
	for name, header := range map[string][]string{
		"another agreement":  {userHeader, ann, memoryHeader, "on"},
		"agreement alone":    {memoryHeader, wearerAgreed},
		"upper case":         {userHeader, strings.ToUpper(ann), memoryHeader, wearerAgreed},
		"too short":          {userHeader, ann[1:], memoryHeader, wearerAgreed},
		"malformed user":     {userHeader, "ann"},
		"agreement, no user": {userHeader, "", memoryHeader, wearerAgreed},
		"empty agreement":    {userHeader, ann, memoryHeader, ""},
	} {
		status, _, text := ask(t, g, "POST", "/chat/completions", says("Who am I?", ""), header...)
		if status != 400 || !strings.Contains(text, `"code":"invalid_value"`) {
			t.Errorf("%s: got %d %s, want 400", name, status, text)
		}
	}
	for _, method := range []string{"GET", "DELETE"} {
		if status, _, text := ask(t, g, method, "/memory", "", userHeader, "ann"); status != 400 {
			t.Errorf("%s: got %d %s, want 400", method, status, text)
		}
	}
	if _, h, _ := ask(t, g, "OPTIONS", "/memory", "", "Origin", "http://localhost:1"); !strings.Contains(
		h.Get("Access-Control-Allow-Methods"), "DELETE") {
		t.Errorf("preflight: %v", h)
	}
}

// converse opens a conversation that sends text, says one sentence, closes, and returns the answer.
func converse(t *testing.T, m *session.Manager, s session.Opened, g glasses.Gateway, o *websocket.DialOptions,
	said string,
) string {
	t.Helper()
	o.Subprotocols = append(o.Subprotocols, realtimeProtocol, tokenProtocol+g.Token)
	c, _, err := websocket.Dial(t.Context(), strings.Replace(g.URL, "http", "ws", 1)+"/realtime", o)
	if err != nil {
		t.Fatal(err)
	}
	defer c.CloseNow()
	tell(t, c, `{"type":"session.update","session":{"type":"realtime","output_modalities":["text"]}}`,
		strings.Replace(milkTurn, "buy milk", said, 1), `{"type":"response.create"}`)
	text, _ := receive(t, c, "response.output_text.done")["text"].(string)
	receive(t, c, "response.done")
	page, err := m.Wait(t.Context(), backend.Target{}, s.SessionID, 0, session.MaxLimit, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Close(websocket.StatusNormalClosure, ""); err != nil {
		t.Fatal(err)
	}
	for since := page.Next; ; since = page.Next {
		if page, err = m.Wait(t.Context(), backend.Target{}, s.SessionID, since, session.MaxLimit, time.Minute); err != nil {
			t.Fatal(err)
		}
		for _, row := range page.Events {
			if strings.Contains(string(row), glasses.RowAssistantEnded) {
				return text
			}
		}
	}
}

// A conversation that the end of the daemon cuts is remembered.
func TestMemory_SurvivesTheEndOfTheDaemon(t *testing.T) {
	dir := t.TempDir()
	m, _, stop := serve(t, dir, Options{})
	_, g := remembering(t, m, "com.example.app")
	o := &websocket.DialOptions{Subprotocols: []string{realtimeProtocol, tokenProtocol + g.Token,
		memoryProtocol + wearerAgreed + "." + ann}}
	c, _, err := websocket.Dial(t.Context(), strings.Replace(g.URL, "http", "ws", 1)+"/realtime", o)
	if err != nil {
		t.Fatal(err)
	}
	defer c.CloseNow()
	c.SetReadLimit(1 << 20)
	tell(t, c, strings.Replace(milkTurn, "buy milk", "I am Ann", 1), `{"type":"response.create"}`)
	receive(t, c, "response.output_audio.delta")
	stop()
	m, _, _ = serve(t, dir, Options{})
	_, again := remembering(t, m, "com.example.app")
	wantProfile(t, again, ann, "Name: Ann")
}

func TestMemory_OfRealtimeConversations(t *testing.T) {
	m, _, _ := serve(t, t.TempDir(), Options{})
	s, g := remembering(t, m, "com.example.app")
	header := http.Header{userHeader: {ann}, memoryHeader: {wearerAgreed}}
	if got := converse(t, m, s, g, &websocket.DialOptions{HTTPHeader: header}, "I am Ann"); got != "Hello Ann." {
		t.Errorf("got %q", got)
	}
	wantProfile(t, g, ann, "Name: Ann")
	page := &websocket.DialOptions{Subprotocols: []string{memoryProtocol + wearerAgreed + "." + ann}}
	if got := converse(t, m, s, g, page, "I like tea"); got != "Noted." {
		t.Errorf("got %q", got)
	}
	wantProfile(t, g, ann, "Name: Ann\nLikes tea")
	if got := converse(t, m, s, g, &websocket.DialOptions{}, "Who am I?"); got != "We have not met." {
		t.Errorf("a conversation that does not remember: got %q", got)
	}
	valid := memoryProtocol + wearerAgreed + "."
	for _, wrong := range [][]string{{"service-memory.on." + ann}, {"service-memory.wearer-agreed"}, {"service-memory."},
		{valid + ann, valid + ben}, {valid + ann + "." + ann}} {
		o := &websocket.DialOptions{Subprotocols: append([]string{realtimeProtocol, tokenProtocol + g.Token}, wrong...)}
		c, res, err := websocket.Dial(t.Context(), strings.Replace(g.URL, "http", "ws", 1)+"/realtime", o)
		if err == nil {
			c.CloseNow()
		}
		if res == nil || res.StatusCode != 400 {
			t.Errorf("subprotocol %s: got %v, want status 400", wrong, err)
		}
	}
}

// All routes refuse the same headers, and only WebSockets read the subprotocol.
func TestMemory_HeadersAreTheSameForAllRoutes(t *testing.T) {
	m, _, _ := serve(t, t.TempDir(), Options{})
	_, g := remembering(t, m, "com.example.app")
	for _, route := range []struct{ method, path, body string }{
		{"GET", "/memory", ""}, {"DELETE", "/memory", ""}, {"PUT", "/memory", `{"profile":"a"}`},
		{"POST", "/chat/completions", says("Hello", "")},
	} {
		for _, header := range [][]string{{userHeader, ann, memoryHeader, "yes"}, {memoryHeader, wearerAgreed},
			{userHeader, ann + "," + ben, memoryHeader, wearerAgreed}} {
			status, _, text := ask(t, g, route.method, route.path, route.body, header...)
			if status != 400 || !strings.Contains(text, "invalid_value") {
				t.Errorf("%s %s with %q: got %d %.200s, want invalid_value", route.method, route.path, header, status, text)
			}
		}
	}
	protocol := []string{"Sec-WebSocket-Protocol", memoryProtocol + wearerAgreed + "." + ann}
	wantAnswer(t, g, "I am Ann", "Hello Ann.", protocol...)
	wantProfile(t, g, ann, "")
}
