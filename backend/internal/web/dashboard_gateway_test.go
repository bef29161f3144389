package web

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/service-dev/service/backend/internal/credit"
	"github.com/service-dev/service/backend/internal/gateway"
	"github.com/service-dev/service/backend/internal/usage"
)

const helloGateway = helloPath + "/gateway"

// The totals, the chart's table, and the rows by day and model all count the same calls.
func TestGateway_ShowsSpendingByDayAndModel(t *testing.T) {
	h := newDashboardWorld(t)
	now := then
	h.setUsage(
		credit.UsageRow{Project: hello, Model: "standard", Source: credit.SourceCredit, Hour: now.Truncate(time.Hour), Calls: 3, Failed: 1,
			TextIn: 1000, TextCached: 200, TextOut: 300, Charged: 1_250},
		credit.UsageRow{Project: hello, Model: "careful", Source: credit.SourceCredit, Hour: now.Add(-72 * time.Hour).Truncate(time.Hour),
			Calls: 1, TextIn: 50, TextOut: 5, Charged: 7_001},
		credit.UsageRow{Project: hello, Model: "local <b>", Source: "local", Hour: now.Truncate(time.Hour), Calls: 9, TextIn: 5, TextOut: 6},
		credit.UsageRow{Project: hello, Model: "standard", Source: credit.SourceCredit, Kind: "chat", Hour: now.Truncate(time.Hour), Refused: 7},
		credit.UsageRow{Project: "com.example.other", Model: "secret-model", Hour: now.Truncate(time.Hour), Calls: 1, Charged: 5_000_000})
	site := dashboardSite(t, h)
	v := signedIn(t, site, ada).get(helloGateway).want(http.StatusOK, "$0.008251", "<dd>13</dd>", "<dd>1</dd>",
		"<dd>1,255</dd>", "<dd>311</dd>", `<svg class="chart"`, "$0.007001", "$0.00125", "local &lt;b&gt;", "local, free",
		"<bdi>careful</bdi></th><td>$0.007001", now.Format("Mon 2 Jan 2006"), now.AddDate(0, 0, -3).Format("Mon 2 Jan 2006"))
	v.lacks("secret-model", "$5.00", "No model was called")
	if n := strings.Count(v.page, `data-label="Tokens in"`); n != 3 {
		t.Errorf("got %d rows by day and model, want 3", n)
	}
	v.get(helloGateway+"?range=24h").want(http.StatusOK, "$0.00125", "Spending by hour").lacks("careful")
	v.get("/account/projects/com.example.other/gateway?range=90d").want(http.StatusOK, "secret-model")
}

// Sound counts among the tokens, and is shown on its own. A call with an own key is valued at the prices of sound.
func TestGateway_ShowsSound(t *testing.T) {
	h := newDashboardWorld(t)
	h.offer("standard", standardModel+voiceModel)
	h.setOpenAIKey()
	at := then.Add(-time.Hour).Truncate(time.Hour)
	h.setUsage(
		credit.UsageRow{Project: hello, Model: "talk", Kind: "realtime", Source: credit.SourceCredit, Hour: at, Calls: 2,
			TextIn: 10, TextOut: 20, AudioIn: 4000, AudioCached: 500, AudioOut: 6000, Charged: 12_345},
		credit.UsageRow{Project: hello, Model: "talk", Kind: "realtime", Source: credit.SourceOwnKey, Hour: at, Calls: 1,
			AudioOut: 1_000_000})
	site := dashboardSite(t, h)
	signedIn(t, site, ada).get(helloGateway).want(http.StatusOK, "<dt>Sound in</dt><dd>4,500</dd>",
		"<dt>Sound out</dt><dd>1,006,000</dd>", "<dt>Tokens in</dt><dd>4,510</dd>", "4,500 sound, 500 cached",
		"6,000 sound", "$0.012345", "$32.00 in, $64.00 out for sound",
		"cost <strong>$64.012345</strong> if credit pays")
	h.setUsage(credit.UsageRow{Project: hello, Model: "standard", Source: credit.SourceCredit, Hour: at, Calls: 1,
		TextIn: 1})
	signedIn(t, site, ada).get(helloGateway).lacks("Sound in")
}

func TestGateway_SaysWhatToDoAboutRefusals(t *testing.T) {
	h := newDashboardWorld(t)
	h.spendOnModels()
	h.setUsage()
	site := dashboardSite(t, h)
	v := signedIn(t, site, ada).get(helloGateway).want(http.StatusOK, "No model was called in this range",
		"http://service.example.org/v1", "A spending cap was reached.", "Raise the cap of this project", "cap_reached",
		"something_new", "Follow the fix hint in the error that the app received", `data-label="Calls" class="number">12<`)
	v.lacks("Your last 30 days", "<svg class=\"chart\"")
}

// The dashboard has a link to every page on which the user can take a next step.
func TestGateway_EveryPlaceOfANextStepHasALink(t *testing.T) {
	for _, at := range []usage.Place{usage.AtCredit, usage.AtSettings, usage.AtCaps, usage.AtAttest, usage.AtPayer, usage.AtModels,
		usage.AtRequests} {
		if l := stepLinks[at]; l.Href == "" || l.Label == "" {
			t.Errorf("the next step %s has no link", at)
		}
	}
}

func TestGateway_SaysWhatPaysForTheNextCall(t *testing.T) {
	h := newDashboardWorld(t)
	site := dashboardSite(t, h)
	v := signedIn(t, site, ada).get(helloGateway).want(http.StatusOK, "paid by: nothing: no model is available.")
	h.setUsage(credit.UsageRow{Project: hello, Source: credit.SourceScript, Calls: 1,
		Hour: then.Add(-time.Hour)})
	v.get(helloGateway).want(http.StatusOK, "paid by: script, free.")
	h.spendOnModels()
	v.get(helloGateway).want(http.StatusOK, "paid by: credit.")
	h.paysWith(gateway.KeySourceOwn)
	v.get(helloGateway).want(http.StatusOK, "paid by: own key.")
	h.offer("local-small", localModel)
	v.get(helloGateway).want(http.StatusOK, "paid by: local, free.")
}

func TestGateway_ListsModelsWithPriceAndReason(t *testing.T) {
	h := newDashboardWorld(t)
	h.spendOnModels()
	h.setUsage(credit.UsageRow{Project: hello, Model: "standard", Source: "credit", Calls: 1,
		Hour:   then.Add(-20 * 24 * time.Hour).Truncate(time.Hour),
		TextIn: 1_000_000, TextOut: 500_000, Charged: 1_250_000})
	site := dashboardSite(t, h)
	signedIn(t, site, ada).get(helloGateway).want(http.StatusOK, "means standard", "$0.25 in, $2.00 out",
		`data-label="30 days">$1.25<`, `data-label="30 days">$3.50<`, "POST /v1/messages", "free", "Careful, Anthropic",
		"No price for text_cached", `data-label="A million">unknown<`, "1,000,000 tokens in and 500,000 out, in 30 days")
}

func TestGateway_CapsAreThoseOfTheProject(t *testing.T) {
	h := newDashboardWorld(t)
	site := dashboardSite(t, h)
	v := signedIn(t, site, ada).get("/projects/" + hello + "/gateway").onward()
	caps := helloGateway + "/caps"
	v.post(caps, v.form("cap-day", "x", "cap-month", "")).want(http.StatusUnprocessableEntity, `id="cap-day-error"`)
	v.post(caps, v.form("version", "0", "cap-day", "", "cap-month", "2.50", "act", "cost")).
		want(http.StatusOK, "<strong>$2.50</strong>")
	v.post(caps, v.form("version", "0", "cap-day", "", "cap-month", "2.50")).onward().
		want(http.StatusOK, "It applies from the next call")
	if c := h.caps(hello); c.Day != nil || c.Month == nil || *c.Month != 2_500_000 || h.caps("") != (credit.Caps{}) {
		t.Errorf("got caps %+v of the project and %+v of the account", c, h.caps(""))
	}
}

func TestGateway_WhatPaysTellsTheCostOfBoth(t *testing.T) {
	h := newDashboardWorld(t)
	site := dashboardSite(t, h)
	v := signedIn(t, site, ada).get(helloGateway).lacks("What pays")
	h.spendOnModels()
	at := then.Add(-48 * time.Hour).Truncate(time.Hour)
	h.setUsage(
		credit.UsageRow{Project: hello, Model: "standard", Source: credit.SourceCredit, Hour: at, Calls: 1, Charged: 250_000},
		credit.UsageRow{Project: hello, Model: "standard", Source: credit.SourceOwnKey, Hour: at, Calls: 9, TextOut: 300_000_000})
	h.setOpenAIKey()
	v.get(helloGateway).want(http.StatusOK, "cost <strong>$600.25</strong> if credit pays",
		`value="credit" required checked`,
		"OpenAI", "standard (own key)")
	v.lacks("canary")
	v.post(helloGateway+"/key-source", v.form("source", "both")).want(http.StatusUnprocessableEntity, "Choose what pays.")
	v.get(helloGateway)
	v.post(helloGateway+"/key-source", v.form("source", "own")).onward().
		want(http.StatusOK, "It applies from the next call", `value="own" required checked`)
	h.gateway.Catalogue = gateway.Catalogue{} // the operator no longer accepts own keys, but switching back remains possible
	v.get(helloGateway).want(http.StatusOK, "What pays")
}
