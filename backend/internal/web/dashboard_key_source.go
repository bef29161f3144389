package web

import (
	"errors"
	"slices"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/credentials"
	"github.com/service-dev/service/backend/internal/credit"
	"github.com/service-dev/service/backend/internal/gateway"
	"github.com/service-dev/service/backend/internal/gateway/wire"
)

// payerForm is the form for a project's key source, in the template "dashboard_gateway".
type payerForm struct {
	Set      radioSet
	Keys     []credentialRow // keys of the providers that accept own keys
	Offered  bool            // whether a provider accepts own keys or own keys already pay
	IfCredit string          // cost of the last days with credit
}

func (w *Web) changeKeySource(c *call) error {
	err := w.Dashboard.KeySources.SetKeySource(c.Context(), c.account.ID, c.project.ID, c.PostFormValue("source"),
		audit.Person())
	if errors.Is(err, gateway.ErrKeySource) {
		return w.showGateway(c, formErrors{Problem: "Choose what pays."}, nil)
	}
	return c.done(err, gatewayPath(c.project.ID), "key-source")
}

func (w *Web) payer(c *call, source string, all []gateway.Availability, ifCredit credit.Amount) (payerForm, error) {
	form := payerForm{IfCredit: dollars(ifCredit), Offered: source == gateway.KeySourceOwn}
	form.Set = radioSet{Name: "source", Legend: "Calls are paid by", Choices: selectChoice([]choice{
		{ID: gateway.KeySourceCredit, Label: "Credit",
			About: "The account's prepaid credit, with the keys of this backend's operator."},
		{ID: gateway.KeySourceOwn, Label: "Own keys",
			About: "This project's own keys. Their providers bill you; here calls cost nothing and caps do not apply."},
	}, source)}
	list, err := w.Dashboard.Credentials.Status(c.Context(), c.account.ID, c.project.ID)
	for _, one := range list {
		if slices.ContainsFunc(all, func(a gateway.Availability) bool { return takesKeys(a, one.Provider) }) {
			form.Offered = true
			form.Keys = append(form.Keys, credentialRow{Credential: one, Result: testResults[one.TestResult],
				Tested: showTime(one.TestedAt)})
		}
	}
	return form, err
}

func takesKeys(a gateway.Availability, p credentials.Provider) bool {
	return a.Model != nil && a.Model.Provider.OwnKeys == p.ID
}

// modelsByID returns the models by the IDs that apps can request.
func modelsByID(all []gateway.Availability) map[string]*gateway.Model {
	models := map[string]*gateway.Model{}
	for _, a := range all {
		models[a.ID] = a.Model
	}
	return models
}

// ifCreditPaid returns the cost of calls, or the cost they would have had if credit had paid.
func ifCreditPaid(u credit.UsageRow, models map[string]*gateway.Model) credit.Amount {
	m := models[u.Model]
	switch {
	case u.Source != credit.SourceOwnKey:
		return u.Charged
	case m == nil:
		return 0
	case m.API == wire.Realtime:
		return credit.Amount(m.VoicePrices().Of(wire.RealtimeUsage{TextIn: u.TextIn, TextCached: u.TextCached,
			TextOut: u.TextOut, AudioIn: u.AudioIn, AudioCached: u.AudioCached, AudioOut: u.AudioOut}))
	}
	return credit.Amount(m.Prices.Of(wire.Usage{In: u.TextIn + u.TextCached, Cached: u.TextCached, Out: u.TextOut}))
}
