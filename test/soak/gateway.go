//go:build linux

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/service-dev/service/proto/backendapi"
	"github.com/service-dev/service/test/llmtest"
)

// gateway tracks the cost of model calls during the run.
type gateway struct {
	apps   []*modelApp
	greedy *greedy
	// Apps hold a read lock on calling from the start of calls until their charge is known. So no call is in flight
	// while calling is locked for writing.
	calling sync.RWMutex
}

const (
	modelApps    = 6 // half of them per account; the first one has a cap, and the last one pays with its own key
	ledgerChecks = time.Minute
	// swept is the maximum lifetime of a hold of a killed backend: its lease plus the interval between two sweeps.
	swept = 100 * time.Second
	// ownKeys is the provider that projects store their own keys for.
	ownKeys = "openai"
)

// honest lists the models whose provider reports exactly what it bills. All other models report something else, or
// fail.
var honest = []string{llmtest.Good, llmtest.OneByte, llmtest.CRLF, llmtest.UsageNull, llmtest.UsageNoChoices,
	llmtest.UsageWithDelta, llmtest.HangsAtEnd, llmtest.EchoesKey}

// dishonest lists all other models. The apps abandon calls to models that hang.
var dishonest = append([]string{llmtest.UsageNone, llmtest.UsageTwice, llmtest.UsageStrings, llmtest.UsageNegative,
	llmtest.UsageHuge, llmtest.UsageIsNull, llmtest.CachedAbove, llmtest.LongLine, llmtest.CutBeforeUsage,
	llmtest.CutAfterUsage, llmtest.EndsEarly, llmtest.ErrorInside, llmtest.ErrorFrame,
	llmtest.Status401, llmtest.Status404,
	llmtest.Status400EchoKey, llmtest.Status429, llmtest.Status429Retry, llmtest.Status429Spent, llmtest.Status500,
	llmtest.Status529, llmtest.HTML502, llmtest.HTML200, llmtest.Redirects, llmtest.WrongLength, llmtest.Gzip,
	llmtest.DropsAfterRead, llmtest.FailsOnce}, hanging...)

var hanging = []string{llmtest.Hangs, llmtest.HangsInside, llmtest.HangsAfterUsage}

// reasoning is how long a model reasons invisibly. patience is how long a model hangs before its provider gives up.
const (
	reasoning = 6 * time.Second
	patience  = 8 * time.Second
)

// offerModels starts the model provider and returns the backend settings for it.
func (w *testbed) offerModels() (env []string, err error) {
	dir := filepath.Join(w.root, "models")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	w.provider = llmtest.Start()
	w.provider.Reasoning, w.provider.Patience = reasoning, patience
	catalogue, err := llmtest.WriteCatalogue(dir, w.provider.URL,
		slices.Concat(honest, dishonest, []string{llmtest.Reasons, llmtest.AboveMax})...)
	if err != nil {
		return nil, err
	}
	if err := llmtest.AddVoices(catalogue, slices.Concat(honestVoices, dishonestVoices)...); err != nil {
		return nil, err
	}
	keys := filepath.Join(dir, "keys.yaml")
	text, err := os.ReadFile(catalogue)
	if err != nil {
		return nil, err
	}
	for path, text := range map[string]string{
		catalogue: strings.Replace(string(text), "{id: fake,", "{id: fake, own_keys: "+ownKeys+",", 1),
		keys: "providers:\n  - {id: " + ownKeys + ", name: OpenAI, pattern: '.', test: {url: 'http://127.0.0.1:1/', " +
			"header: Authorization, prefix: 'Bearer '}}\n",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return nil, err
		}
	}
	return []string{"SERVICE_BACKEND_GATEWAY_CATALOGUE=" + catalogue, "SERVICE_BACKEND_CREDENTIAL_PROVIDERS=" + keys,
		"SERVICE_BACKEND_FREE_CREDIT=1000.00"}, nil
}

// startApps creates the apps with their projects.
func (s *soak) startApps() error {
	for n := range modelApps {
		a := newModelApp(s, n)
		var err error
		if a.key, err = a.owner.ProjectKey(a.project); err != nil {
			return err
		}
		switch n {
		case 0:
			err = a.raiseCap()
		case modelApps - 1:
			err = a.payByOwnKey()
		}
		if err != nil {
			return fmt.Errorf("set up %s: %w", a.project, err)
		}
		s.gateway.apps = append(s.gateway.apps, a)
	}
	return s.startGreedy()
}

// ledger is the operator's view of the ledger.
type ledger struct {
	OK        bool
	Used      int64 `json:"usedMicroUsd"`
	Operator  int64 `json:"operatorMicroUsd"`
	OpenHolds int
}

func (s *soak) readLedger() (l ledger, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	cmd := s.command(ctx, "service-backend", "admin", "ledger", "--json")
	cmd.Env = s.backend.env
	out, err := cmd.Output()
	if json.Unmarshal(out, &l) == nil { // the command exits with 1 if the ledger does not balance
		err = nil
	}
	return l, err
}

// checkLedger repeatedly compares the ledger with the charges until ctx ends.
func (s *soak) checkLedger(ctx context.Context) {
	for pause(ctx, ledgerChecks); ctx.Err() == nil; pause(ctx, ledgerChecks) {
		s.gateway.calling.Lock()
		s.compareLedger()
		s.gateway.calling.Unlock()
	}
}

// compareLedger compares the ledger, while no app makes a call, with the charges in the usage that the apps read.
// Only calls of the greedy account cost the operator money. The gateway may still be settling calls that this account
// abandoned in a burst interrupted by a kill.
func (s *soak) compareLedger() {
	var charged int64
	var l ledger
	var err error
	if !eventually(recovery, func() bool {
		if err = s.gateway.greedy.readUsage(); err != nil {
			return false
		}
		charged = s.gateway.greedy.charged
		for _, a := range s.gateway.apps {
			charged += a.seen.MicroUSD
		}
		l, err = s.readLedger()
		return err == nil && l.OK && l.Used-l.Operator == charged
	}) {
		s.results.report("the ledger %+v, %v does not match the projects' usage of %d micro-USD", l, err, charged)
	}
	s.gateway.greedy.compare(l)
	s.results.answered("ledger compared at rest", ok)
}

// compareMoney compares all amounts with each other and with the provider's records.
func (s *soak) compareMoney() {
	var l ledger
	if !eventually(swept, func() bool { l, _ = s.readLedger(); return l.OpenHolds == 0 && l.OK }) {
		s.results.report("%s after the last call, calls hold money: %+v", swept, l)
	}
	s.compareLedger()
	g := s.gateway.greedy
	s.results.note("calls of the greedy account", fmt.Sprintf("billed %d, charged %d, paid by the operator %d, "+
		"lost with a killed backend %d micro-USD", g.billed, g.charged, l.Operator, g.lost))
	for _, a := range s.gateway.apps {
		a.compareViews(s)
	}
	s.compareBook()
}

// compareViews compares the project's page, the API and the tool with the app's own records.
func (a *modelApp) compareViews(s *soak) {
	page, _, err := a.owner.Browser.Get(a.owner.Base + a.page())
	if want := "<dt>Spent</dt><dd>" + backendapi.Dollars(a.seen.MicroUSD) + "</dd>"; !strings.Contains(page, want) {
		s.results.report("%s: the page lacks %s (%v): %.300s", a.project, want, err,
			page[max(0, strings.Index(page, "<dt>Spent")):])
	}
	now, err := a.usage()
	if now.Totals != a.seen {
		s.results.report("%s: the usage is %+v, was %+v (%v)", a.project, now.Totals, a.seen, err)
	}
	if a.owner != s.people[len(s.people)-1] {
		return
	}
	answer, outcome, err := s.agents[0].call("getGatewayUsage", map[string]any{"project": a.project})
	totals, _ := answer["totals"].(map[string]any)
	if said, _ := totals["microUsd"].(float64); outcome != ok || int64(said) != a.seen.MicroUSD {
		s.results.report("%s: getGatewayUsage says %v (%s, %v), want %d", a.project, totals, outcome, err, a.seen.MicroUSD)
	}
}

// entry is a call or turn in the provider's records, with its price in micro-USD.
type entry struct {
	id   string
	bill int64
}

// bookmark is a place in the provider's records.
type bookmark struct{ calls, answers int }

func (w *testbed) bookmark() bookmark {
	return bookmark{w.provider.Len(), len(w.provider.Answers())}
}

// entries returns the provider's records since from.
func (w *testbed) entries(from bookmark) (all []entry) {
	for _, c := range w.provider.Since(from.calls) {
		all = append(all, entry{callID(c), c.Bill(llmtest.CataloguePrices)})
	}
	for _, answer := range w.provider.AnswersSince(from.answers) {
		all = append(all, entry{answer.Said, answer.Bill(llmtest.CatalogueVoicePrices)})
	}
	return all
}

// compareBook compares the provider's records with the charges. The provider's bill for answers that reached their
// app must have been charged exactly. The rest of the bill is listed by the reason for not charging it.
func (s *soak) compareBook() {
	known, charged, count := map[string]string{}, map[string]int64{}, map[string]int{}
	for _, a := range s.gateway.apps {
		maps.Copy(known, a.ends)
		for end, amount := range a.charged {
			charged[end] += amount
		}
	}
	billed := map[string]int64{}
	for _, e := range s.entries(bookmark{}) {
		if strings.HasPrefix(e.id, greedyProject) {
			continue
		}
		end := known[e.id]
		if end == "" {
			s.results.report("the provider received a call twice, or one that no app made: %q", e.id)
		}
		delete(known, e.id)
		billed[end] += e.bill
		count[end]++
	}
	for _, end := range slices.Sorted(maps.Keys(charged)) {
		s.results.note(end, fmt.Sprintf("%d; billed %d, charged %d micro-USD", count[end], billed[end], charged[end]))
	}
	for _, end := range []string{ofCalls + answered, ofTurns + answered} {
		if billed[end] != charged[end] || billed[end] == 0 {
			s.results.report("the provider bills %d micro-USD for %s, charged: %d", billed[end], end, charged[end])
		}
	}
}
