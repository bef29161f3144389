package gateway

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// largeProvider answers with one event or body of this many bytes after a second, and reports no usage before its end.
type largeProvider struct {
	size     int64
	streamed bool
}

func (p largeProvider) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := receive(r); err != nil {
		return nil, err
	}
	if err := wait(r.Context(), time.Second); err != nil {
		return nil, err
	}
	header, before, after := http.Header{"Content-Type": {"application/json"}}, `{"choices":[{"message":{"content":"`,
		`"}}],"usage":{"prompt_tokens":7,"completion_tokens":90}}`
	if p.streamed {
		header.Set("Content-Type", "text/event-stream")
		before, after = `data: {"choices":[{"delta":{"content":"`, "\"}}]}\n\ndata: [DONE]\n\n"
	}
	body := io.MultiReader(strings.NewReader(before), io.LimitReader(letters{}, p.size), strings.NewReader(after))
	return &http.Response{StatusCode: http.StatusOK, Header: header, Body: io.NopCloser(body), Request: r}, nil
}

type letters struct{}

func (letters) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

// An answer above the gateway's own limits costs the whole hold, because a request may cause it.
func TestTooLarge_PaysTheHold(t *testing.T) {
	for name, provider := range map[string]largeProvider{
		"whole": {size: 9 << 20}, "streamed": {size: 3 << 20, streamed: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := leavingWorld(t, provider, Limits{})
				done := make(chan error, 1)
				text := body("good", "")
				if !provider.streamed {
					text = bytes.Replace(text, []byte(`"stream":true,`), nil, 1)
				}
				go func() { done <- w.do(context.WithoutCancel(t.Context()), text, newRecorder()) }()
				synctest.Wait()
				want := w.wholeHold(t)
				err := <-done
				synctest.Wait()
				row, charged, holds := w.purse.last()
				if err == nil || charged != want || holds != 0 || row.Outcome != outcomeFailed {
					t.Errorf("error %v, %s, charged %d, want %d; %d holds left", err, row.Outcome, charged, want, holds)
				}
			})
		})
	}
}
