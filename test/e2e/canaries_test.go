//go:build unix

package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/service-dev/service/test/llmtest"
)

// The test enters a secret wherever a user, an agent, a shipped app or an operator can enter one. It then searches
// every log, page, tool result, model answer, telemetry file and database dump, and the raw database files. A secret
// may occur only in the response or page that issues it.
func TestSecrets_LeakNowhere(t *testing.T) {
	t.Parallel()
	for _, engine := range []string{"sqlite", "postgres"} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			database, dump, bytes := newRawDatabase(t, engine)
			mail := startMail(t)
			secrets := map[string]string{
				"credentials key": strings.Repeat("c4",
					32), "SMTP password": "canary-smtp-password", "HMAC key": strings.Repeat("5a", 32),
				"provider's key": llmtest.Key,
				"credential":     "sk-canary0123456789abcdefghijklmnopqrstuvwxyzABCDEF", "password": password,
				"second password": "canary second password",
			}
			b := startBackend(t, database, "SERVICE_BACKEND_LOG_LEVEL=debug",
				"SERVICE_BACKEND_CREDENTIALS_KEY="+secrets["credentials key"],
				"SERVICE_BACKEND_GATEWAY_CATALOGUE="+gatewayOfSecrets(t),
				"SERVICE_BACKEND_SMTP_HOST=127.0.0.1", "SERVICE_BACKEND_SMTP_PORT="+mail.port, "SERVICE_BACKEND_SMTP_USER=mailer",
				"SERVICE_BACKEND_SMTP_PASSWORD="+secrets["SMTP password"], "SERVICE_BACKEND_SMTP_FROM=Service <service@example.org>", "SERVICE_BACKEND_SMTP_TLS=none")
			w := newWorld(t, "log_level: debug\n", "SERVICE_BACKEND_URL="+b.url, "SERVICE_NO_AUTO_OPEN=1")
			told := canaryDay(t, b, w, mail, secrets)

			told["database"], told["database's files"] = dump(), bytes()
			told["backend log"] = readAll(t, b.logs)
			told["daemon's files"] = filesBelow(t, w.dir, "auth.json", "app.token")
			if !strings.Contains(told["database"], "credential") || !strings.Contains(told["database's files"], app) ||
				!strings.Contains(told["database"], "own_key_refused") ||
				!strings.Contains(told["daemon's files"], "tool.called") || len(told["backend log"]) < 1000 {
				t.Error("the searched output is incomplete: the day's data is missing")
			}
			for where, text := range told {
				for what, secret := range secrets {
					if len(secret) < 9 {
						t.Fatalf("%s was not captured: %q", what, secret)
					}
					if i := strings.Index(text, secret); i >= 0 {
						t.Errorf("%s contains the %s: ...%s", where, what, text[max(0, i-80):i])
					}
				}
			}
		})
	}
}

// canaryDay creates and uses every kind of secret. It adds them to secrets, and returns the output of pages and tools.
func canaryDay(t *testing.T, b *remoteBackend, w *world, mail *mailbox, secrets map[string]string) map[string]string {
	t.Helper()
	var answers, pages strings.Builder
	a := startAgent(w, "modern", false)
	call := func(tool string, args map[string]any) toolResult {
		r := a.call(tool, args)
		data, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		answers.Write(data)
		return r
	}
	asked := a.call("listProjects", map[string]any{}) // the result contains the device code
	secrets["device code"] = asked.str(t, "deviceCode")
	someone := newPerson(t)
	someone.seen, someone.mail = &pages, mail
	someone.approve(asked.str(t, "verificationUrl"), "canary@example.org")
	secrets["mailed link"] = someone.mailed
	call("completeAuthLink", map[string]any{"deviceCode": secrets["device code"]})
	var auth struct{ AuthToken string }
	readJSON(filepath.Join(w.dir, "auth.json"), &auth)
	secrets["token"] = auth.AuthToken
	session := call("createSimulatorSession", map[string]any{"project": app, "openBrowser": false})
	secrets["session secret"] = strings.TrimSpace(readAll(t, session.str(t, "appTokenFile")))
	call("generateConnectionModule", map[string]any{"project": app, "language": "python"})
	secrets["project key"] = keptKey(t, w)
	sendAnalytics(t, b, w)
	// The mail contains the link.
	link := a.call("setCredential", map[string]any{"project": app, "provider": "openai", "openBrowser": false})
	address := link.str(t, "url")
	secrets["credential link"] = address[strings.LastIndex(address, "/")+1:]
	someone.open(address)
	someone.submit(someone.at.Path, "value", secrets["credential"])
	for _, tool := range []string{"listProjects", "getAssistantConfig", "getGatewayUsage", "getCredentialStatus",
		"getProjectAnalytics", "getConnectionPageConfig", "whoAmI"} {
		args := map[string]any{"project": app}
		if tool == "listProjects" || tool == "whoAmI" {
			args = map[string]any{}
		}
		if r := call(tool, args); r.IsError {
			t.Errorf("%s returned an error: %v", tool, r.Structured)
		}
	}
	if s := call("getCredentialStatus", map[string]any{"project": app}); !strings.Contains(s.Content[0].Text, "CDEF") {
		t.Errorf("getCredentialStatus does not show the credential as set: %v", s.Structured)
	}
	models := gatewayDay(t, b, a, someone, secrets)
	newSecrets(t, b, someone, mail, secrets)
	for _, p := range accountPages {
		someone.open(b.url + strings.ReplaceAll(p.path, "{app}", app))
	}
	for _, cookie := range someone.client.Jar.Cookies(someone.at) {
		secrets["cookie"] = cookie.Value[strings.LastIndex(cookie.Value, ".")+1:]
	}
	resp, err := someone.client.Get(b.url + "/api/health")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	return map[string]string{"tool answers": answers.String(), "pages": pages.String(), "answers of models": models}
}

func readAll(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// filesBelow returns the content of every file in a folder except those meant to hold a secret.
func filesBelow(t *testing.T, dir string, but ...string) string {
	t.Helper()
	var all strings.Builder
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		for _, name := range but {
			if d.Name() == name {
				return nil
			}
		}
		data, err := os.ReadFile(path)
		all.Write(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all.String()
}
