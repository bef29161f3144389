package web

import (
	"cmp"
	"fmt"
	"html/template"
	"slices"
	"strings"
	"time"

	"github.com/service-dev/service/backend/internal/analytics"
	"github.com/service-dev/service/backend/internal/attest"
	"github.com/service-dev/service/backend/internal/chart"
	"github.com/service-dev/service/backend/internal/credit"
	"github.com/service-dev/service/backend/internal/gateway"
	"github.com/service-dev/service/backend/internal/gateway/wire"
	"github.com/service-dev/service/backend/internal/usage"
	"github.com/service-dev/service/proto/backendapi"
)

// gatewayPage is the data of the template "dashboard_gateway".
type gatewayPage struct {
	formErrors
	Done     *notice
	Notices  []string // about limits that are almost used up
	Nav      projectNav
	Ranges   []analyticsRange
	Range    analyticsRange
	From     string // the beginning of the range, in UTC
	Totals   []total
	Plots    []spendPlot // nil if no model was called
	Days     []spendRow  // rows by day or hour and model, up to listedSpending
	More     bool        // there are more days
	Refusals []refusalRow
	Caps     capsForm
	Payer    payerForm
	PaidBy   string // the source that pays for calls
	Servers  serversForm
	Attest   attestForm
	Models   []modelRow
	BaseURL  string
	Compared string // the tokens for which Models compares costs; "" if there are none
}

// spendPlot is a chart or a ranking, with the table of its numbers.
type spendPlot struct {
	ID, Title, What string
	Picture         template.HTML // a chart, if Ranks is empty
	Ranks           []rank
	Rows            []spendRow
}

// spendRow is a row of numbers about calls. Label is a time or a model.
type spendRow struct {
	Label, Model, PaidBy           string
	Calls, Failed, In, Out, Amount string
	InClasses, OutClasses          string // how many of the tokens are sound or cached
}

type refusalRow struct {
	Code  string
	Step  usage.Step
	Link  stepLink
	Count string
	Last  shownTime
}

// modelRow is a model that apps can request, or the reason why they cannot.
type modelRow struct {
	gateway.Availability
	About, Reason       string
	Called, Price, Cost string
}

const listedSpending = 150

func gatewayPath(project string) string { return projectPath(project) + "/gateway" }

func (w *Web) gateway(c *call) error { return w.showGateway(c, formErrors{}, nil) }

func (w *Web) gatewayAddress(c *call) error { return c.redirect(gatewayPath(c.project.ID)) }

// showGateway renders the page. entered are the caps from a posted form, or nil.
func (w *Web) showGateway(c *call, f formErrors, entered *capsForm) error {
	return w.showGatewayWith(c, f, entered, nil)
}

// showGatewayWith is like showGateway. apps are the posted settings of attestation, or nil.
func (w *Web) showGatewayWith(c *call, f formErrors, entered *capsForm, apps *attest.Settings) error {
	own, err := w.Dashboard.Credit.Project(c.Context(), c.account.ID, c.project.ID)
	if err != nil {
		return err
	}
	span, path := rangeOf(c), gatewayPath(c.project.ID)
	page := gatewayPage{formErrors: f, Done: c.notice(), Nav: c.projectNav("gateway"), Ranges: rangesAt(span, nil), Range: span,
		BaseURL: strings.TrimSuffix(w.ingestURL(), ingestPath),
		Caps:    newCapsForm(path, own.Caps, own.Day, own.Month, entered).withKeys(own, entered)}
	if page.Notices, err = w.spendingNotices(c, c.project.ID); err != nil {
		return err
	}
	if err := w.addSpending(c, &page); err != nil {
		return err
	}
	if err := w.addModels(c, &page); err != nil {
		return err
	}
	if page.Servers, err = w.servers(c); err != nil {
		return err
	}
	if page.Attest, err = w.attestation(c, apps); err != nil {
		return err
	}
	return w.render(c, page.status(), "dashboard_gateway", page)
}

func (w *Web) changeProjectCaps(c *call) error {
	return w.changeCaps(c, c.project.ID, gatewayPath(c.project.ID), func(f formErrors, entered *capsForm) error {
		return w.showGateway(c, f, entered)
	})
}

// spending is the sum of a group of calls.
type spending struct {
	calls, failed, cancelled, estimated, in, cached, out int64 // tokens of text
	soundIn, soundCached, soundOut                       int64 // tokens of sound
	charged                                              credit.Amount
}

func (s *spending) add(u credit.UsageRow) {
	s.calls, s.failed, s.cancelled = s.calls+u.Calls, s.failed+u.Failed, s.cancelled+u.Cancelled
	s.in, s.cached, s.out = s.in+u.TextIn+u.TextCached, s.cached+u.TextCached, s.out+u.TextOut
	s.soundIn, s.soundCached = s.soundIn+u.AudioIn+u.AudioCached, s.soundCached+u.AudioCached
	s.soundOut += u.AudioOut
	s.estimated, s.charged = s.estimated+u.Estimated, s.charged+u.Charged
}

func (s *spending) row(label string) spendRow {
	return spendRow{Label: label, Calls: grouped(s.calls), Failed: grouped(s.failed), In: grouped(s.in + s.soundIn),
		InClasses: classes(s.soundIn, s.cached+s.soundCached), Out: grouped(s.out + s.soundOut),
		OutClasses: classes(s.soundOut, 0), Amount: dollars(s.charged)}
}

// classes describes the parts of a number of tokens that are not fresh text, or returns "".
func classes(sound, cached int64) string {
	var parts []string
	if sound > 0 {
		parts = append(parts, grouped(sound)+" sound")
	}
	if cached > 0 {
		parts = append(parts, grouped(cached)+" cached")
	}
	return strings.Join(parts, ", ")
}

// modelSource is the key for grouping spending.
type modelSource struct{ model, source string }

// sums holds the calls of a range, summed by time, by model and source, and in total.
type sums struct {
	total spending
	times []time.Time // every hour or day in the range
	at    map[time.Time]*spending
	by    map[modelSource]*spending
	both  map[time.Time]map[modelSource]*spending
}

func newSums(q analytics.Query, step time.Duration) *sums {
	s := &sums{at: map[time.Time]*spending{}, by: map[modelSource]*spending{},
		both: map[time.Time]map[modelSource]*spending{}}
	for t := q.From; !t.After(q.To); t = t.Add(step) {
		s.times, s.at[t], s.both[t] = append(s.times, t), &spending{}, map[modelSource]*spending{}
	}
	return s
}

func (s *sums) add(u credit.UsageRow, step time.Duration) {
	t, key := u.Hour.UTC().Truncate(step), modelSource{u.Model, u.Source}
	if u.Calls == 0 || s.at[t] == nil {
		return
	}
	s.total.add(u)
	s.at[t].add(u)
	for _, by := range []map[modelSource]*spending{s.by, s.both[t]} {
		if by[key] == nil {
			by[key] = &spending{}
		}
		by[key].add(u)
	}
}

// dearest returns the keys in order of descending cost, and by name for equal costs.
func dearest(by map[modelSource]*spending) []modelSource {
	var keys []modelSource
	for k := range by {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b modelSource) int {
		if d := by[b].charged - by[a].charged; d != 0 {
			return int(max(-1, min(1, d)))
		}
		return strings.Compare(a.model+" "+a.source, b.model+" "+b.source)
	})
	return keys
}

// addSpending adds the cost of the calls in the range, and the refused calls.
func (w *Web) addSpending(c *call, page *gatewayPage) error {
	step := page.Range.length()
	q := page.Range.query(w.Now().UTC())
	q.From, q.To = q.From.Truncate(step), q.To.Truncate(step)
	s := newSums(q, step)
	of := credit.UsageQuery{AccountID: c.account.ID, Project: c.project.ID, From: q.From, To: w.Now()}
	err := w.Dashboard.Credit.Usage(c.Context(), of, func(u credit.UsageRow) error {
		s.add(u, step)
		return nil
	})
	if err != nil {
		return err
	}
	page.From = rangeEdge(q.From, page.Range.interval)
	page.Totals = []total{
		{"Spent", dollars(s.total.charged)}, {"Calls", grouped(s.total.calls)}, {"Failed", grouped(s.total.failed)},
		{"Tokens in", grouped(s.total.in + s.total.soundIn)}, {"Tokens out", grouped(s.total.out + s.total.soundOut)},
	}
	if s.total.soundIn+s.total.soundOut > 0 {
		page.Totals = append(page.Totals, total{"Sound in", grouped(s.total.soundIn)},
			total{"Sound out", grouped(s.total.soundOut)})
	}
	if s.total.calls > 0 {
		page.Plots = []spendPlot{s.overTime(page.Range.interval), s.byModel()}
		page.Days = s.table(page.Range.interval)
		page.More = len(page.Days) > listedSpending
		page.Days = page.Days[:min(len(page.Days), listedSpending)]
	}
	refusals, err := w.Dashboard.Credit.Refusals(c.Context(), of)
	for _, r := range refusals {
		step := usage.StepFor(r.Code)
		page.Refusals = append(page.Refusals,
			refusalRow{r.Code, step, stepLinks[step.At], grouped(r.Count), showTime(r.LastAt)})
	}
	return err
}

func (s *sums) overTime(interval string) spendPlot {
	plot := spendPlot{ID: "time", Title: "Spending by " + interval, What: capital(interval) + " (UTC)"}
	picture := chart.Chart{ID: "plot-time", Title: plot.Title, Format: backendapi.Dollars}
	short, long := timeForms(interval)
	most := s.times[0]
	for _, t := range s.times {
		picture.Points = append(picture.Points, chart.Point{Label: t.Format(short), N: int64(s.at[t].charged)})
		plot.Rows = append(plot.Rows, s.at[t].row(t.Format(long)))
		if s.at[t].charged > s.at[most].charged {
			most = t
		}
	}
	picture.Desc = fmt.Sprintf("The highest is %s on %s. The table has every number.", dollars(s.at[most].charged),
		most.Format(long))
	plot.Picture = template.HTML(picture.Bars()) //nolint:gosec // package chart escapes its input
	return plot
}

func (s *sums) byModel() spendPlot {
	plot := spendPlot{ID: "model", Title: "Spending by model", What: "Model"}
	keys := dearest(s.by)
	for i, key := range keys {
		label := key.model
		if by := paidBy(key.source); key.source != credit.SourceCredit {
			label += " (" + by + ")"
		}
		spent := s.by[key].charged
		plot.Rows = append(plot.Rows, s.by[key].row(label))
		if i < shownRanks {
			most := s.by[keys[0]].charged
			plot.Ranks = append(plot.Ranks, rank{label, dollars(spent), share(float64(spent), float64(most))})
		}
	}
	return plot
}

// table returns the rows of the table, newest first.
func (s *sums) table(interval string) (rows []spendRow) {
	_, long := timeForms(interval)
	for _, t := range slices.Backward(s.times) {
		for _, key := range dearest(s.both[t]) {
			row := s.both[t][key].row(t.Format(long))
			row.Model, row.PaidBy = key.model, paidBy(key.source)
			rows = append(rows, row)
		}
	}
	return rows
}

// sources are the labels for the ways to pay.
var sources = map[string]string{
	credit.SourceCredit: "credit", credit.SourceOwnKey: "own key", credit.SourceLocal: "local, free",
	credit.SourceScript: "script, free", usage.NothingPays: "nothing: no model is available",
}

func paidBy(source string) string { return cmp.Or(sources[source], source) }

// comparedDays is the number of days whose token counts are used to compare model costs.
const comparedDays = 30

// addModels lists the models, why a model is unavailable, and what the tokens of the last days would cost with each
// model.
func (w *Web) addModels(c *call, page *gatewayPage) error {
	all, err := w.Dashboard.Models.Available(c.Context(), gateway.Caller{Account: c.account.ID, Project: c.project.ID})
	if err != nil {
		return err
	}
	var used spending
	now, ifCredit, models, scripted := w.Now(), credit.Amount(0), modelsByID(all), false
	err = w.Dashboard.Credit.Usage(c.Context(), credit.UsageQuery{AccountID: c.account.ID, Project: c.project.ID,
		From: now.AddDate(0, 0, -comparedDays), To: now}, func(u credit.UsageRow) error {
		used.add(u)
		ifCredit += ifCreditPaid(u, models)
		scripted = scripted || u.Source == credit.SourceScript && u.Calls > 0
		return nil
	})
	if err != nil {
		return err
	}
	source, err := w.Dashboard.KeySources.KeySource(c.Context(), c.account.ID, c.project.ID)
	if err != nil {
		return err
	}
	page.PaidBy = paidBy(usage.PaysFor(source, all, scripted))
	if page.Payer, err = w.payer(c, source, all, ifCredit); err != nil {
		return err
	}
	tokens := wire.Usage{In: used.in, Cached: used.cached, Out: used.out}
	if used.calls > 0 {
		page.Compared = fmt.Sprintf("%s tokens in and %s out, in %d days", grouped(used.in), grouped(used.out), comparedDays)
	}
	for _, a := range all {
		row := modelRow{Availability: a, Reason: capital(a.Why)}
		if m := a.Model; m != nil {
			row.About, row.Called = m.Name+", "+m.Provider.Name, m.API.Route()
			if row.Price = priceOf(m); row.Price != "" && m.API != wire.Realtime {
				row.Cost = backendapi.Dollars(m.Prices.Of(tokens))
			}
			if a.ID != m.ID {
				row.About = "means " + m.ID
			}
		}
		page.Models = append(page.Models, row)
	}
	return nil
}

// priceOf returns the price of a million tokens, or "" if it is unknown.
func priceOf(m *gateway.Model) string {
	switch {
	case m.Provider.Local:
		return "free"
	case m.Why != "":
		return ""
	case m.API == wire.Realtime:
		p := m.VoicePrices()
		return fmt.Sprintf("%s in, %s out for sound", backendapi.Dollars(p.AudioIn), backendapi.Dollars(p.AudioOut))
	}
	return fmt.Sprintf("%s in, %s out", backendapi.Dollars(m.Prices.In), backendapi.Dollars(m.Prices.Out))
}
