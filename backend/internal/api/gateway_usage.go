package api

import (
	"net/url"
	"time"

	"github.com/service-dev/service/backend/internal/credit"
	"github.com/service-dev/service/backend/internal/gateway"
	"github.com/service-dev/service/backend/internal/grants"
	"github.com/service-dev/service/backend/internal/usage"
	"github.com/service-dev/service/proto/backendapi"
)

// usageFields returns the field whose grant is required to read a usage report.
func usageFields(*call) ([]string, error) { return []string{grants.GatewayUsage}, nil }

func (a *API) reportUsage(c *call) (any, error) {
	q, err := usageQuery(c.URL.Query())
	if err != nil {
		return nil, err
	}
	r, err := a.GatewayUsage.Report(c.Context(), c.who.AccountID, c.project.ID, q)
	if err != nil {
		return nil, err
	}
	return usageOf(c.project.ID, r, c.grants), nil
}

// maxHours is the longest range of an hourly report, in hours.
const maxHours = 7 * 24

// usageQuery reads ?range and ?interval. The default is the last 7 days by day.
func usageQuery(values url.Values) (q usage.Query, err error) {
	bad := func(what string) (usage.Query, error) {
		return q, invalidRequest(what, "Send range=24h, 7d, 30d or 90d; interval=hour, up to 7d, or day.")
	}
	name, interval := values.Get("range"), values.Get("interval")
	if !values.Has("range") {
		name = "7d"
	}
	span, ok := ranges[name]
	if !ok {
		return bad("range must be 24h, 7d, 30d or 90d")
	}
	switch {
	case interval == "hour" || !values.Has("interval") && name == "24h":
		q = usage.Query{Unit: usage.Hour, Points: int(span / time.Hour)}
		if q.Points > maxHours {
			return bad("the range is too long for interval=hour")
		}
	case interval == "day" || !values.Has("interval"):
		q = usage.Query{Unit: usage.Day, Points: int(span / (24 * time.Hour))}
	default:
		return bad("interval must be hour or day")
	}
	return q, nil
}

// usageOf returns the parts of a report that the grants let an agent read. Without the grants for the text and
// the realtime model, it omits the names of the models that were called. Without the grant for credentials, it hides
// whether the project has a key.
func usageOf(project string, r usage.Report, g grants.Grants) backendapi.GatewayUsage {
	showModel := g.Of(grants.Assistant, grants.TextModel).Allows(grants.Read)
	out := backendapi.GatewayUsage{
		Project: project, Range: backendapi.GatewayRange{From: timestamp(r.From), To: timestamp(r.To)}, Interval: "day",
		Credit: backendapi.GatewayCredit{
			BalanceMicroUSD: int64(r.Credit.Posted), ReservedMicroUSD: int64(r.Credit.Held),
			FreeMicroUSD: int64(r.Credit.Free), Locked: r.Credit.Locked,
			TopUp: textOrNull(r.Credit.TopUpURL),
		},
		Caps: capsOf(r.Caps), Totals: sumsOf(r.Totals),
		Series: convert(r.Series, func(p usage.Point) backendapi.GatewayPoint {
			return backendapi.GatewayPoint{At: timestamp(p.At), Calls: p.Calls, Failed: p.Failed, Refused: p.Refused,
				MicroUSD: int64(p.Charged)}
		}),
		Refusals: convert(r.Refusals, func(one usage.Refusal) backendapi.GatewayRefusal {
			return backendapi.GatewayRefusal{Code: one.Code, Count: one.Count, LastAt: timestamp(one.LastAt),
				FixHint: one.Hint()}
		}),
		Models: convert(r.Models, func(m gateway.Availability) backendapi.GatewayModel {
			return gatewayModelOf(m, showModel)
		}),
		Summary: r.Summary(),
	}
	if r.Unit == usage.Hour {
		out.Interval = "hour"
	}
	if showModel && g.Of(grants.Assistant, grants.RealtimeModel).Allows(grants.Read) {
		out.ByModel = convert(r.ByModel, func(p usage.Part) backendapi.GatewayOfModel {
			return backendapi.GatewayOfModel{Model: p.Name, GatewaySums: sumsOf(p.Sums)}
		})
	}
	if g.Credentials.Allows(grants.Read) {
		out.KeySource = &r.KeySource
		out.BySource = convert(r.BySource, func(p usage.Part) backendapi.GatewayOfSource {
			return backendapi.GatewayOfSource{Source: p.Name, GatewaySums: sumsOf(p.Sums)}
		})
	}
	return out
}

func sumsOf(s usage.Sums) backendapi.GatewaySums {
	return backendapi.GatewaySums{Calls: s.Calls, Failed: s.Failed, Cancelled: s.Cancelled, Refused: s.Refused,
		Estimated: s.Estimated, MicroUSD: int64(s.Charged), TextIn: s.TextIn, TextCached: s.TextCached, TextOut: s.TextOut,
		AudioIn: s.AudioIn, AudioCached: s.AudioCached, AudioOut: s.AudioOut, DurationMs: s.Duration.Milliseconds()}
}

func capsOf(list []usage.Cap) (out backendapi.GatewayCaps) {
	places := map[[2]string]**backendapi.GatewayCap{
		{credit.OfProject, credit.CapDay}: &out.Day, {credit.OfProject, credit.CapMonth}: &out.Month,
		{credit.OfProject, credit.CapKeys}: &out.ProjectKeysDay,
		{credit.OfAccount, credit.CapDay}:  &out.AccountDay, {credit.OfAccount, credit.CapMonth}: &out.AccountMonth,
	}
	for _, c := range list {
		*places[[2]string{c.Of, c.Period}] = &backendapi.GatewayCap{LimitMicroUSD: int64(c.Limit),
			SpentMicroUSD: int64(c.Used.Spent), ReservedMicroUSD: int64(c.Used.Held), ResetsAt: timestamp(c.ResetsAt)}
	}
	return out
}

// gatewayModelOf describes a model ID that apps can request. It reveals the model behind gateway.Assistant only if
// showModel is set.
func gatewayModelOf(a gateway.Availability, showModel bool) backendapi.GatewayModel {
	m := backendapi.GatewayModel{ID: a.ID, Available: a.Why == ""}
	if a.ID == gateway.Assistant && !showModel {
		return m
	}
	m.Why = textOrNull(a.Why)
	if a.Model != nil {
		m.API = textOrNull(string(a.Model.API))
		if a.Model.ID != a.ID {
			m.Resolves = &a.Model.ID
		}
	}
	return m
}
