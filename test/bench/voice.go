package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/service-dev/service/test/llmtest"
)

const (
	conversations   = 200
	projectTalks    = 20 // conversations that a backend allows in one project
	accountProjects = 5  // in which an account may hold as many conversations as that
	voiceRounds     = 9
	soundsHeard     = 2000
	voiceChunk      = 4800 // bytes: 100 ms at 24,000 Hz
)

// voice measures the gateway's relay of conversations, compared with a relay that reads nothing of them.
func (b *bench) voice() error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	provider, err := b.startBare("barevoice")
	if err != nil {
		return err
	}
	defer provider.stop()
	floor, err := b.startBare("barevoice", provider.url)
	if err != nil {
		return err
	}
	defer floor.stop()
	catalogue, err := b.voiceCatalogue(provider.url)
	if err != nil {
		return err
	}
	backend, who, err := b.startLinked("", "SERVICE_BACKEND_GATEWAY_CATALOGUE="+catalogue)
	if err != nil {
		return err
	}
	defer backend.stop()
	keys := make([]string, conversations/projectTalks)
	for i := range keys {
		if i%accountProjects == 0 && i > 0 {
			if who, err = link(backend.url, fmt.Sprintf("voice%d@example.org", i)); err != nil {
				return err
			}
		}
		if keys[i], err = who.ProjectKey(fmt.Sprintf("com.example.voice%d", i)); err != nil {
			return err
		}
	}
	ours := func(ctx context.Context, n int) ([]*talk, error) { return talks(ctx, backend.url, keys, n) }
	bare := func(ctx context.Context, n int) ([]*talk, error) { return talks(ctx, floor.url, keys, n) }
	if err := b.idleTalks(ctx, backend, floor, ours, bare); err != nil {
		return err
	}
	o, err := ours(ctx, conversations)
	if err != nil {
		return err
	}
	f, err := bare(ctx, conversations)
	if err != nil {
		return err
	}
	b.talkRates(ctx, o, f)
	return b.speechStarted(ctx, o[0], f[0])
}

// voiceCatalogue writes a gateway's catalogue with one realtime model.
func (b *bench) voiceCatalogue(providerURL string) (path string, err error) {
	dir, err := os.MkdirTemp(b.work, "voice")
	if err != nil {
		return "", err
	}
	if path, err = llmtest.WriteCatalogue(dir, providerURL+"/v1", llmtest.Good); err != nil {
		return "", err
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return "", err
	}
	_, err = f.WriteString(`realtime_models:
  - id: voice
    provider: fake
    provider_model: m
    context_tokens: 10000
    output_tokens: 1000
    voices: {ember: marin}
    prices_micro_usd_per_million: {text_in: 1, text_cached: 1, text_out: 1, audio_in: 1, audio_cached: 1, audio_out: 1}
`)
	return path, errors.Join(err, f.Close())
}

// talk is one conversation, as the app has it.
type talk struct {
	conn  *websocket.Conn
	heard chan struct{} // receives one value for each piece of sound that the provider has received
}

// talks opens n conversations. Each ends with ctx.
func talks(ctx context.Context, url string, keys []string, n int) ([]*talk, error) {
	all := make([]*talk, n)
	for i := range all {
		c, err := dial(ctx, "ws"+strings.TrimPrefix(url, "http")+"/v1/realtime?model=voice", &websocket.DialOptions{
			HTTPHeader: http.Header{"Authorization": {"Bearer " + keys[i%len(keys)]}}})
		if err != nil {
			return nil, fmt.Errorf("open conversation %d: %w", i, err)
		}
		if _, _, err := c.Read(ctx); err != nil { // session.created
			return nil, fmt.Errorf("conversation %d: %w", i, err)
		}
		t := &talk{conn: c, heard: make(chan struct{}, 2*inFlight)}
		all[i] = t
		go func() {
			for {
				_, event, err := c.Read(ctx)
				if err != nil {
					close(t.heard)
					return
				}
				if bytes.Contains(event, []byte("speech_started")) {
					t.heard <- struct{}{}
				}
			}
		}()
	}
	return all, nil
}

// idleTalks measures the memory that a new backend needs per conversation in which nothing is said.
func (b *bench) idleTalks(ctx context.Context, backend, floor *server,
	ours, bare func(context.Context, int) ([]*talk, error)) error {
	ctx, leave := context.WithCancel(ctx)
	defer leave()
	for _, open := range []func(context.Context, int) ([]*talk, error){ours, bare} { // memory of the first conversations
		warm, end := context.WithCancel(ctx)
		_, err := open(warm, warmPairs)
		end()
		if err != nil {
			return err
		}
	}
	settled(0, 0) // the memory that the sign-ins needed is returned to the system
	before, bareBefore := settled(backend.pid, floor.pid)
	for _, open := range []func(context.Context, int) ([]*talk, error){ours, bare} {
		if _, err := open(ctx, conversations); err != nil {
			return err
		}
	}
	after, bareAfter := settled(backend.pid, floor.pid)
	each, theirs := float64(after-before)/conversations, float64(bareAfter-bareBefore)/conversations
	b.rows = append(b.rows, row{fmt.Sprintf("resident memory of an idle conversation, of %d / bare relay", conversations),
		fmt.Sprintf("%.1f KB", each), fmt.Sprintf("%.1f KB", theirs), ratio(each, theirs), "<= 80 KB"})
	return nil
}

// sound is an event with 100 ms of sound.
var sound = fmt.Appendf(nil, `{"type":"input_audio_buffer.append","audio":%q}`,
	base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{0x12, 0x03, 0xf1, 0xff}, voiceChunk/4)))

// talkRates measures how much sound reaches the provider.
func (b *bench) talkRates(ctx context.Context, ours, bare []*talk) {
	var o, f []float64
	for range voiceRounds {
		o = append(o, speak(ctx, ours))
		f = append(f, speak(ctx, bare))
	}
	b.rows = append(b.rows, ratesRow(fmt.Sprintf("100 ms of sound through %d conversations / bare relay", conversations),
		middle(o), middle(f), ">= 0.85"))
}

// speak sends sound in every conversation for one slice of time, and returns how many pieces arrived per second.
func speak(ctx context.Context, all []*talk) float64 {
	counts := make([]int, len(all))
	var wg sync.WaitGroup
	start := time.Now()
	for i, t := range all {
		wg.Go(func() { counts[i] = t.speak(ctx, start) })
	}
	wg.Wait()
	took, sum := time.Since(start).Seconds(), 0
	for _, n := range counts {
		sum += n
	}
	return float64(sum) / took
}

// speak keeps pieces of sound in flight for one slice of time, waits for the last one and returns how many arrived.
func (t *talk) speak(ctx context.Context, start time.Time) (arrived int) {
	for sent := 0; time.Since(start) < relaySlice || arrived < sent; {
		if time.Since(start) < relaySlice && sent-arrived < inFlight {
			if t.conn.Write(ctx, websocket.MessageText, sound) != nil {
				return arrived
			}
			sent++
			continue
		}
		if _, ok := <-t.heard; !ok {
			return arrived
		}
		arrived++
	}
	return arrived
}

// speechStarted measures the time from a piece of sound to the report that speech has started.
func (b *bench) speechStarted(ctx context.Context, ours, bare *talk) error {
	var o, f []time.Duration
	for range soundsHeard {
		for t, into := range map[*talk]*[]time.Duration{ours: &o, bare: &f} {
			start := time.Now()
			if err := t.conn.Write(ctx, websocket.MessageText, sound); err != nil {
				return err
			}
			if _, ok := <-t.heard; !ok {
				return fmt.Errorf("a conversation broke off")
			}
			*into = append(*into, time.Since(start))
		}
	}
	slices.Sort(o)
	slices.Sort(f)
	last := soundsHeard * 99 / 100
	b.rows = append(b.rows, row{"from sound to speech_started, 1 of 200 conversations speaks / bare relay", spread(o),
		spread(f), "99th +" + ms(o[last]-f[last]), "99th <= +2 ms"})
	return nil
}
