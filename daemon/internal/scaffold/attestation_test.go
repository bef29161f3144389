package scaffold

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/service-dev/service/glasses"
)

const attestKey = "spk_probe"

// attestBackend is a backend of which the test decides what it refuses. Its clock stands still, far from the app's.
type attestBackend struct {
	t        *testing.T
	url      string
	realtime chan string // receives the bearer of each realtime session, which then ends

	mu     sync.Mutex
	tokens int                 // issued ones; the last one is valid
	ended  bool                // whether that was ended
	broken bool                // whether it issues tokens that are not valid
	refuse string              // status, code and reason of each attestation, or ""
	proofs []map[string]string // of attestations, with their route
	calls  []string            // bearers of model calls
}

func newAttestBackend(t *testing.T) *attestBackend {
	b := &attestBackend{t: t, realtime: make(chan string)}
	server := httptest.NewServer(b)
	t.Cleanup(server.Close)
	b.url = server.URL
	return b
}

func (b *attestBackend) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/v1/realtime" && b.serveRealtime(w, r) {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Date(2001, 2, 3, 4, 5, 6, 0, time.UTC)
	w.Header().Set("Date", now.Format(http.TimeFormat))
	bearer := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	fail := func(status int, code, reason string) {
		w.WriteHeader(status)
		fmt.Fprintf(w, `{"error":{"message":"refused: %s","code":%q,"reason":%q}}`, reason, code, reason)
	}
	route, isAttestation := strings.CutPrefix(r.URL.Path, "/v1/attest/")
	if !isAttestation {
		b.calls = append(b.calls, bearer)
		switch {
		case bearer != b.token() || b.ended:
			fail(http.StatusUnauthorized, "invalid_key", "")
		default:
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, `data: {"choices":[{"delta":{"content":"Hi"}}]}`+"\n\ndata: [DONE]\n\n")
		}
		return
	}
	proof := map[string]string{}
	if err := json.NewDecoder(r.Body).Decode(&proof); err != nil || bearer != attestKey {
		b.t.Errorf("%s with %q: %v", route, bearer, err)
	}
	if route == "challenge" {
		fmt.Fprintf(w, `{"challenge":"c-%d","nonce":"n-%d"}`, len(b.proofs), len(b.proofs))
		return
	}
	proof["route"] = route
	b.proofs = append(b.proofs, proof)
	if b.refuse != "" {
		var status int
		var code, reason string
		_, _ = fmt.Sscan(b.refuse, &status, &code, &reason)
		fail(status, code, reason)
		return
	}
	b.tokens++
	b.ended = b.broken
	fmt.Fprintf(w, `{"token":%q,"install":"i","expiresAt":%q}`, b.token(), now.Add(time.Hour).Format(time.RFC3339))
}

// serveRealtime opens a realtime session, which ends the first token, or reports that the bearer is not valid.
func (b *attestBackend) serveRealtime(w http.ResponseWriter, r *http.Request) bool {
	bearer, valid := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), false
	b.set(func() { valid = bearer == b.token() && !b.ended })
	switch {
	case !valid:
		return false
	case r.Header.Get("Upgrade") == "":
		w.WriteHeader(http.StatusUpgradeRequired)
		return true
	}
	ws, err := websocket.Accept(w, r, nil)
	if err != nil {
		b.t.Error(err)
		return true
	}
	b.set(func() { b.ended = b.tokens == 1 })
	select {
	case b.realtime <- bearer:
	case <-b.t.Context().Done():
	}
	ws.CloseNow()
	return true
}

func (b *attestBackend) token() string { return fmt.Sprintf("sat_%d", b.tokens) }

// set changes the backend between two requests.
func (b *attestBackend) set(change func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	change()
}

// seen returns and forgets the bearers of model calls and the proofs.
func (b *attestBackend) seen() (calls []string, proofs []map[string]string) {
	b.set(func() { calls, proofs, b.calls, b.proofs = b.calls, b.proofs, nil, nil })
	return calls, proofs
}

// startAttesting starts the Kotlin probe, which attests to b.
func startAttesting(t *testing.T, b *attestBackend, env ...string) *app {
	t.Helper()
	i := slices.IndexFunc(variants(t), func(v variant) bool { return v.language == Kotlin })
	if i < 0 {
		t.Skip("SKIPPED: kotlinc or java is not installed")
	}
	return start(t, variants(t)[i], append(env, "PROBE_BACKEND="+b.url, "PROBE_KEY="+attestKey)...)
}

// attestingProbe starts the probe in a session without an AI gateway, unless gateway is given.
func attestingProbe(t *testing.T, b *attestBackend, gateway *glasses.Gateway, env ...string) (*app, *peer) {
	t.Helper()
	return startProbeWith(t, func(session ...string) *app {
		return startAttesting(t, b, append(session, env...)...)
	}, gateway)
}

// order sends the probe a command in an event of its own.
func (p *peer) order(command string) { p.input(fmt.Sprintf("g-%d", p.seq), command) }

func (p *peer) expectToken(command, want string) {
	p.t.Helper()
	p.order(command)
	p.expect("com.example.token", fmt.Sprintf(`{"text":%q}`, want))
}

func (p *peer) later(of time.Duration) {
	p.t.Helper()
	p.order(fmt.Sprintf("later %d", of.Milliseconds()))
	p.expect("com.example.later", `{}`)
}

// Eight threads share one attestation. The token is renewed when 5 minutes are left, by the backend's clock, and is in
// no file.
func TestAttestation_KeepsItsToken(t *testing.T) {
	t.Parallel()
	b := newAttestBackend(t)
	app, p := attestingProbe(t, b, nil)
	p.expectToken("tokens", "sat_1")
	p.later(55*time.Minute - time.Millisecond)
	p.expectToken("token", "sat_1")
	p.later(time.Millisecond)
	p.expectToken("tokens", "sat_2")
	p.expectToken("token sat_1", "sat_2") // was renewed already
	p.expectToken("token sat_2", "sat_3")
	_, proofs := b.seen()
	private := filepath.Join(app.cmd.Dir, "private")
	install, err := os.ReadFile(filepath.Join(private, "glasses-install"))
	if err != nil || !regexp.MustCompile(`^[0-9a-f]{32}$`).Match(install) {
		t.Errorf("the install's id: %q, %v", install, err)
	}
	for i, proof := range proofs {
		want := map[string]string{"route": "google", "challenge": fmt.Sprintf("c-%d", i), "install": string(install),
			"token": fmt.Sprintf("play:n-%d", i)}
		if fmt.Sprint(proof) != fmt.Sprint(want) {
			t.Errorf("attestation %d: got %v, want %v", i, proof, want)
		}
	}
	if len(proofs) != 3 {
		t.Errorf("%d attestations, want 3", len(proofs))
	}
	files, err := os.ReadDir(private)
	if info, _ := os.Stat(filepath.Join(private, "glasses-install")); err != nil || len(files) != 1 ||
		info.Mode().Perm() != 0o600 {
		t.Errorf("got the files %v, %v, want the install's id alone, with mode 0600", files, err)
	}
	p.leave(app)
}

// A call whose token was refused is repeated once with another token.
func TestAttestation_AuthorisesCalls(t *testing.T) {
	t.Parallel()
	b := newAttestBackend(t)
	app, p := attestingProbe(t, b, nil)
	asks := func(want ...string) {
		t.Helper()
		p.order("ask hi")
		p.expect("com.example.text", `{"text":"Hi"}`)
		p.expect("com.example.answer", "")
		if calls, _ := b.seen(); !slices.Equal(calls, want) {
			t.Errorf("calls with %q, want %q", calls, want)
		}
	}
	asks("sat_1")
	b.set(func() { b.ended = true })
	asks("sat_1", "sat_2")
	b.set(func() { b.ended, b.broken = true, true })
	p.order("ask hi")
	p.expectRefusal("ask", "invalid_key", "live project key", 0)
	if calls, _ := b.seen(); !slices.Equal(calls, []string{"sat_2", "sat_3"}) {
		t.Errorf("calls with %q, want sat_2 and sat_3 once", calls)
	}
	b.set(func() { b.refuse = "403 attestation_failed revoked" })
	p.order("talk")
	p.expect("com.example.ended", `{"reason":"attestation_failed"}`)
	p.leave(app)
}

// A refusal is named with the next step. While the old token is valid, it is used if a new one cannot be had now.
func TestAttestation_NamesRefusals(t *testing.T) {
	t.Parallel()
	b := newAttestBackend(t)
	app, p := attestingProbe(t, b, nil)
	refused := func(refuse, code, hint string) {
		t.Helper()
		b.set(func() { b.refuse = refuse })
		p.order("token")
		p.expectRefusal("token", code, hint, 0)
	}
	refused("403 attestation_failed untrusted_device", "attestation_failed", "TestKey")
	refused("403 attestation_failed some_reason", "attestation_failed", "page attestation")
	refused("401 invalid_key -", "invalid_key", "live project key")
	b.set(func() { b.refuse = "" })
	p.expectToken("token", "sat_1")
	p.later(56 * time.Minute)
	b.set(func() { b.refuse = "503 unavailable -" })
	p.expectToken("token", "sat_1")
	refused("403 attestation_failed revoked", "attestation_failed", "revoked")
	p.later(4 * time.Minute)
	refused("503 unavailable -", "unavailable", "again")
	write(t, filepath.Join(app.cmd.Dir, "fails"), nil)
	refused("", "attestation_unavailable", "daily allowance")
	p.leave(app)
}

// While the old token is valid, it is used if a renewal hangs. Later calls wait for that one and start no others.
func TestAttestation_SurvivesAHangingRenewal(t *testing.T) {
	t.Parallel()
	b := newAttestBackend(t)
	app, p := attestingProbe(t, b, nil)
	p.expectToken("token", "sat_1")
	p.later(56 * time.Minute)
	p.order("hang")
	p.expect("com.example.hang", `{}`)
	p.expectToken("token", "sat_1")
	p.expectToken("token", "sat_1")
	p.later(4 * time.Minute)
	p.order("token")
	p.expectRefusal("token", "attestation_timeout", "again", 0)
	p.order("answer")
	p.expect("com.example.answer", `{}`)
	p.expectToken("token", "sat_2")
	if _, proofs := b.seen(); len(proofs) != 2 {
		t.Errorf("%d attestations, want 2", len(proofs))
	}
	p.leave(app)
}

// A conversation goes on with a new token when the old one was refused while it reconnects.
func TestAttestation_AuthorisesConversations(t *testing.T) {
	t.Parallel()
	b := newAttestBackend(t)
	app, p := attestingProbe(t, b, nil)
	opened := func(want string) {
		t.Helper()
		select {
		case got := <-b.realtime:
			if got != want {
				t.Errorf("a realtime session with %s, want %s", got, want)
			}
		case <-p.ctx().Done():
			t.Fatalf("no realtime session with %s was opened", want)
		}
	}
	p.order("talk")
	p.ok(p.expect(glasses.TypeAudioStart, ""))
	opened("sat_1")
	opened("sat_2")
	if calls, proofs := b.seen(); len(calls) != 1 || len(proofs) != 2 {
		t.Errorf("refused %q and attested %d times, want one refusal and two attestations", calls, len(proofs))
	}
	p.send(glasses.TypeBattery, "g-battery", glasses.Battery{Level: 50})
	p.ok(p.expect(glasses.TypeAudioStop, ""))
	p.expect("com.example.ended", `{"reason":"stopped","mode":"realtime"}`)
	p.leave(app)
}

// A refusal that lasts ends a conversation with its code.
func TestAttestation_EndsConversationsWithItsRefusal(t *testing.T) {
	t.Parallel()
	b := newAttestBackend(t)
	app, p := attestingProbe(t, b, nil)
	p.order("talk")
	p.ok(p.expect(glasses.TypeAudioStart, ""))
	b.set(func() { b.refuse = "401 invalid_key -" })
	if got := <-b.realtime; got != "sat_1" {
		t.Errorf("a realtime session with %s, want sat_1", got)
	}
	p.ok(p.expect(glasses.TypeAudioStop, ""))
	p.expect("com.example.ended", `{"reason":"invalid_key","mode":"realtime"}`)
	p.leave(app)
}

// An app need not wait for an attestation, which goes on for the next call.
func TestAttestation_EndsWithStopAsking(t *testing.T) {
	t.Parallel()
	b := newAttestBackend(t)
	app, p := attestingProbe(t, b, nil)
	b.set(func() { // nothing is answered meanwhile
		p.order("ask hi")
		p.send(glasses.TypeBattery, "g-battery", glasses.Battery{Level: 50})
		p.expectRefusal("ask", "cancelled", "wants an answer", 0)
	})
	p.expectToken("token", "sat_1")
	if calls, proofs := b.seen(); len(calls) != 0 || len(proofs) != 1 {
		t.Errorf("%d calls and %d attestations, want none and one", len(calls), len(proofs))
	}
	p.leave(app)
}

// A conversation that waits for an attestation ends at once, too.
func TestAttestation_EndsWithStopConversing(t *testing.T) {
	t.Parallel()
	b := newAttestBackend(t)
	app, p := attestingProbe(t, b, nil)
	b.set(func() { // nothing is answered meanwhile
		p.order("talk")
		p.send(glasses.TypeBattery, "g-battery", glasses.Battery{Level: 50})
		p.expect("com.example.ended", `{"reason":"stopped","mode":"text"}`)
	})
	p.expectToken("token", "sat_1")
	p.leave(app)
}

func TestAttestation_PrefersTheGatewayOfTheSession(t *testing.T) {
	t.Parallel()
	b := newAttestBackend(t)
	gateway, calls := memoryGateway(t)
	app, p := attestingProbe(t, b, gateway)
	p.order("ask hi")
	p.expect("com.example.text", `{"text":"Hi"}`)
	p.expect("com.example.answer", "")
	if others, proofs := b.seen(); len(calls()) != 1 || len(others)+len(proofs) > 0 {
		t.Errorf("the session's gateway had %d calls, the backend %d, with %d attestations; want 1, 0 and 0",
			len(calls()), len(others), len(proofs))
	}
	p.leave(app)
}

// Both forms of PEM that OpenSSL writes are accepted. A release build refuses a test key.
func TestAttestation_SignsWithATestKey(t *testing.T) {
	t.Parallel()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	sec1, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	b := newAttestBackend(t)
	for name, der := range map[string][]byte{"EC PRIVATE KEY": sec1, "PRIVATE KEY": pkcs8} {
		file := filepath.Join(t.TempDir(), "test.key")
		write(t, file, pem.EncodeToMemory(&pem.Block{Type: name, Bytes: der}))
		app, p := attestingProbe(t, b, nil, "PROBE_TEST_KEY="+file)
		p.expectToken("token", fmt.Sprintf("sat_%d", b.tokens+1))
		_, proofs := b.seen()
		signature, err := base64.StdEncoding.DecodeString(proofs[0]["signature"])
		digest := sha256.Sum256([]byte("c-0\n" + proofs[0]["install"]))
		if err != nil || proofs[0]["route"] != "development" || !ecdsa.VerifyASN1(&key.PublicKey, digest[:], signature) {
			t.Errorf("%s: got %v, want the key's signature of challenge and install", name, proofs[0])
		}
		p.leave(app)
	}
	file := filepath.Join(t.TempDir(), "test.key")
	write(t, file, []byte("no key"))
	for _, env := range []string{"SERVICE_RELEASE=1", "SERVICE_RELEASE=0"} {
		app := startAttesting(t, b, env, "PROBE_TEST_KEY="+file)
		app.says("test_key_refused")
	}
}

// Tokens do not cross a network in the clear.
func TestAttestation_NeedsTLS(t *testing.T) {
	t.Parallel()
	says := func(address, want string) {
		t.Helper()
		startAttesting(t, &attestBackend{url: address}, "SERVICE_GLASSES_TRANSPORT=device").says(want)
	}
	for _, address := range []string{"http://service.example", "http://10.0.2.2", "service.example", "https:", "a b"} {
		says(address, "not_configured")
	}
	says("http://127.0.0.1:1", "transport_unavailable") // the address is accepted
}
