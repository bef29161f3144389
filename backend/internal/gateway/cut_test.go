package gateway

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptrace"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/service-dev/service/backend/internal/credit"
	"github.com/service-dev/service/internal/problem"
)

// silentProvider begins an answer and then sends nothing more. It uses no socket, so that the test's clock advances
// while calls wait for it.
type silentProvider struct{}

func (silentProvider) RoundTrip(r *http.Request) (*http.Response, error) {
	read, written := io.Pipe()
	go func() {
		_, err := io.WriteString(written, `data: {"choices":[{"index":0,"delta":{"content":"Hello"}}]}`+"\n\n")
		if err == nil {
			<-r.Context().Done()
			err = context.Cause(r.Context())
		}
		_ = written.CloseWithError(err)
	}()
	header := http.Header{"Content-Type": {"text/event-stream"}}
	return &http.Response{StatusCode: http.StatusOK, Header: header, Body: read, Request: r}, nil
}

// slowKeys answers after a delay.
type slowKeys struct {
	liveKeys
	delay time.Duration
}

func (k *slowKeys) LiveKeys(ctx context.Context, ids []string) ([]string, error) {
	live, err := k.liveKeys.LiveKeys(ctx, ids)
	time.Sleep(k.delay)
	return live, err
}

// With a server's limits, a call ends within a second after its key becomes invalid, at any time between two checks.
// The interval between checks plus two queries is shorter than that second. The test controls the clock.
func TestService_CutsARevokedCallWithinASecond(t *testing.T) {
	for _, delay := range []time.Duration{0, 200 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			purse, keys := newPurse(credit.USD), &slowKeys{delay: delay}
			s := New(Options{Purse: purse, Keys: keys, Catalogue: Catalogue{byID: map[string]*Model{}},
				Log: slog.New(slog.DiscardHandler)})
			w := &world{Service: s, purse: purse, keys: &keys.liveKeys}
			s.client = &http.Client{Transport: silentProvider{}}
			w.addAt("good", "http://provider.invalid/v1")
			ctx, stop := context.WithCancel(t.Context())
			served := make(chan error, 1)
			go func() { served <- s.Serve(ctx) }()
			for after := range 20 {
				w.keys.live.Store("key", true)
				done := make(chan error, 1)
				go func() { done <- w.do(ctx, body("good", ""), newRecorder()) }()
				time.Sleep(3*time.Second + time.Duration(after)*37*time.Millisecond)
				if len(done) > 0 || len(s.kept()) != 1 {
					t.Fatalf("the call ended before its key was revoked: %v", <-done)
				}
				w.keys.live.Delete("key")
				revoked := time.Now()
				if err := <-done; !errors.Is(err, ErrBroken) {
					t.Errorf("revoked call: got error %v, want ErrBroken", err)
				}
				if took := time.Since(revoked); took > time.Second {
					t.Errorf("with queries of %s, the call ended %s after its key was revoked, want at most 1 s", delay, took)
				}
				if _, _, holds := purse.last(); holds != 0 {
					t.Errorf("%d holds left, want none", holds)
				}
			}
			stop()
			if err := <-served; err != nil {
				t.Error(err)
			}
		})
	}
}

// slowProvider sends a whole answer after a delay, or never.
type slowProvider struct{ after time.Duration }

func (p slowProvider) RoundTrip(r *http.Request) (*http.Response, error) {
	conn := &countedConn{}
	httptrace.ContextClientTrace(r.Context()).GotConn(httptrace.GotConnInfo{Conn: conn})
	conn.written.Add(1)
	select {
	case <-time.After(p.after):
	case <-r.Context().Done():
		return nil, context.Cause(r.Context())
	}
	const answer = `{"choices":[{"message":{"content":"Hello"}}],"usage":{"prompt_tokens":7,"completion_tokens":5}}`
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Request: r,
		Body: io.NopCloser(strings.NewReader(answer))}, nil
}

// An answer that is not streamed starts when it is complete, so only the limit for the whole call ends it. The app
// does not pay for a call that its provider did not answer in time, although the provider may bill it.
func TestService_WaitsForAWholeAnswer(t *testing.T) {
	for _, c := range []struct {
		after, took time.Duration
		streamed    bool
		code        string
	}{
		{9 * time.Minute, 9 * time.Minute, false, ""},
		{time.Hour, 10 * time.Minute, false, problem.CodeProviderTimeout},
		{time.Hour, time.Minute, true, problem.CodeProviderTimeout},
	} {
		synctest.Test(t, func(t *testing.T) {
			purse := newPurse(credit.USD)
			w := &world{purse: purse, Service: New(Options{Purse: purse, Catalogue: Catalogue{byID: map[string]*Model{}},
				Log: slog.New(slog.DiscardHandler)})}
			w.client = &http.Client{Transport: slowProvider{c.after}}
			w.addAt("good", "http://provider.invalid/v1")
			text, began := body("good", ""), time.Now()
			if !c.streamed {
				text = bytes.Replace(text, []byte(`"stream":true,`), nil, 1)
			}
			if code := codeOf(w.do(t.Context(), text, newRecorder())); code != c.code || time.Since(began) != c.took {
				t.Errorf("case %+v: got code %q after %s, want both as in the case", c, code, time.Since(began))
			}
			row, charged, holds := purse.last()
			if holds != 0 || charged > 0 != (c.code == "") || purse.carried > 0 != (c.code != "") ||
				row.Estimated != (c.code != "") || row.TextIn == 0 {
				t.Errorf("case %+v: got %+v, charged %s, operator pays %s, %d holds left; want the case's outcome",
					c, row, charged, purse.carried, holds)
			}
		})
	}
}
