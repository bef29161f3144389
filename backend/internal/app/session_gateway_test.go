package app

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/internal/problem"
	"github.com/service-dev/service/proto/backendapi"
)

const milkScript = `{"rules":[
	{"when":{"contains":"milk"},"reply":{"toolCall":{"name":"add_item","arguments":{"item":"milk"}}}},
	{"when":{"toolResult":"add_item"},"reply":{"text":"It is on the list."}},
	{"when":{"contains":"bread"},"reply":{"error":{"code":"no_credit"},"delayMs":5}}]}`

const askForMilk = `{"model":"assistant","messages":[{"role":"user","content":"We need milk"}],
	"tools":[{"type":"function","function":{"name":"add_item","parameters":{"type":"object"}}}]`

// sessionApp is an app attached to a session.
type sessionApp struct {
	t  *testing.T
	ws *websocket.Conn
}

// attachSession attaches an app and returns its welcome. more is added to the app's hello.
func attachSession(
	t *testing.T, b *backendUnderTest, s backendapi.Session, more string,
) (*sessionApp, glasses.Welcome) {
	t.Helper()
	var minted backendapi.SessionSecret
	b.call("POST", backendapi.PathSessions+"/"+s.SessionID+"/secrets", "", &minted)
	ws, _, err := websocket.Dial(t.Context(), s.AppEndpoint, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ws.CloseNow() })
	hello := `{"v":1,"type":"hello","id":"h1","at":1,"payload":{"secret":"` + minted.AppSecret + `","app":{"name":"App"}` +
		more + `}}`
	if err := ws.Write(t.Context(), websocket.MessageText, []byte(hello)); err != nil {
		t.Fatal(err)
	}
	a, welcome := &sessionApp{t, ws}, glasses.Welcome{}
	a.next(glasses.TypeWelcome, &welcome)
	return a, welcome
}

// next reads frames until one has the given type, and decodes its payload.
func (a *sessionApp) next(typ string, into any) {
	a.t.Helper()
	ctx, cancel := context.WithTimeout(a.t.Context(), time.Minute)
	defer cancel()
	for {
		_, data, err := a.ws.Read(ctx)
		if err != nil {
			a.t.Fatal(err)
		}
		f, err := glasses.Parse(data)
		if err == nil && f.Type == typ {
			if err := json.Unmarshal(f.Payload, into); err != nil {
				a.t.Fatal(err)
			}
			return
		}
	}
}

// toolRows waits until a session's event log has count rows about tools, and returns their payloads. It fails the test
// if they do not arrive in time.
func toolRows(b *backendUnderTest, id string, count int) (rows []string) {
	b.t.Helper()
	for since := int64(0); len(rows) < count; {
		var page backendapi.EventPage
		b.call("GET", fmt.Sprintf("%s/%s/events?since=%d&waitMs=20000", backendapi.PathSessions, id, since), "", &page)
		if len(page.Events) == 0 {
			break
		}
		since = page.Next
		for _, data := range page.Events {
			var e glasses.Event
			if err := json.Unmarshal(data, &e); err != nil {
				b.t.Fatal(err)
			}
			if e.Type == glasses.RowToolCalled && e.Sender == glasses.SenderService {
				rows = append(rows, string(e.Payload))
			}
		}
	}
	return rows
}

func TestSessionGateway_AnswersByScript(t *testing.T) {
	eachGateway(t, func(t *testing.T, w *gatewayWorld) {
		var s backendapi.Session
		w.call("POST", backendapi.PathSessions, `{"project":"com.example.hello"}`, &s)
		script := backendapi.PathSessions + "/" + s.SessionID + backendapi.PathAssistantScript
		if status := w.call("POST", script, milkScript, nil); status != http.StatusOK {
			t.Fatalf("set script: got status %d, want 200", status)
		}
		_, welcome := attachSession(t, w.backendUnderTest, s, "")
		if welcome.Gateway == nil || welcome.Gateway.URL != w.url+"/v1" {
			t.Fatalf("got gateway %+v in the welcome, want its URL", welcome.Gateway)
		}
		project := w.key
		w.key = welcome.Gateway.Token
		for _, more := range []string{"}", `,"stream":true}`} {
			if res, body := w.ask("POST", "/v1/chat/completions", askForMilk+more); res.StatusCode != http.StatusOK ||
				!strings.Contains(body, `"model":"script"`) || !strings.Contains(body, "add_item") {
				t.Errorf("got %d %s, want 200 and a call of add_item by the script", res.StatusCode, body)
			}
			if row := w.last(); row.Model != "script" || row.Source != "script" || row.Outcome != "ok" || row.MicroUSD != 0 {
				t.Errorf("got call %+v, want one by the script at no charge", row)
			}
		}
		want := `{"name":"add_item","arguments":{"item":"milk"}}`
		if rows := toolRows(w.backendUnderTest, s.SessionID, 2); len(rows) != 2 || rows[0] != want || rows[1] != want {
			t.Errorf("got tool rows %q, want two equal ones", rows)
		}
		for body, code := range map[string]string{
			`{"model":"assistant","messages":[{"role":"user","content":"bread"}]}`:              "no_credit",
			`{"model":"script","messages":[{"role":"user","content":"tea"}]}`:                   "script_no_rule",
			`{"model":"assistant","messages":[{"role":"user","content":"milk"}],"n":3}`:         "unsupported_parameter",
			`{"model":"assistant","messages":[{"role":"user","content":"milk"}],"tools":[]}`:    "script_tool_not_offered",
			`{"model":"assistant","messages":[{"role":"user","content":"milk","role":"user"}]}`: "invalid_json",
		} {
			if res, answer := w.ask("POST", "/v1/chat/completions", body); errorOf(t, answer)["code"] != code ||
				res.StatusCode/100 != 4 {
				t.Errorf("%s: got %d %s, want the refusal in the table", body, res.StatusCode, answer)
			}
		}
		if _, body := w.ask("GET", "/v1/models/assistant", ""); !strings.Contains(body, `"resolves":"script"`) {
			t.Error(body)
		}
		if book := w.provider.Book(); len(book) != 0 {
			t.Errorf("the provider received %+v, want no call", book)
		}

		// Another account's session is not found. A session token works for no other route, and becomes invalid when its
		// session ends.
		for path, token := range map[string]string{backendapi.PathAccount: w.key, script: project} {
			r, _ := http.NewRequestWithContext(t.Context(), "GET", w.url+path, nil)
			r.Header.Set("Authorization", "Bearer "+token)
			if res, err := http.DefaultClient.Do(r); err != nil || res.StatusCode/100 != 4 {
				t.Errorf("%s: got response %v (error %v), want a status of 4xx", path, res, err)
			} else {
				_ = res.Body.Close()
			}
		}
		if status := w.call("DELETE", backendapi.PathSessions+"/"+s.SessionID, "", nil); status != http.StatusOK {
			t.Fatalf("close session: got status %d, want 200", status)
		}
		if res, body := w.ask("POST", "/v1/chat/completions", askForMilk+"}"); res.StatusCode != http.StatusUnauthorized ||
			errorOf(t, body)["code"] != "invalid_key" {
			t.Errorf("call after the session ended: got %d %s, want 401 invalid_key", res.StatusCode, body)
		}
		if strings.Contains(w.log.String(), w.key) || strings.Contains(w.log.String(), "We need milk") {
			t.Error("the log contains the token or the spoken text")
		}
		for _, table := range []string{"session_scripts", "session_gateway_tokens"} {
			var n int
			if err := w.db.QueryRow("SELECT COUNT(*) FROM " + table).Scan(&n); err != nil || n != 0 {
				t.Errorf("%s: got %d rows (error %v), want none", table, n, err)
			}
		}
	})
}

// An answer that a script delays ends when its session ends. The test runs on each database engine because the gateway
// checks keys with a query.
func TestSessionGateway_EndsAnswersThatWait(t *testing.T) {
	eachGateway(t, func(t *testing.T, w *gatewayWorld) {
		message := ""
		for !strings.Contains(message, "the session is over") { // the call may arrive after the session ended
			var s backendapi.Session
			w.call("POST", backendapi.PathSessions, `{"project":"com.example.hello"}`, &s)
			path := backendapi.PathSessions + "/" + s.SessionID
			w.call("POST", path+backendapi.PathAssistantScript,
				`{"rules":[{"when":{"always":true},"reply":{"text":"At last.","delayMs":60000}}]}`, nil)
			_, welcome := attachSession(t, w.backendUnderTest, s, "")
			w.key = welcome.Gateway.Token
			answered := make(chan string, 1)
			go func() {
				defer close(answered)
				_, body := w.ask("POST", "/v1/chat/completions", askForMilk+"}")
				answered <- body
			}()
			w.ask("GET", "/v1/models", "")
			if status := w.call("DELETE", path, "", nil); status != http.StatusOK {
				t.Fatalf("close session: got status %d, want 200", status)
			}
			e := errorOf(t, <-answered)
			if message = fmt.Sprint(e["message"]); e["code"] != "invalid_key" {
				t.Fatalf("got error %v, want invalid_key", e)
			}
			if strings.Contains(message, "the session is over") && w.last().Outcome == problem.CodeInvalidKey {
				message = "" // the session ended before the call read its script
			}
		}
		if row := w.last(); row.Outcome != "failed" || row.Source != "script" || row.MicroUSD != 0 {
			t.Errorf("got call %+v, want a failed one by the script at no charge", row)
		}
	})
}

// If a session ends after its app was authenticated, but before the gateway read its script, the call is refused. It is
// not forwarded to a provider at the project's expense.
func TestSessionGateway_RefusesACallThatItsSessionDoesNotOutlive(t *testing.T) {
	eachGateway(t, func(t *testing.T, w *gatewayWorld) {
		var s backendapi.Session
		w.call("POST", backendapi.PathSessions, `{"project":"com.example.hello"}`, &s)
		path := backendapi.PathSessions + "/" + s.SessionID
		w.call("POST", path+backendapi.PathAssistantScript, milkScript, nil)
		_, welcome := attachSession(t, w.backendUnderTest, s, "")
		body := &bodyOnDemand{Reader: strings.NewReader(askForMilk + "}"), begin: func() {
			if status := w.call("DELETE", path, "", nil); status != http.StatusOK {
				t.Errorf("close session: got status %d, want 200", status)
			}
		}}
		r, err := http.NewRequestWithContext(t.Context(), "POST", w.url+"/v1/chat/completions", body)
		if err != nil {
			t.Fatal(err)
		}
		r.ContentLength = int64(len(askForMilk) + 1)
		r.Header.Set("Authorization", "Bearer "+welcome.Gateway.Token)
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Expect", "100-continue") // the server asks for the body once it has checked the token
		transport := &http.Transport{ExpectContinueTimeout: time.Minute}
		defer transport.CloseIdleConnections()
		res, err := transport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		if e := errorOf(t, string(text)); e["code"] != "invalid_key" || !strings.Contains(string(text), "the session is over") {
			t.Errorf("got %d %s, want invalid_key because the session is over", res.StatusCode, text)
		}
		if book := w.provider.Book(); len(book) != 0 {
			t.Errorf("the provider received %+v, want no call", book)
		}
		if row := w.last(); row.Outcome != problem.CodeInvalidKey || row.MicroUSD != 0 {
			t.Errorf("got call %+v, want a refused one at no charge", row)
		}
	})
}

// bodyOnDemand calls begin before the first read.
type bodyOnDemand struct {
	io.Reader
	begin func()
}

func (b *bodyOnDemand) Read(p []byte) (int, error) {
	if b.begin != nil {
		b.begin()
		b.begin = nil
	}
	return b.Reader.Read(p)
}

func TestSessionGateway_SpendsTheProjectsCredit(t *testing.T) {
	w := startGateway(t)
	var s backendapi.Session
	w.call("POST", backendapi.PathSessions, `{"project":"com.example.hello"}`, &s)
	_, welcome := attachSession(t, w.backendUnderTest, s, "")
	if welcome.Gateway == nil {
		t.Fatal("welcome has no gateway, want one because models are configured")
	}
	w.key = welcome.Gateway.Token
	const tools = `,"tools":[{"type":"function","function":{"name":"weather","parameters":{"type":"object"}}}]`
	const flat = `,"tools":[{"type":"function","name":"weather","parameters":{"type":"object"}}]`
	const messages = `,"max_tokens":100,"tools":[{"name":"weather","input_schema":{"type":"object"}}]`
	calls := 0
	for _, stream := range []string{"", `,"stream":true`} {
		for _, c := range []struct{ path, body string }{
			{"/v1/chat/completions", chatBody("assistant", tools+stream)},
			{"/v1/responses", `{"model":"resp-good","input":"Hello"` + flat + stream + `}`},
			{"/v1/messages", chatBody("msg-good", messages+stream)},
		} {
			calls++
			res, body := w.ask("POST", c.path, c.body)
			if row := w.last(); res.StatusCode != http.StatusOK || row.Source != "credit" || row.MicroUSD == 0 {
				t.Errorf("%s: got %d %s, call %+v; want 200 and a charge to the credit", c.body, res.StatusCode, body, row)
			}
			rows := toolRows(w.backendUnderTest, s.SessionID, calls)
			if len(rows) != calls || !strings.HasPrefix(rows[len(rows)-1], `{"name":"weather","arguments":{`) {
				t.Errorf("%s: got tool rows %q, want one per call\n%s", c.body, rows, body)
			}
		}
	}
	// Calls with a project key, as shipped apps make them, do not appear in any session's log.
	var key backendapi.ProjectKey
	w.call("POST", "/api/projects/com.example.hello/keys", `{"name":"app"}`, &key)
	for _, w.key = range []string{key.ProjectKey, welcome.Gateway.Token} {
		if res, body := w.ask("POST", "/v1/chat/completions", chatBody("good", tools)); res.StatusCode != http.StatusOK {
			t.Fatal(body)
		}
	}
	if rows := toolRows(w.backendUnderTest, s.SessionID, calls+1); len(rows) != calls+1 {
		t.Errorf("got tool rows %q, want one more than before", rows)
	}
}

func TestSessionGateway_ComesWithTheScript(t *testing.T) {
	b := startBackend(t)
	var s backendapi.Session
	b.call("POST", backendapi.PathSessions, `{"project":"com.example.hello"}`, &s)
	app, welcome := attachSession(t, b, s, `,"gateway":true`)
	if welcome.Gateway != nil {
		t.Fatalf("welcome has a gateway without models, want none: %+v", welcome.Gateway)
	}
	script := backendapi.PathSessions + "/" + s.SessionID + backendapi.PathAssistantScript
	for _, c := range []struct {
		path, body string
		status     int
		code       string
	}{
		{script, `{"rules":[]}`, http.StatusBadRequest, problem.CodeInvalidRequest},
		{script, `{"rules":[{"when":{"always":true},"reply":{"words":1}}]}`, http.StatusBadRequest,
			problem.CodeInvalidRequest},
		{script, strings.Repeat(" ", 70<<10), http.StatusBadRequest, problem.CodeInvalidRequest},
		{script, strings.Repeat(" ", 200<<10), http.StatusRequestEntityTooLarge, problem.CodeRequestTooLarge},
		{backendapi.PathSessions + "/ses_missing" + backendapi.PathAssistantScript, milkScript, http.StatusNotFound,
			problem.CodeNotFound},
	} {
		var p backendapi.Problem
		if status := b.call("POST", c.path, c.body, &p); status != c.status || p.Code != c.code || p.FixHint == "" {
			t.Errorf("%.80s: got %d %+v, want the problem in the table with a hint", c.body, status, p)
		}
	}
	if status := b.call("POST", script, milkScript, nil); status != http.StatusOK {
		t.Fatalf("set script: got status %d, want 200", status)
	}
	var gateway glasses.Gateway
	app.next(glasses.TypeGatewayToken, &gateway)
	w := &gatewayWorld{backendUnderTest: b, key: gateway.Token}
	if res, body := w.ask("POST", "/v1/chat/completions", askForMilk+"}"); res.StatusCode != http.StatusOK {
		t.Errorf("got %d %s, want 200", res.StatusCode, body)
	}
	if status := b.call("DELETE", backendapi.PathSessions+"/"+s.SessionID, "", nil); status != http.StatusOK {
		t.Fatalf("close session: got status %d, want 200", status)
	}
	if status := b.call("POST", script, milkScript, nil); status != http.StatusConflict {
		t.Errorf("script for a closed session: got status %d, want 409", status)
	}
}
