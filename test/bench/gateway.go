package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/service-dev/service/test/llmtest"
)

const (
	streamClients = 64
	eachStreams   = 16 // calls per client and slice
	streamRounds  = 9
	openStreams   = 200
	keyAccounts   = 4 // each with linkKeys keys, because calls are limited per key and per account
)

// gateway measures streamed chats, including authorisation, hold, settlement and usage row, compared with a reverse
// proxy from the standard library that scans the same provider's responses for usage.
func (b *bench) gateway() error { return onDatabases("the AI gateway", b.gatewayOn) }

// chats is a gateway with keys of keyAccounts accounts, and the baseline proxy.
type chats struct {
	backend, proxy, provider *server
	keys                     []string
	cut, proxyCut            atomic.Int64 // number of broken streams
	next                     atomic.Int64 // index of the next key
}

func (b *bench) startChats(database string) (c *chats, stop func(), err error) {
	c = &chats{}
	var running []*server
	stop = func() {
		for _, s := range slices.Backward(running) {
			s.stop()
		}
	}
	start := func(into **server, f func() (*server, error)) {
		if err == nil {
			if *into, err = f(); err == nil {
				running = append(running, *into)
			}
		}
	}
	start(&c.provider, func() (*server, error) { return b.startBare("bareprovider", llmtest.Key) })
	start(&c.proxy, func() (*server, error) { return b.startBare("bareproxy", c.provider.url) })
	start(&c.backend, func() (*server, error) {
		dir, err := os.MkdirTemp(b.work, "catalogue")
		if err != nil {
			return nil, err
		}
		catalogue, err := llmtest.WriteCatalogue(dir, c.provider.url+"/v1", llmtest.Good, "waits")
		if err != nil {
			return nil, err
		}
		backend, who, err := b.startLinked(database, "SERVICE_BACKEND_GATEWAY_CATALOGUE="+catalogue,
			"SERVICE_BACKEND_FREE_CREDIT=1000.00")
		if err != nil {
			return nil, err
		}
		if c.keys, err = accountKeys(who); err != nil {
			backend.stop()
			return nil, err
		}
		return backend, nil
	})
	if err != nil {
		stop()
	}
	return c, stop, err
}

// accountKeys creates the keys of the account that is linked already, and of further accounts.
func accountKeys(who *linked) (keys []string, err error) {
	for i := range keyAccounts {
		if i > 0 {
			if who, err = link(who.Base, fmt.Sprintf("bench%d@example.org", i)); err != nil {
				return nil, err
			}
		}
		more, err := who.projectKeys(linkKeys)
		if err != nil {
			return nil, err
		}
		keys = append(keys, more...)
	}
	return keys, nil
}

func (b *bench) gatewayOn(engine, database string, _ ...string) error {
	c, stop, err := b.startChats(database)
	if err != nil {
		return err
	}
	defer stop()
	client := newLoad(openStreams)
	defer client.CloseIdleConnections()
	if err := b.openStreams(c, client, engine); err != nil {
		return err
	}
	var ours, floor, oursFirst, floorFirst []time.Duration
	for round := range b.runs * 10 { // on one connection
		kept := [2]*[]time.Duration{&oursFirst, &floorFirst}
		if round < b.runs { // the first rounds warm up
			kept = [2]*[]time.Duration{nil, nil}
		}
		for i, url := range []string{c.backend.url, c.proxy.url} {
			if err := c.chat(client, url, kept[i]); err != nil {
				return err
			}
		}
	}
	for range streamRounds {
		for url, into := range map[string]*[]time.Duration{c.backend.url: &ours, c.proxy.url: &floor} {
			if err := measure(into, func() error {
				return together(streamClients, eachStreams, func(int) error { return c.chat(client, url, nil) })
			}); err != nil {
				return err
			}
		}
	}
	const slice = streamClients * eachStreams
	b.rows = append(b.rows,
		ratesRow("streamed chats, 64 connections, "+engine+" / reverse proxy with a scan for usage",
			slice/median(ours).Seconds(), slice/median(floor).Seconds(), ">= 0.75"),
		row{"first byte of a streamed chat, 1 connection, " + engine + " / the same", spread(oursFirst), spread(floorFirst),
			"+" + ms(median(oursFirst)-median(floorFirst)), "<= +0.30 ms"},
		row{"streams that were cut, of all these, " + engine + " / the same", fmt.Sprint(c.cut.Load()),
			fmt.Sprint(c.proxyCut.Load()), "", "0"})
	return b.compareBooks(c, engine)
}

// chat makes one call and reads the whole response. It appends the time to the first byte to first.
func (c *chats) chat(client *http.Client, url string, first *[]time.Duration) error {
	start := time.Now()
	answer, err := c.open(client, url, llmtest.Good)
	if err != nil {
		return err
	}
	defer answer.Close()
	if _, err := io.ReadFull(answer, make([]byte, 1)); err != nil {
		return err
	}
	if first != nil {
		*first = append(*first, time.Since(start))
	}
	rest, err := io.ReadAll(answer)
	if err != nil || !bytes.HasSuffix(rest, []byte("data: [DONE]\n\n")) {
		if url == c.proxy.url {
			c.proxyCut.Add(1)
		} else {
			c.cut.Add(1)
		}
	}
	return nil
}

// open starts one call and returns the response body.
func (c *chats) open(client *http.Client, url, model string) (io.ReadCloser, error) {
	req, err := http.NewRequest(http.MethodPost, url+"/v1/chat/completions", strings.NewReader(`{"model":"`+model+
		`","stream":true,"stream_options":{"include_usage":true},`+
		`"messages":[{"role":"user","content":"Say something short."}]}`))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+c.keys[int(c.next.Add(1))%len(c.keys)])
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 200))
		resp.Body.Close()
		return nil, fmt.Errorf("chat call: status %d: %s", resp.StatusCode, text)
	}
	return resp.Body, nil
}

// openStreams measures the memory of a new backend while streams are open.
func (b *bench) openStreams(c *chats, client *http.Client, engine string) error {
	before, _, err := memory(c.backend.pid)
	if err != nil {
		return err
	}
	var open []io.ReadCloser
	defer func() {
		for _, answer := range open {
			_, _ = io.Copy(io.Discard, answer)
			answer.Close()
		}
	}()
	for range openStreams {
		answer, err := c.open(client, c.backend.url, "waits")
		if err != nil {
			return err
		}
		open = append(open, answer)
		if _, err := answer.Read(make([]byte, 1)); err != nil {
			return err
		}
	}
	rss, _, err := memory(c.backend.pid)
	if err != nil {
		return err
	}
	b.rows = append(b.rows, row{fmt.Sprintf("service-backend, resident with %d open streams, %s (before: %s)", openStreams,
		engine, mb(before)), mb(rss), "", "", "<= 60 MB"})
	resp, err := http.Post(c.provider.url+"/release", "", nil)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

// compareBooks compares the ledger with the provider's own records.
func (b *bench) compareBooks(c *chats, engine string) error {
	resp, err := http.Get(c.provider.url + "/book")
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	var book struct{ Calls, In, Out int64 }
	if err := json.NewDecoder(resp.Body).Decode(&book); err != nil {
		return err
	}
	var ledger struct{ UsedMicroUSD, OperatorMicroUSD, OpenHolds int64 }
	for range 100 { // the last calls may not be settled yet
		cmd := b.command("service-backend", "admin", "ledger", "--json")
		cmd.Env = c.backend.env
		out, err := cmd.Output()
		if err == nil {
			err = json.Unmarshal(out, &ledger)
		}
		if err != nil {
			return fmt.Errorf("read the ledger: %w", err)
		}
		if ledger.OpenHolds == 0 {
			break
		}
	}
	prices := llmtest.CataloguePrices
	bill := book.In*prices.In + book.Out*prices.Out
	b.rows = append(b.rows,
		row{fmt.Sprintf("ledger after %d calls, micro-USD, %s / the provider's bill", book.Calls, engine),
			fmt.Sprint(ledger.UsedMicroUSD), fmt.Sprint(bill), ratio(float64(ledger.UsedMicroUSD), float64(bill)), "equal"})
	return nil
}
