// Package usage reports the cost of a project's calls through the AI gateway: sums, caps, the account's credit,
// refusals with the next step, and the models that apps can use. Agents and owners read the same report. The package
// contains no HTTP or SQL code.
package usage

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/service-dev/service/backend/internal/credit"
	"github.com/service-dev/service/backend/internal/gateway"
	"github.com/service-dev/service/proto/backendapi"
)

// Service creates reports. Callers must check that the project belongs to the account.
type Service struct {
	Ledger     *credit.Ledger
	Models     *gateway.Service
	KeySources gateway.KeySources
	Now        func() time.Time
}

// NothingPays is the key source of a project for which no model is available.
const NothingPays = "none"

// PaysFor returns the source that pays for a project's next call: the source of the model assistant, or otherwise of
// the first available model. setting is the project's choice. If no model is available, scripted determines whether
// scripts answered calls.
func PaysFor(setting string, models []gateway.Availability, scripted bool) string {
	available := slices.IndexFunc(models, func(a gateway.Availability) bool { return a.Why == "" && a.Model != nil })
	switch {
	case available >= 0 && models[available].Model.Provider.Local:
		return credit.SourceLocal
	case setting == gateway.KeySourceOwn:
		return credit.SourceOwnKey
	case available >= 0:
		return credit.SourceCredit
	case scripted:
		return credit.SourceScript
	}
	return NothingPays
}

// Unit is the time that one point of the series covers.
type Unit time.Duration

// Units of the series.
const (
	Hour = Unit(time.Hour)
	Day  = Unit(24 * time.Hour)
)

// Query selects the last Points hours or days in UTC, including the current one.
type Query struct {
	Unit   Unit
	Points int
}

// Report is the report on a project's calls.
type Report struct {
	From, To time.Time
	Unit     Unit

	Credit            credit.Account
	KeySource         string // result of PaysFor
	Caps              []Cap  // the caps set for the project and its account
	Totals            Sums
	ByModel, BySource []Part // most expensive first
	Series            []Point
	Refusals          []Refusal
	Models            []gateway.Availability
}

// Cap is a spending cap, or the allowance of calls with a project key alone, with the amount already used in the
// current period.
type Cap struct {
	Of, Period string // credit.OfProject or OfAccount; credit.CapDay, CapMonth or CapKeys
	Limit      credit.Amount
	Used       credit.Spent
	ResetsAt   time.Time
}

// Sums holds totals over a set of calls. Refused calls count only in Refused.
type Sums struct {
	Calls, Failed, Cancelled, Refused, Estimated int64
	TextIn, TextCached, TextOut                  int64
	AudioIn, AudioCached, AudioOut               int64 // tokens of sound
	Duration                                     time.Duration
	Charged                                      credit.Amount
}

func (s *Sums) add(r credit.UsageRow) {
	s.Calls += r.Calls
	s.Failed += r.Failed
	s.Cancelled += r.Cancelled
	s.Refused += r.Refused
	s.Estimated += r.Estimated
	s.TextIn += r.TextIn
	s.TextCached += r.TextCached
	s.TextOut += r.TextOut
	s.AudioIn += r.AudioIn
	s.AudioCached += r.AudioCached
	s.AudioOut += r.AudioOut
	s.Duration += r.Duration
	s.Charged += r.Charged
}

// Part holds the sums of one model or source.
type Part struct {
	Name string
	Sums
}

// Point holds the sums of the hour or day that begins at At.
type Point struct {
	At time.Time
	Sums
}

// Refusal is the number of calls refused with one code, and what to do about them.
type Refusal struct {
	credit.Refusal
	Step
}

// Report returns the report on a project.
func (s *Service) Report(ctx context.Context, account, project string, q Query) (r Report, err error) {
	now := s.Now().UTC()
	unit := time.Duration(q.Unit)
	r.From, r.To, r.Unit = now.Truncate(unit).Add(-time.Duration(q.Points-1)*unit), now, q.Unit
	for i := range q.Points {
		r.Series = append(r.Series, Point{At: r.From.Add(time.Duration(i) * unit)})
	}
	if r.Credit, err = s.Ledger.Account(ctx, account); err != nil {
		return Report{}, err
	}
	own, err := s.Ledger.Project(ctx, account, project)
	if err != nil {
		return Report{}, err
	}
	r.addCaps(credit.OfProject, own)
	r.addCaps(credit.OfAccount, credit.Project{Caps: r.Credit.Caps, Day: r.Credit.Day, Month: r.Credit.Month})
	of := credit.UsageQuery{AccountID: account, Project: project, From: r.From,
		To: r.From.Add(time.Duration(q.Points) * unit)} // a process whose clock is ahead may have counted later calls
	if err := s.Ledger.Usage(ctx, of, func(row credit.UsageRow) error { r.add(row); return nil }); err != nil {
		return Report{}, fmt.Errorf("read usage: %w", err)
	}
	for _, parts := range [][]Part{r.ByModel, r.BySource} {
		slices.SortStableFunc(parts, func(a, b Part) int { return cmp.Compare(b.Charged, a.Charged) })
	}
	refusals, err := s.Ledger.Refusals(ctx, of)
	if err != nil {
		return Report{}, fmt.Errorf("read refusals: %w", err)
	}
	for _, one := range refusals {
		r.Refusals = append(r.Refusals, Refusal{one, StepFor(one.Code)})
	}
	if r.Models, err = s.Models.Available(ctx, gateway.Caller{Account: account, Project: project}); err != nil {
		return Report{}, err
	}
	setting, err := s.KeySources.KeySource(ctx, account, project)
	if err != nil {
		return Report{}, fmt.Errorf("read key source: %w", err)
	}
	r.KeySource = PaysFor(setting, r.Models, slices.ContainsFunc(r.BySource, func(p Part) bool {
		return p.Name == credit.SourceScript && p.Calls > 0
	}))
	return r, nil
}

func (r *Report) add(row credit.UsageRow) {
	r.Totals.add(row)
	if name := row.Model; name != "" { // empty for refused calls without a known model
		if !backendapi.IsName(name, backendapi.MaxModelID) {
			name = otherModels
		}
		r.ByModel = addPart(r.ByModel, name, row)
	}
	r.BySource = addPart(r.BySource, row.Source, row)
	r.Series[row.Hour.Sub(r.From)/time.Duration(r.Unit)].add(row)
}

// otherModels is the name for models whose IDs are not valid in a response. Earlier versions counted calls of such
// models.
const otherModels = "other"

func addPart(parts []Part, name string, row credit.UsageRow) []Part {
	i := slices.IndexFunc(parts, func(p Part) bool { return p.Name == name })
	if i < 0 {
		i, parts = len(parts), append(parts, Part{Name: name})
	}
	parts[i].add(row)
	return parts
}

// Summary describes the report in a few sentences.
func (r Report) Summary() string {
	words := []string{fmt.Sprintf("%d calls cost %s in the last %d %s.", r.Totals.Calls, dollars(r.Totals.Charged),
		len(r.Series), r.unitName())}
	for _, c := range r.Caps {
		of := fmt.Sprintf("the %s's %s cap of %s", c.Of, c.Period, dollars(c.Limit))
		if c.Period == credit.CapKeys {
			of = fmt.Sprintf("today's %s for calls with a project key", dollars(c.Limit))
		}
		words = append(words, fmt.Sprintf("%s of %s are spent.", dollars(c.Used.Spent), of))
	}
	left := dollars(r.Credit.Posted) + " of credit left"
	if r.Credit.Held > 0 {
		left += ", " + dollars(r.Credit.Held) + " of it reserved by calls in flight"
	}
	words = append(words, left+".")
	if r.Credit.Locked {
		words = append(words, "It cannot be spent before the owner has confirmed the account's e-mail address.")
	}
	if n := r.Totals.Failed; n > 0 {
		words = append(words, fmt.Sprintf("%d calls failed at the provider.", n))
	}
	if n := r.Totals.Refused; n > 0 {
		why := "."
		if len(r.Refusals) > 0 {
			why = ", most often " + r.Refusals[0].Code + ". " + r.Refusals[0].Hint()
		}
		words = append(words, fmt.Sprintf("%d calls were refused%s", n, why))
	}
	return strings.Join(words, " ")
}

func (r Report) unitName() string {
	if r.Unit == Hour {
		return "hours"
	}
	return "days"
}

func dollars(a credit.Amount) string { return "$" + a.String() }

// addCaps adds the caps that are set.
func (r *Report) addCaps(of string, p credit.Project) {
	day, month := credit.Resets(r.To)
	for _, c := range []struct {
		limit  *credit.Amount
		period string
		used   credit.Spent
		resets time.Time
	}{{p.Caps.Day, credit.CapDay, p.Day, day}, {p.Caps.Month, credit.CapMonth, p.Month, month},
		{p.Caps.Keys, credit.CapKeys, p.Keys, day}} {
		if c.limit != nil {
			r.Caps = append(r.Caps, Cap{of, c.period, *c.limit, c.used, c.resets})
		}
	}
}
