package server

import (
	"bufio"
	"bytes"
	"context"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/service-dev/service/backend/internal/account"
	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/db"
	"github.com/service-dev/service/backend/internal/projects"
	"github.com/service-dev/service/backend/internal/secret"
	"github.com/service-dev/service/test/enginetest"
	"github.com/service-dev/service/test/llmtest"
	"github.com/service-dev/service/test/reaper"
)

// asServer makes this test binary run service-backend.
const asServer = "SERVICE_TEST_AS_SERVER"

func TestMain(m *testing.M) {
	if os.Getenv(asServer) != "" {
		os.Exit(Main(nil, os.Stdout, os.Stderr))
	}
	os.Exit(reaper.Run(func() int { return enginetest.Run(m) }))
}

// servers is a database with an account and its project key, a fake provider, and the server processes that use them.
type servers struct {
	*testing.T
	ctx       context.Context // limits every wait
	database  string
	catalogue string
	key       string
	db        *sql.DB
	provider  *llmtest.Provider
	silent    net.Listener // accepts connections but never responds
}

const processProject = "com.example.hello"

func newServers(t *testing.T, database string) *servers {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	t.Cleanup(cancel)
	s := &servers{T: t, ctx: ctx, database: database, provider: llmtest.Start()}
	t.Cleanup(s.provider.Close)
	store, err := db.Open(ctx, database, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	hash, err := hex.DecodeString(testKey)
	now := time.Now()
	err = errors.Join(err, account.NewStore(store).InsertAccount(ctx, account.Account{ID: "ada-id",
		Email:        "ada@example.org",
		PasswordHash: "x", Active: true, PrivacyAccepted: now, CreatedAt: now}))
	keys := &projects.Service{Store: projects.NewStore(store), Hasher: secret.NewHasher(hash), Now: time.Now}
	key, keyErr := keys.MintKey(ctx, "ada-id", processProject, "app", audit.Person())
	if err = errors.Join(err, keyErr, store.Close()); err != nil {
		t.Fatal(err)
	}
	s.key, s.db = key.Secret, enginetest.Connect(t, database)
	s.writeCatalogue()
	return s
}

func (s *servers) writeCatalogue() {
	s.Helper()
	var err error
	if s.silent, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { _ = s.silent.Close() })
	dir := s.TempDir()
	keyFile := filepath.Join(dir, "provider.key")
	s.catalogue = filepath.Join(dir, "gateway.yaml")
	text := "providers:\n  - {id: fake, base_url: '" + s.provider.URL + "', key_file: " + keyFile + "}\n" +
		"  - {id: silent, base_url: 'https://" + s.silent.Addr().String() + "/v1', key_file: " + keyFile + "}\nmodels:\n"
	for _, model := range []string{"good", llmtest.WaitsInside, llmtest.Hangs, llmtest.HangsAfterUsage, llmtest.AboveMax,
		llmtest.Status500, "silent"} {
		provider := "fake"
		if model == "silent" {
			provider = model
		}
		text += fmt.Sprintf("  - {id: %s, provider: %s, api: chat, context_tokens: 10000, output_tokens: 1000, "+
			"default_output_tokens: 100, prices_micro_usd_per_million: "+
			"{text_in: 2000000, text_cached: 1000000, text_out: 10000000}}\n", model, provider)
	}
	err = errors.Join(os.WriteFile(keyFile, []byte(llmtest.Key), 0o600), os.WriteFile(s.catalogue, []byte(text), 0o600))
	if err != nil {
		s.Fatal(err)
	}
}

// serverProcess is a running service-backend.
type serverProcess struct {
	s    *servers
	url  string
	cmd  *exec.Cmd
	log  bytes.Buffer // complete after wait
	done chan struct{}
}

// start starts a server and waits until it responds.
func (s *servers) start() *serverProcess {
	s.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.Fatal(err)
	}
	address := l.Addr().String()
	_ = l.Close()
	p := &serverProcess{s: s, url: "http://" + address, done: make(chan struct{})}
	p.cmd = exec.Command(os.Args[0])
	p.cmd.Env = append(os.Environ(), asServer+"=1", "SERVICE_BACKEND_DATABASE="+s.database,
		"SERVICE_BACKEND_DATA_DIR="+s.TempDir(), "SERVICE_BACKEND_LISTEN="+address, "SERVICE_BACKEND_BASE_URL="+p.url,
		"SERVICE_BACKEND_HMAC_KEY="+testKey, "SERVICE_BACKEND_GATEWAY_CATALOGUE="+s.catalogue)
	p.cmd.Stdout, p.cmd.Stderr = &p.log, &p.log
	if err := p.cmd.Start(); err != nil {
		s.Fatal(err)
	}
	go func() {
		defer close(p.done)
		_ = p.cmd.Wait()
	}()
	s.Cleanup(func() {
		p.signal(os.Kill)
		if s.Failed() {
			s.Logf("service-backend's log:\n%s", p.log.String())
		}
	})
	s.until("the server answers", func() bool {
		res, err := http.Get(p.url + "/api/health")
		if err != nil {
			return false
		}
		defer res.Body.Close()
		return res.StatusCode == http.StatusOK
	})
	return p
}

// signal sends the process a signal that ends it, and waits until it has ended.
func (p *serverProcess) signal(what os.Signal) {
	_ = p.cmd.Process.Signal(what)
	<-p.done
}

// until waits until another process has made a condition true.
func (s *servers) until(what string, holds func() bool) {
	s.Helper()
	for tick := time.NewTicker(5 * time.Millisecond); !holds(); {
		select {
		case <-tick.C:
		case <-s.ctx.Done():
			s.Fatalf("waited too long for %s", what)
		}
	}
}

func (s *servers) number(query string) (n int64) {
	s.Helper()
	if err := s.db.QueryRowContext(s.ctx, query).Scan(&n); err != nil {
		s.Fatalf("%s: %v", query, err)
	}
	return n
}

func (s *servers) exec(statement string) {
	s.Helper()
	if _, err := s.db.ExecContext(s.ctx, statement); err != nil {
		s.Fatalf("%s: %v", statement, err)
	}
}

// request returns the request of a streamed call.
func (p *serverProcess) request(ctx context.Context, model string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, "POST", p.url+"/v1/chat/completions", strings.NewReader(
		`{"model":"`+model+`","stream":true,"stream_options":{"include_usage":true},`+
			`"messages":[{"role":"user","content":"canary-content"}]}`))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+p.s.key)
	r.Header.Set("Content-Type", "application/json")
	return http.DefaultClient.Do(r)
}

// begin makes a call and returns its stream once a line contains the word.
func (p *serverProcess) begin(model, word string) (stream *bufio.Scanner, closed func()) {
	p.s.Helper()
	res, err := p.request(p.s.ctx, model)
	if err != nil {
		p.s.Fatal(err)
	}
	stream = bufio.NewScanner(res.Body)
	scanTo(p.s, stream, word)
	return stream, func() { _ = res.Body.Close() }
}

func scanTo(s *servers, stream *bufio.Scanner, word string) {
	s.Helper()
	for stream.Scan() {
		if strings.Contains(stream.Text(), word) {
			return
		}
	}
	s.Fatalf("the response does not contain %q: %v", word, stream.Err())
}

// background makes a call without waiting for its response.
func (p *serverProcess) background(model string) {
	done := make(chan struct{})
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		defer close(done)
		if res, err := p.request(ctx, model); err == nil {
			_, _ = io.Copy(io.Discard, res.Body)
			_ = res.Body.Close()
		}
	}()
	p.s.Cleanup(func() { cancel(); <-done })
}

// ledger runs admin ledger, which fails if a sum is wrong.
func (s *servers) ledger() string {
	s.Helper()
	s.Setenv("SERVICE_BACKEND_HMAC_KEY", testKey)
	code, out, errs := run("admin", "--database", s.database, "ledger", "--json")
	if code != 0 {
		s.Errorf("admin ledger: got exit code %d, want 0: %s%s", code, out, errs)
	}
	return out
}
