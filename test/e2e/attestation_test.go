//go:build unix

package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/service-dev/service/test/llmtest"
)

// attestedApp attests with a test key, and shows the answer to what the wearer says, or why there is none.
const attestedApp = `import service.Attestation
import service.GlassesError
import service.Settings
import service.TestKey
import service.connect
import java.io.File

fun main(args: Array<String>) {
    val (backend, projectKey, testKey, folder) = args
    val proof = TestKey(File(testKey).readText(), release = false)
    val attestation = Attestation(backend, projectKey, File(folder), proof)
    val glasses = connect(Settings("Attested", "1.0", release = false, attestation = attestation))
    glasses.startTranscription()
    glasses.run {
        if (it.type == "transcript") {
            val text = try {
                glasses.ask(it.payload["text"].toString()).text
            } catch (e: GlassesError) {
                "${e.code} ${e.reason}: ${e.fixHint}"
            }
            glasses.show(mapOf("type" to "text", "text" to text, "overflow" to "paginate"))
        }
    }
}
`

// An app in Kotlin attests to a real backend in a session without an AI gateway, where the project key alone is refused.
// It attests again when its token has expired, and names the revocation of its install.
func TestAttestation_OfAnAppInKotlin(t *testing.T) {
	t.Parallel()
	database := filepath.Join(t.TempDir(), "service.db")
	g := startGateway(t, database, llmtest.Good)
	key, err := g.app.owner.ProjectKey(app)
	if err != nil {
		t.Fatal(err)
	}
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	inPEM := func(kind string, der []byte, err error) string {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
	}
	der, err := x509.MarshalPKIXPublicKey(&private.PublicKey)
	execDatabase(t, database, `INSERT INTO attest_settings (account_id, app_id, apple_apps, apple_development, packages,
		certificates, test_key, version) SELECT account_id, app_id, '', 0, '', '', $1, 1 FROM projects`,
		inPEM("PUBLIC KEY", der, err))
	execDatabase(t, database, "UPDATE gateway_settings SET key_allowance = 0")
	if status, text := g.askWith(key); status != http.StatusForbidden || !strings.Contains(text, "attestation_required") {
		t.Fatalf("with the project key alone: got %d %s, want 403 attestation_required", status, text)
	}

	w := newWorld(t, "")
	needAgent(t)
	a := startAgent(w, "modern", false)
	dir := exampleInto(t, a, "kotlin", "assistant")
	writeInto(t, filepath.Join(dir, "attested.kt"), attestedApp)
	testKey := filepath.Join(dir, "test.key")
	der, err = x509.MarshalECPrivateKey(private)
	writeInto(t, testKey, inPEM("EC PRIVATE KEY", der, err))
	s := a.call("startLocalSimulation", map[string]any{"fresh": true, "clock": "virtual"})
	startApp(t, w, append(appCommand(t, dir, "kotlin", "attested"), g.backend.url, key, testKey, dir), s)
	a.sees("transcription.start", nil)
	shows := func(when, want string) {
		t.Helper()
		steps, err := json.Marshal([]any{map[string]any{"transcript": map[string]any{"text": "Hello"}},
			map[string]any{"expectDisplay": map[string]any{"text": []string{want}, "contains": true}}})
		if err != nil {
			t.Fatal(err)
		}
		verdict := a.call("runSteps", map[string]any{"steps": json.RawMessage(steps)})
		if verdict.Structured["verdict"] != "pass" {
			t.Errorf("%s: got %v, want %q on the display", when, verdict.Structured, want)
		}
		execDatabase(t, database, "UPDATE attest_tokens SET expires_at = 1")
	}
	const answer = "Grüße to the world"
	shows("attested", answer)
	shows("after the token has expired", answer)
	execDatabase(t, database, "UPDATE attest_installs SET revoked_at = 1")
	shows("revoked", "attestation_failed revoked: Ask the project's owner")
}

// askWith calls a model with a key and returns the response.
func (g *gatewayWorld) askWith(key string) (status int, body string) {
	g.t.Helper()
	call := `{"model":"assistant","messages":[{"role":"user","content":"Hello"}]}`
	r, err := http.NewRequestWithContext(g.t.Context(), http.MethodPost, g.backend.url+"/v1/chat/completions",
		strings.NewReader(call))
	if err != nil {
		g.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+key)
	r.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		g.t.Fatal(err)
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		g.t.Fatal(err)
	}
	return res.StatusCode, string(data)
}
