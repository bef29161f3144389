package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"
)

const (
	senders     = 8
	batchEvents = 500
	eachSends   = 2 // batches per slice
	ingestKeys  = 50
	ingestApp   = "com.example.bench"
	million     = 1_000_000
)

// ingest measures how many events of shipped apps are counted per second, compared with a baseline handler that
// decodes the same batches and stores only the ids. It also measures the analytics page with a million events.
func (b *bench) ingest() error {
	return onDatabases("events of shipped apps", b.ingestOn)
}

func (b *bench) ingestOn(engine, database string, bareArgs ...string) error {
	backend, who, err := b.startLinked(database)
	if err != nil {
		return err
	}
	defer backend.stop()
	var keys []string // many, because events are limited per key and minute
	if keys, err = who.projectKeys(ingestKeys); err != nil {
		return err
	}
	bare, err := b.startBare("bareingest", bareArgs...)
	if err != nil {
		return err
	}
	defer bare.stop()
	var ours, floor []time.Duration
	sent := 0
	for round := range max(20, b.runs/2) {
		bodies := batches(senders * eachSends)
		sent += len(bodies) * batchEvents
		o, err := sendAll(backend.url, keys[round%len(keys)], bodies)
		if err != nil {
			return err
		}
		f, err := sendAll(bare.url, keys[0], bodies)
		if err != nil {
			return err
		}
		ours, floor = append(ours, o), append(floor, f)
	}
	const slice = senders * eachSends * batchEvents
	o, f := slice/median(ours).Seconds(), slice/median(floor).Seconds()
	b.rows = append(b.rows, ratesRow("events of shipped apps counted, batches of 500, "+engine+
		" / bare handler that keeps their ids", o, f, ""))
	for n := 0; sent < million; n++ {
		bodies := batches(senders * 10)
		if _, err := sendAll(backend.url, keys[n%len(keys)], bodies); err != nil {
			return err
		}
		sent += len(bodies) * batchEvents
	}
	for _, span := range []string{"24h", "7d"} {
		var times []time.Duration
		for range pageRuns {
			err := measure(&times, func() error {
				page, _, err := who.Browser.Get(backend.url + "/account/projects/" + ingestApp + "/analytics?range=" + span)
				if err == nil && !strings.Contains(page, "<svg class=\"chart\"") {
					err = errors.New("the analytics page has no plot")
				}
				return err
			})
			if err != nil {
				return err
			}
		}
		b.rows = append(b.rows, row{fmt.Sprintf("analytics page of %s over a million events, %s", span, engine),
			ms(median(times)), "", "", "< 100 ms"})
	}
	return nil
}

// batches returns n request bodies with new events of a thousand installs, mostly from the last hour and some from
// the last few days.
func batches(n int) [][]byte {
	bodies := make([][]byte, n)
	now := time.Now()
	for i := range bodies {
		var b struct {
			Events [batchEvents]map[string]any `json:"events"`
		}
		for j := range b.Events {
			ago := rand.Int64N(int64(time.Hour))
			if rand.IntN(50) == 0 {
				ago = rand.Int64N(int64(70 * time.Hour))
			}
			e := map[string]any{"id": fmt.Sprintf("%016x", rand.Uint64()), "type": "session",
				"at":        now.Add(-time.Duration(ago)).UnixMilli(),
				"installId": fmt.Sprintf("install-%04d", rand.IntN(1000)), "appVersion": []string{"1.4.0", "1.5.0"}[rand.IntN(2)],
				"platform": "ios", "deviceModel": "even_g1"}
			switch rand.IntN(10) {
			case 0:
				e["type"], e["name"] = "error", []string{"timeout", "camera.denied"}[rand.IntN(2)]
			case 1, 2, 3, 4, 5, 6:
				e["type"], e["name"] = "event", fmt.Sprint("screen.", rand.IntN(20))
			}
			b.Events[j] = e
		}
		bodies[i], _ = json.Marshal(b)
	}
	return bodies
}

// sendAll sends each body over its own connection and returns the total time.
func sendAll(url, key string, bodies [][]byte) (time.Duration, error) {
	return timed(func() error {
		return together(senders, len(bodies)/senders, func(n int) error { return sendBatch(url, key, bodies[n]) })
	})
}

var ingestClient = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: senders}}

func sendBatch(url, key string, body []byte) error {
	req, err := http.NewRequest(http.MethodPost, url+"/api/analytics", bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+key)
	status, answer, err := do(ingestClient, req)
	if err != nil {
		return err
	}
	var got struct{ Accepted int }
	if err := json.Unmarshal(answer, &got); err != nil || got.Accepted != batchEvents {
		return fmt.Errorf("send batch: status %d: %s", status, answer)
	}
	return nil
}
