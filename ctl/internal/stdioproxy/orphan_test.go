package stdioproxy

import (
	"bufio"
	"context"
	"io"
	"strings"
	"testing"
	"time"
)

// orphan is a proxy whose parent can be made to exit while another process holds In open.
func orphan(t *testing.T, proof time.Duration) (r *rig, end func(), done chan error) {
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	ended := make(chan struct{})
	p := New(Options{
		In: inR, Out: outW, Handshake: Handshake{Client: "test", Version: "1"}, ProofTimeout: proof, Drain: time.Second,
		Connect: func(context.Context) (io.ReadWriteCloser, error) {
			ours, theirs := socketPair(t)
			go func() { _, _ = io.Copy(io.Discard, ours) }()
			_, _ = io.WriteString(ours, `{"ok":true}`+"\n")
			return theirs, nil
		},
		Orphaned: func() { <-ended },
	})
	done = make(chan error, 1)
	go func() {
		_ = p.Open(context.Background())
		done <- p.Run(context.Background())
	}()
	t.Cleanup(func() { _ = inW.Close(); _ = outR.Close() })
	return &rig{t: t, in: inW, out: bufio.NewReader(outR), pipe: outR, proxy: p}, func() { close(ended) }, done
}

const ping = `{"jsonrpc":"2.0","id":` + proofID + `,"method":"ping"}`

func TestOrphan_EndsWithoutClient(t *testing.T) {
	// The pipe to a dead client may be full.
	for _, reads := range []bool{true, false} {
		r, end, done := orphan(t, 50*time.Millisecond)
		// A call in flight must not keep the proxy alive.
		r.say(`{"jsonrpc":"2.0","id":1,"method":"tools/call"}`)
		end()
		if reads {
			r.expect(ping)
		}
		select {
		case err := <-done:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(10 * time.Second):
			t.Fatal("the proxy is still running 10 s after its client died")
		}
	}
}

func TestOrphan_StaysWithClient(t *testing.T) {
	for _, sign := range []string{
		`{"jsonrpc":"2.0","id":` + proofID + `,"result":{}}`,
		`{"jsonrpc":"2.0","id":` + proofID + `,"error":{"code":-32601,"message":"what?"}}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
	} {
		t.Run(sign, func(t *testing.T) {
			t.Parallel()
			const proof = 2 * time.Second
			r, end, done := orphan(t, proof)
			end()
			r.expect(ping)
			if strings.Contains(sign, "method") { // long after the parent's exit
				r.proxy.proofFrom.Store(1)
			}
			r.say(sign)
			select {
			case <-done:
				t.Fatal("the proxy ended although its client is alive")
			case <-time.After(proof + 500*time.Millisecond):
			}
			r.say(`{"jsonrpc":"2.0","id":7.5,"method":"ping"}`)
			r.hear()
			_ = r.in.Close()
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
	}
}
